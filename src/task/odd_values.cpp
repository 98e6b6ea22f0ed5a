#include "task/odd_values.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "base/text.h"
#include "fields/fill_values.h"

namespace jigsaw::inline task {

namespace {

constexpr double kFar = 100;  // deviations

std::string odd_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

}  // namespace

std::optional<std::string> odd_values_warning(const Statistics& statistics) {
  std::vector<std::string> odd;
  for (const auto& [name, seen] : statistics.seen) {
    const auto field = statistics.fields.find(name);
    if (field == statistics.fields.end() || seen.missing >= 1) continue;
    const FieldStatistics& of = field->second;
    if (!of.transform.empty() && of.transform != "min_max" && of.transform != "none") continue;
    const bool normal = of.transform.empty();  // of others mean and deviation are other numbers
    const bool low = is_usual_fill(seen.least) || (normal && of.mean - seen.least > kFar * of.deviation);
    const bool high = is_usual_fill(seen.largest) ||
                      (normal && seen.least < 0 && seen.largest - of.mean > kFar * of.deviation);
    if (low) odd.push_back(concat(name, " ", odd_number(seen.least)));
    if (high) odd.push_back(concat(name, " ", odd_number(seen.largest)));
  }
  if (odd.empty()) return std::nullopt;
  return concat(
      "values in data.train that may stand for missing ones, and count as numbers: ", join(odd, ", "),
      "; if so, the files should declare them by the attribute _FillValue or missing_value, or data.missing "
      "name them");
}

}  // namespace jigsaw::inline task
