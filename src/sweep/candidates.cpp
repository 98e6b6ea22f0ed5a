#include "sweep/candidates.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "array/random.h"
#include "base/text.h"

namespace jigsaw::inline sweep {
namespace {

constexpr std::int64_t kMostDrawsInVain = 1000;

/// The names of the keys, those first on which others depend by `when`.
std::vector<std::string> in_order_of_conditions(const SearchSpace& space) {
  std::vector<std::string> order;
  std::set<std::string> placed;
  while (order.size() < space.keys.size()) {
    const std::size_t before = order.size();
    for (const auto& [name, key] : space.keys) {
      const bool ready = std::all_of(key.when.begin(), key.when.end(), [&](const auto& condition) {
        return placed.contains(condition.first) || !space.keys.contains(condition.first);
      });
      if (ready && placed.insert(name).second) order.push_back(name);
    }
    if (order.size() == before) {
      std::vector<std::string> circle;
      for (const auto& [name, key] : space.keys) {
        if (!placed.contains(name)) circle.push_back(name);
      }
      throw ConfigError(concat("the sweep's keys ", join(circle, ", "), " depend on each other by \"when\""));
    }
  }
  return order;
}

/// The value of a dotted key in the configuration; null when it is not given.
Json value_in(const Json& base, const std::string& path) {
  const Json* place = &base;
  for (const std::string& part : split_path(path)) {
    if (!place->is_object() || !place->contains(part)) return nullptr;
    place = &place->at(part);
  }
  return *place;
}

/// A full combination without the keys whose condition does not hold.
Assignment applicable(const SearchSpace& space, const std::vector<std::string>& order, const Json& base,
                      const Assignment& all) {
  Assignment result;
  for (const std::string& name : order) {
    const SearchKey& key = space.keys.at(name);
    const bool holds = std::all_of(key.when.begin(), key.when.end(), [&](const auto& condition) {
      const auto set = result.find(condition.first);
      return (set != result.end() ? set->second : value_in(base, condition.first)) == condition.second;
    });
    if (holds) result[name] = all.at(name);
  }
  return result;
}

std::vector<Assignment> grid(const SearchSpace& space) {
  std::vector<Assignment> all = {{}};
  for (const auto& [name, key] : space.keys) {
    if (all.size() * key.values.size() > static_cast<std::size_t>(kMostSweepRuns))
      throw ConfigError("the sweep's grid has more than a million runs");
    std::vector<Assignment> longer;
    for (const Assignment& begun : all) {
      for (const Json& value : key.values) {
        longer.push_back(begun);
        longer.back()[name] = value;
      }
    }
    all = std::move(longer);
  }
  return all;
}

/// Draw number `i` of a key, whatever the other keys are.
Json draw(const SearchKey& key, const std::string& name, std::int64_t seed, std::int64_t i) {
  const RandomStream stream(static_cast<std::uint64_t>(seed), RandomPurpose::kShuffle, "sweep/" + name);
  const double u = stream.uniform({static_cast<std::uint64_t>(i), 0, 0}, 0);
  if (!key.is_range()) {
    const auto count = static_cast<double>(key.values.size());
    return key.values[static_cast<std::size_t>(u * count)];
  }
  const double from = *key.from, to = key.integer ? *key.to + 1 : *key.to;
  // A ratio beyond all numbers is taken in two parts.
  double value = key.scale == Scale::kLinear ? from + u * (to - from)
                 : std::isfinite(to / from)  ? from * std::pow(to / from, u)
                                             : std::pow(from, 1 - u) * std::pow(to, u);
  if (key.integer) return static_cast<std::int64_t>(std::min(std::floor(value), *key.to));
  // Four digits are enough to search with, and can be read in a folder's name.
  const double unit = value == 0 ? 1 : std::pow(10.0, std::floor(std::log10(std::abs(value))) - 3);
  value = std::clamp(std::round(value / unit) * unit, from, to);
  return Json::parse(concat(value));
}

}  // namespace

std::vector<Assignment> candidates(const SearchSpace& space, const Json& base) {
  std::vector<Assignment> result;
  if (space.method == SearchMethod::kList) {
    std::set<Assignment> listed;
    for (const Assignment& run : space.runs) {
      if (listed.insert(run).second) result.push_back(run);
    }
    return result;
  }
  std::set<std::string> seen;
  const auto add = [&](Assignment run) {
    const bool another = seen.insert(Json(run).dump()).second;
    if (another) result.push_back(std::move(run));
    return another;
  };
  const std::vector<std::string> order = in_order_of_conditions(space);
  if (space.method == SearchMethod::kGrid) {
    for (const Assignment& combination : grid(space)) add(applicable(space, order, base, combination));
    return result;
  }
  std::int64_t in_vain = 0;  // draws in a row that gave no other run
  for (std::int64_t i = 0; std::ssize(result) < space.count && in_vain < kMostDrawsInVain; ++i) {
    Assignment all;
    for (const auto& [name, key] : space.keys) all[name] = draw(key, name, space.seed, i);
    in_vain = add(applicable(space, order, base, all)) ? 0 : in_vain + 1;
  }
  return result;
}

}  // namespace jigsaw::inline sweep
