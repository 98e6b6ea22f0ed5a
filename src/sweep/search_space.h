#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/any_form.h"
#include "config/config.h"
#include "task/metric.h"

namespace jigsaw::inline sweep {

/// More are no search that anybody trains.
inline constexpr std::int64_t kMostSweepRuns = 1'000'000;

enum class SearchMethod : std::uint8_t { kGrid, kList, kRandom, kHalving };
enum class Scale : std::uint8_t { kLinear, kLogarithmic };

/// What one dotted key of the configuration may be: listed values, or a range to draw from.
struct SearchKey {
  std::vector<Json> values;
  std::optional<double> from, to;
  Scale scale = Scale::kLinear;
  bool integer = false;
  /// Dotted keys and their values in the same run for which this key is set at all.
  std::map<std::string, Json> when;

  bool is_range() const { return from.has_value(); }
};
void declare(Keys<SearchKey>& keys);

/// Successive halving (Jamieson and Talwalkar, "Non-stochastic best arm identification and hyperparameter
/// optimization", AISTATS 2016): all runs train a little, and in each further round the best of them go on.
struct HalvingOptions {
  std::int64_t first_steps = 100;  ///< train.steps of the first round
  double factor = 3;               ///< between rounds: so many times the steps, and 1/factor of the runs
};
void declare(Keys<HalvingOptions>& keys);

/// A search over dotted keys of a configuration: the file that `sweep --grid` reads.
struct SearchSpace {
  SearchMethod method = SearchMethod::kGrid;
  std::map<std::string, SearchKey> keys;
  std::vector<std::map<std::string, Json>> runs;
  std::int64_t count = 0;
  std::int64_t seed = 1;
  std::string metric = "loss";
  BestIs best_is = BestIs::kAuto;
  HalvingOptions halving;
  std::optional<std::string> output;

  /// Whether a value of the metric is better than another.
  bool better(double a, double b) const { return jigsaw::better(a, b, best_of(metric, best_is)); }
};
void declare(Keys<SearchSpace>& keys);

}  // namespace jigsaw::inline sweep
