#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "support/error_of.h"

/// A configuration with every form that the key table knows, in the manner of the real one.
namespace jigsaw::example {

struct Variable {
  std::string name;
  std::vector<std::int64_t> levels;
  bool operator==(const Variable&) const = default;
};
inline void declare(Keys<Variable>& keys) {
  keys.add("name", &Variable::name).required().not_empty().doc("Name in the files.");
  keys.add("levels", &Variable::levels).at_least(1).doc("Pressure levels, hPa.");
}
inline FormPtr<Variable> form_for(TypeTag<Variable>) {
  return shorthand(
      section<Variable>(), form_of<std::string>(),
      [](const std::string& name) {
        return Variable{name, {}};
      },
      [](const Variable& v) { return v.levels.empty() ? std::optional(v.name) : std::nullopt; });
}

/// Days since the first of the month; stands for a type with a text form of its own.
struct Day {
  int day = 0;
  bool operator==(const Day&) const = default;
};
inline FormPtr<Day> form_for(TypeTag<Day>) {
  return custom<Day>({
      .description = "a day such as \"day 3\"",
      .schema = {{"type", "string"}, {"pattern", "^day [0-9]$"}},
      .read = [](const Json& json, const Place&) -> std::optional<Day> {
        if (!json.is_string()) return std::nullopt;
        const auto text = json.get<std::string>();
        if (text.size() != 5 || !text.starts_with("day ") || text[4] < '0' || text[4] > '9')
          return std::nullopt;
        return Day{text[4] - '0'};
      },
      .write = [](const Day& day) -> Json { return concat("day ", day.day); },
  });
}

struct Group {
  std::string match;
  std::optional<double> learning_rate;
  bool operator==(const Group&) const = default;
};
inline void declare(Keys<Group>& keys) {
  keys.add("match", &Group::match).required().doc("Names of the parameters.");
  keys.add("learning_rate", &Group::learning_rate).changeable().at_least(0).doc("Step size of the group.");
}

struct Optimizer {
  double learning_rate = 1e-3;
  std::vector<double> betas{0.9, 0.999};
  std::vector<Group> groups;
  bool operator==(const Optimizer&) const = default;
};
inline void declare(Keys<Optimizer>& keys) {
  keys.add("learning_rate", &Optimizer::learning_rate).above(0).doc("Step size of AdamW.");
  keys.add("betas", &Optimizer::betas).length(2).at_least(0).below(1).doc("Decay of the moments.");
  keys.add("groups", &Optimizer::groups).doc("Parameters with a step size of their own.");
}

enum class LossType { kMse, kL1 };
struct Loss {
  LossType type = LossType::kMse;
  bool area_weighted = true;
  std::map<std::string, double> variable_weights;
  bool operator==(const Loss&) const = default;
};
inline void declare(Keys<Loss>& keys) {
  keys.choice("type", &Loss::type,
              {{"mse", LossType::kMse, "Mean squared error."}, {"l1", LossType::kL1, "Mean absolute error."}})
      .doc("What is minimised.");
  keys.add("area_weighted", &Loss::area_weighted).doc("Weigh cells by their area.");
  keys.add("variable_weights", &Loss::variable_weights).at_least(0).doc("Weights by name.");
}

struct Mesh {
  std::int64_t data = 1;
  std::vector<std::int64_t> domain;
  bool operator==(const Mesh&) const = default;
};
inline void declare(Keys<Mesh>& keys) {
  keys.add("data", &Mesh::data).at_least(1).doc("Ranks along the samples.");
  keys.add("domain", &Mesh::domain).at_least(1).doc("Ranks along each spatial axis.");
}

struct Data {
  std::vector<std::string> files;
  std::vector<Variable> variables;
  std::vector<std::vector<Day>> train;
  std::optional<std::vector<std::int64_t>> shape;
  int lead_hours = 6;
  bool operator==(const Data&) const = default;
};
inline void declare(Keys<Data>& keys) {
  keys.add("files", &Data::files, one_or_list<std::string>()).required().not_empty().doc("Files to read.");
  keys.add("variables", &Data::variables).required().not_empty().doc("Prognostic variables.");
  keys.add("train", &Data::train, one_or_list<std::vector<Day>>()).doc("Periods: first and last day.");
  keys.add("shape", &Data::shape).length(2, 3).at_least(1).doc("Extents of the grid.");
  keys.add("lead_hours", &Data::lead_hours)
      .at_least(1)
      .must("be a multiple of 6", [](int hours) { return hours % 6 == 0; })
      .doc("Hours ahead | of now.");
}

struct Config {
  std::string name = "run";
  std::int64_t seed = 1;
  std::optional<Mesh> mesh;
  Data data;
  Loss loss;
  Optimizer optimizer{.learning_rate = 0.5, .betas = {0.9, 0.95}, .groups = {}};
  std::int64_t steps = 100;
  std::int64_t warmup_steps = 10;
  bool operator==(const Config&) const = default;
};
inline void declare(Keys<Config>& keys) {
  keys.add("name", &Config::name).doc("Name of the run.");
  keys.add("seed", &Config::seed).at_least(0).doc("Seed of all random numbers.");
  keys.add("mesh", &Config::mesh, auto_or<Mesh>()).changeable().doc("How the ranks are arranged.");
  keys.add("data", &Config::data).doc("What is learned from.");
  keys.add("loss", &Config::loss).doc("What is minimised.");
  keys.add("optimizer", &Config::optimizer).doc("How it is minimised.");
  keys.add("steps", &Config::steps).changeable().at_least(0).doc("Number of steps.");
  keys.add("warmup_steps", &Config::warmup_steps).at_least(0).doc("Steps of warm-up.");
  keys.check([](const Config& config, const Place& at) {
    if (config.warmup_steps > config.steps) {
      at.error("warmup_steps",
               concat("must be at most steps, ", config.steps, ", not ", config.warmup_steps));
    }
  });
}

/// The smallest configuration that is right.
inline Json minimal() {
  return parse_json(R"({"data": {"files": "a.nc", "variables": ["t2m"]}})", "test");
}

/// The message of the ConfigError that `action` throws; "" when it throws none.
inline std::string error_of(const std::function<void()>& action) {
  return testing::error_of<ConfigError>(action);
}

}  // namespace jigsaw::example
