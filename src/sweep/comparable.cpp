#include "sweep/comparable.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"
#include "samples/channels.h"
#include "task/scores.h"

namespace jigsaw::inline sweep {
namespace {

bool stands_in(const std::string& key, const std::string& section) {
  return key == section || key.starts_with(section + ".") || key.starts_with(section + "[");
}

/// What a run sets of a section, be it key by key or with all that stands around it; its own keys are added
/// to `names`.
Json set_of(const Assignment& run, const std::string& section, std::set<std::string>& names) {
  Json set = Json::object();
  for (const auto& [key, value] : run) {
    if (stands_in(key, section)) {
      set[key] = value;
    } else if (stands_in(section, key)) {
      const Json* inner = &value;
      for (const std::string& part : split_path(section.substr(key.size() + 1)))
        inner = inner != nullptr && inner->is_object() && inner->contains(part) ? &inner->at(part) : nullptr;
      set[key] = inner != nullptr ? *inner : Json();
    } else {
      continue;
    }
    names.insert(key);
  }
  return set;
}

/// What validations score.
constexpr std::array kOfScores = {"data.valid",  "data.lead_hours", "data.lead_steps", "data.time_step",
                                  "data.region", "data.every",      "data.regrid"};

/// How the loss counts it.
std::vector<std::string> sections_of_loss(const std::vector<Assignment>& runs, const Configuration& base) {
  std::vector<std::string> sections = {
      "loss", "data.predict", "data.variables", "data.diagnostic", "data.targets", "validation.rollout"};
  // Losses between numbers are in units of their statistics.
  if (base.data.classes == 0) {
    for (const char* of_units : {"data.transforms", "data.normalization"}) sections.emplace_back(of_units);
    if (base.data.statistics_file() == nullptr) sections.emplace_back("data.train");
  }
  const bool fixed = base.validation.rollout || std::ranges::all_of(runs, [](const Assignment& run) {
                       return run.contains("validation.rollout");
                     });
  if (!fixed) sections.emplace_back("train.rollout");
  return sections;
}

/// The keys by which the runs differ in one of these sections.
template <typename Sections>
std::set<std::string> differing_keys(const std::vector<Assignment>& runs, const Sections& sections) {
  std::set<std::string> differing;
  for (const auto& section : sections) {
    std::set<std::string> sets, keys;
    for (const Assignment& run : runs) sets.insert(set_of(run, section, keys).dump());
    if (sets.size() > 1) differing.insert(keys.begin(), keys.end());
  }
  return differing;
}

/// A number of validations in units of the data.
std::string comparable_metric(const DataOptions& data) {
  const std::string measure = data.classes > 0 ? "mean_dice" : score_measures(data).front();
  const std::vector<std::string> targets =
      data.dims.empty() ? channel_names(make_channels(data, false).targets) : data.target_names();
  return targets.empty() ? "" : concat(targets.front(), ".", measure);
}

}  // namespace

std::string comparison_remark(const SearchSpace& space, const std::vector<Assignment>& runs,
                              const Configuration& base) {
  std::set<std::string> names = differing_keys(runs, kOfScores);
  const bool of_all_scores = !names.empty();
  if (space.metric == "loss") names.merge(differing_keys(runs, sections_of_loss(runs, base)));
  if (names.empty()) return "";
  const std::string other = of_all_scores ? "" : comparable_metric(base.data);
  return concat("the sweep changes ", join(names, ", "), ", and with ", names.size() == 1 ? "it" : "them",
                " what ", space.metric, " measures: its values do not say which run is better",
                space.method == SearchMethod::kHalving ? ", and halving goes by them" : "",
                other.empty() ? "" : concat("; \"metric\": ", quote(other), " is the same quantity in all"));
}

}  // namespace jigsaw::inline sweep
