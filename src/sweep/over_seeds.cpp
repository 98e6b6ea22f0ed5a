#include "sweep/over_seeds.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sweep/run_name.h"

namespace jigsaw::inline sweep {
namespace {

constexpr const char* kSeed = "seed";

void add_up(SeedGroup& group, const std::vector<SweepRow>& rows) {
  std::vector<double> scores;
  for (const std::size_t row : group.rows) {
    if (rows[row].score) scores.push_back(*rows[row].score);
  }
  group.count = std::ssize(scores);
  if (scores.empty()) return;
  const auto n = static_cast<double>(scores.size());
  double sum = 0, squares = 0;
  for (const double score : scores) sum += score;
  group.mean = sum / n;
  for (const double score : scores) squares += (score - *group.mean) * (score - *group.mean);
  if (scores.size() > 1) group.deviation = std::sqrt(squares / (n - 1));
}

}  // namespace

std::vector<SeedGroup> over_seeds(const std::vector<SweepRow>& rows) {
  std::vector<SeedGroup> groups;
  std::map<std::string, std::size_t> places;
  std::set<std::string> keys;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    Assignment set = rows[row].run.set;
    set.erase(kSeed);
    for (const auto& [key, value] : set) keys.insert(key);
    const auto [place, is_new] = places.try_emplace(Json(set).dump(), groups.size());
    if (is_new) groups.push_back({std::move(set), "", {}, 0, {}, {}});
    groups[place->second].rows.push_back(row);
  }
  if (groups.size() == rows.size()) return {};
  for (SeedGroup& group : groups) {
    group.name = run_name(group.set, {keys.begin(), keys.end()});
    add_up(group, rows);
  }
  return groups;
}

}  // namespace jigsaw::inline sweep
