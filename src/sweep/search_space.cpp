#include "sweep/search_space.h"

#include "base/text.h"

namespace jigsaw::inline sweep {

void declare(Keys<SearchKey>& keys) {
  keys.add("values", &SearchKey::values).doc("The values to try.");
  keys.add("from", &SearchKey::from).doc("Lower end of a range to draw from (random and halving).");
  keys.add("to", &SearchKey::to).doc("Upper end of the range.");
  keys.choice("scale", &SearchKey::scale,
              {{"linear", Scale::kLinear, "Evenly over the range."},
               {"log", Scale::kLogarithmic, "Evenly over the logarithm: for rates and decays."}})
      .doc("How the range is drawn from.");
  keys.add("integer", &SearchKey::integer).doc("Whether only whole numbers of the range are drawn.");
  keys.add("when", &SearchKey::when)
      .doc(
          "Dotted keys and values: only in runs that have them (from the sweep, or else from the "
          "configuration) is this key set.");
  keys.check([](const SearchKey& key, const Place& at) {
    if (key.from.has_value() != key.to.has_value()) at.error("from", "and \"to\" go together");
    if (key.is_range() != key.values.empty())
      at.error("values", "must hold at least one value, unless \"from\" and \"to\" give a range");
    if (!key.is_range()) return;
    if (*key.from > *key.to) at.error("from", "must not be above \"to\"");
    if (key.scale == Scale::kLogarithmic && *key.from <= 0) at.error("from", "must be above 0 with \"log\"");
  });
}

void declare(Keys<HalvingOptions>& keys) {
  keys.add("first_steps", &HalvingOptions::first_steps).at_least(1).doc("train.steps of the first round.");
  keys.add("factor", &HalvingOptions::factor)
      .above(1)
      .doc("From round to round the steps grow by this factor, and the runs shrink by it.");
}

namespace {

/// A list of values, or all that can be said of a key.
FormPtr<SearchKey> search_key() {
  return std::make_unique<ShorthandForm<SearchKey, std::vector<Json>>>(
      section<SearchKey>(), form_of<std::vector<Json>>(),
      [](const std::vector<Json>& values) {
        SearchKey key;
        key.values = values;
        return key;
      },
      [](const SearchKey& key) {
        const bool brief = !key.is_range() && key.when.empty();
        return brief ? std::optional(key.values) : std::nullopt;
      });
}

}  // namespace

void declare(Keys<SearchSpace>& keys) {
  keys.choice("method", &SearchSpace::method,
              {{"grid", SearchMethod::kGrid, "Every combination of the listed values."},
               {"list", SearchMethod::kList, "The entries of \"runs\"."},
               {"random", SearchMethod::kRandom, "\"count\" draws from the keys."},
               {"halving", SearchMethod::kHalving,
                "Successive halving: \"count\" draws train a little, the best go on."}})
      .doc("How runs are made out of the keys.");
  keys.add("keys", &SearchSpace::keys, std::make_unique<MapForm<SearchKey>>(search_key()))
      .doc("By dotted key of the configuration: a list of values, or an object that says more.");
  keys.add("runs", &SearchSpace::runs).doc("Each run's values by dotted key (method \"list\").");
  keys.add("count", &SearchSpace::count).range(0, kMostSweepRuns).doc("Runs to draw (random and halving).");
  keys.add("seed", &SearchSpace::seed).doc("Of the draws; a larger count keeps the runs of a smaller one.");
  keys.add("metric", &SearchSpace::metric)
      .not_empty()
      .doc(
          "What the last validation is judged by: \"loss\", or a variable and its measure, \"t2m.rmse\", "
          "which is of the first lead; \"leads.24.t2m.rmse\" of a later one, by its name in metrics.jsonl.");
  keys.choice("best_is", &SearchSpace::best_is, best_is_choices())
      .doc("Which values of the metric are better.");
  keys.add("halving", &SearchSpace::halving).doc("Rounds of method \"halving\".");
  keys.add("output", &SearchSpace::output)
      .doc("Folder of the sweep; null: that of the configuration with \"_sweep\" behind it.");
  keys.check([](const SearchSpace& space, const Place& at) {
    const bool draws = space.method == SearchMethod::kRandom || space.method == SearchMethod::kHalving;
    if (space.method == SearchMethod::kList) {
      if (space.runs.empty()) at.error("runs", "must hold at least one run with method \"list\"");
      if (!space.keys.empty()) at.error("keys", "is not used with method \"list\"");
    } else {
      if (space.keys.empty()) at.error("keys", "must name at least one key of the configuration");
      if (!space.runs.empty()) at.error("runs", "is only used with method \"list\"");
    }
    if (draws && space.count < 1) at.error("count", "must be at least 1: it says how many runs are drawn");
    if (!draws && space.count != 0) at.error("count", "is only used with methods \"random\" and \"halving\"");
    for (const auto& [name, key] : space.keys) {
      if (key.is_range() && !draws)
        at.error("keys", concat("gives a range for ", quote(name), "; a grid needs a list of values"));
      for (const auto& [other, value] : key.when) {
        if (other == name) at.error("keys", concat("lets ", quote(name), " depend on itself"));
      }
      if (name == "output")
        at.error("keys", "must not name \"output\": every run has a folder of its own in the sweep's");
    }
    if (space.method == SearchMethod::kHalving && space.keys.contains("train.steps"))
      at.error("keys", "must not name \"train.steps\" with method \"halving\", whose rounds set it");
  });
}

}  // namespace jigsaw::inline sweep
