#include "report/run_overview.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "base/text.h"
#include "report/figures.h"
#include "report/svg.h"

namespace jigsaw::inline report {

std::string text_at(const Json& json, const std::vector<std::string>& path) {
  const Json* at = &json;
  for (const std::string& key : path) {
    if (!at->is_object() || !at->contains(key)) return "-";
    at = &at->at(key);
  }
  return at->is_string() ? at->get<std::string>() : at->dump(-1, ' ', false, Json::error_handler_t::replace);
}

namespace {

std::string state_of(const RunRecord& run) {
  if (!run.error.empty()) return "failed";
  if (!run.stopped.empty()) return "stopped";
  return run.over() ? "over" : "not over";
}

/// By the summary, which only a run that is over has, the placement, which "report": true writes, or the
/// mesh.
std::string ranks_of(const RunRecord& run) {
  if (run.over() && run.summary.contains("ranks") && run.summary.at("ranks").is_array())
    return concat(run.summary.at("ranks").size());
  if (std::string placed = text_at(run.placement, {"ranks"}); placed != "-") return placed;
  const Json mesh = run.config.is_object() ? run.config.value("mesh", Json()) : Json();
  if (!mesh.is_object()) return "-";
  double ranks = number_at(mesh, "data", 1) * number_at(mesh, "tensor", 1);
  for (const double size : numbers_of(mesh.value("domain", Json::array()))) ranks *= size;
  return std::isfinite(ranks) ? short_number(ranks) : "-";
}

std::string steps_of(const RunRecord& run) {
  if (run.step.empty()) return "0";
  return std::isfinite(run.step.back()) ? concat(std::llround(run.step.back())) : "-";
}

/// How long the run took, as far as its summary knows it: that of the last start.
std::string time_of(const RunRecord& run) {
  if (!run.over()) return "-";
  return concat(human_seconds(number_at(run.summary, "seconds", 0)),
                run.first_step() > 1 ? concat(" since step ", run.first_step()) : "");
}

/// A time of metrics.jsonl to the second; "-" for none.
std::string second_of(const std::string& time) {
  if (time.empty()) return "-";
  return time.substr(0, 19) + (time.size() > 19 && time.ends_with('Z') ? "Z" : "");
}

/// The validation of the lowest loss; null where none has a finite one.
const Json* best_validation(const RunRecord& run) {
  const Json* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const Json& line : run.valid) {
    const double loss = number_at(line, "loss");
    if (!(loss < least)) continue;
    least = loss;
    best = &line;
  }
  return best;
}

/// Whether losses of validations mean the same in all runs: of one loss on the same data.
bool are_comparable(const std::vector<RunRecord>& runs) {
  const auto of = [](const RunRecord& run) {
    const std::string own = text_at(run.config, {"validation", "rollout"});
    return std::array{text_at(run.config, {"loss"}), text_at(run.config, {"data"}),
                      text_at(run.config, {"validation"}),
                      own == "null" ? text_at(run.config, {"train", "rollout"}) : own};
  };
  return std::ranges::all_of(runs, [&](const RunRecord& run) { return of(run) == of(runs.front()); });
}

/// The run with the lowest loss of any validation, of several that compare; null for none.
const RunRecord* best_of(const std::vector<RunRecord>& runs) {
  if (runs.size() < 2 || !are_comparable(runs)) return nullptr;
  const RunRecord* best = nullptr;
  for (const RunRecord& run : runs) {
    const Json* line = best_validation(run);
    if (line && (!best || number_at(*line, "loss") < number_at(*best_validation(*best), "loss"))) best = &run;
  }
  return best;
}

using Path = std::vector<std::string>;

/// The paths of all that is no object, in the order of the configuration, behind those of others.
class Leaves {
 public:
  void add(const Json& json, const Path& path = {}) {
    for (const auto& [key, value] : json.items()) {
      Path at = path;
      at.push_back(key);
      if (value.is_object() && !value.empty()) {
        add(value, at);
      } else if (known_.insert(at).second) {
        paths_.push_back(std::move(at));
      }
    }
  }
  const std::vector<Path>& paths() const { return paths_; }

 private:
  std::set<Path> known_;
  std::vector<Path> paths_;
};

/// The keys in which configurations differ, but those of names, places and what is written.
std::vector<Path> differing_keys(const std::vector<RunRecord>& runs) {
  constexpr std::array kNoMatter = {"name", "output", "command_line", "report", "tensorboard", "machine"};
  Leaves leaves;
  for (const RunRecord& run : runs)
    if (run.config.is_object()) leaves.add(run.config);
  std::vector<Path> paths = leaves.paths();
  std::erase_if(paths, [&](const Path& path) {
    if (std::ranges::find(kNoMatter, path.front()) != kNoMatter.end()) return true;
    const std::string first = text_at(runs.front().config, path);
    return std::ranges::all_of(runs,
                               [&](const RunRecord& run) { return text_at(run.config, path) == first; });
  });
  return paths;
}

}  // namespace

std::string run_overview(const std::vector<RunRecord>& runs) {
  constexpr std::size_t kMostKeys = 8, kMostLetters = 40;
  std::vector<Path> keys = differing_keys(runs);
  std::vector<std::string> further;
  for (std::size_t i = kMostKeys; i < keys.size(); ++i) further.push_back(join(keys[i], "."));
  keys.resize(std::min(keys.size(), kMostKeys));
  std::vector<std::string> head = {"run", "state"};
  for (const Path& key : keys) head.push_back(join(key, "."));
  for (const char* title :
       {"model", "ranks", "steps", "last loss", "last validation", "best validation", "time", "from", "to"})
    head.emplace_back(title);
  std::vector<std::vector<std::string>> rows = {head};
  const RunRecord* best = best_of(runs);
  for (const RunRecord& run : runs) {
    std::vector<std::string> row = {run.name, state_of(run)};
    for (const Path& key : keys) row.push_back(shortened(text_at(run.config, key), kMostLetters));
    const Json* lowest = best_validation(run);
    for (const std::string& cell :
         {text_at(run.config, {"model", "type"}), ranks_of(run), steps_of(run),
          run.loss.empty() ? "-" : short_number(run.loss.back()),
          run.valid.empty() ? "-" : short_number(number_at(run.valid.back(), "loss", NAN)),
          lowest ? concat(short_number(number_at(*lowest, "loss")), " at step ", text_at(*lowest, {"step"}),
                          &run == best ? ", the lowest" : "")
                 : "-",
          time_of(run), second_of(run.first_time), second_of(run.last_time)})
      row.push_back(cell);
    rows.push_back(std::move(row));
  }
  std::string html = table_of(rows);
  if (!further.empty()) {
    html +=
        concat("<p class=\"note\">", escaped("Runs also differ in " + join(further, ", ") + "."), "</p>\n");
  }
  return html;
}

}  // namespace jigsaw::inline report
