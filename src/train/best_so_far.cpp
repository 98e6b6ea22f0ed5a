#include "train/best_so_far.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "task/metric.h"

namespace jigsaw::inline train {

std::optional<std::int64_t> not_improved_in(const Json& line, const std::string& best) {
  const auto counts = line.find(kNotImproved);
  if (counts == line.end() || !counts->is_object()) return std::nullopt;
  const Json count = counts->value(best, Json());
  return count.is_number_unsigned() ? std::optional(count.get<std::int64_t>()) : std::nullopt;
}

std::optional<double> best_in(const Json& line, const std::string& best) {
  if (!line.is_object() || not_improved_in(line, best) != 0) return std::nullopt;
  return number_in(line, best);
}

bool judges_as_before(const Json& configuration, const CheckpointOptions& now) {
  const Json checkpoint = configuration.is_object() ? configuration.value("checkpoint", Json()) : Json();
  const Json before = checkpoint.is_object() ? checkpoint.value("best_is", Json()) : Json();
  return std::ranges::all_of(best_is_choices(), [&](const auto& choice) {
    return before != choice.name || best_of(now.best, choice.value) == best_of(now.best, now.best_is);
  });
}

std::string other_validation_data(const Json& before, const Json& now) {
  /// What ranks that sum in another order make of the same numbers is nearer.
  constexpr double kTolerance = 1e-4;
  const auto in = [](const Json& object, const std::string& key) {
    return object.is_object() ? object.value(key, Json()) : Json();
  };
  const auto other = [](const std::string& what, const Json& was, const Json& is) {
    return concat(what, " is ", is.get<double>(), ", and was ", was.get<double>());
  };
  const Json samples = in(before, kValidationSamples), count = in(now, kValidationSamples);
  if (samples.is_number() && count.is_number() && samples != count)
    return other("the number of samples", samples, count);
  const Json targets = in(now, "metrics");
  for (const auto& [name, scores] : targets.items()) {
    const Json known = in(in(before, "metrics"), name);
    for (const char* key : {"persistence_rmse", "input_rmse"}) {
      const Json was = in(known, key), is = in(scores, key);
      if (!was.is_number() || !is.is_number()) continue;
      const double largest = std::max(std::abs(was.get<double>()), std::abs(is.get<double>()));
      if (std::abs(was.get<double>() - is.get<double>()) > kTolerance * largest)
        return other(concat(name, ".", key), was, is);
    }
  }
  return "";
}

}  // namespace jigsaw::inline train
