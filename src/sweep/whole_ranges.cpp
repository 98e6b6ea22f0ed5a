#include "sweep/whole_ranges.h"

#include <cmath>

#include "base/text.h"

namespace jigsaw::inline sweep {

namespace {

constexpr double kLargestWhole = 9e15;  // of which a double tells neighbours and halves apart

}  // namespace

void draw_whole_numbers(SearchSpace& space, const std::function<bool(const Assignment&)>& accepts) {
  for (auto& [name, key] : space.keys) {
    if (!key.is_range() || key.integer) continue;
    const double whole = std::ceil(*key.from), behind = whole + 0.5, before = whole - 0.5;
    if (whole > *key.to || std::abs(whole) > kLargestWhole) continue;
    const double between = behind <= *key.to ? behind : before;
    if (between < *key.from) continue;
    Assignment run(key.when.begin(), key.when.end());
    run[name] = static_cast<std::int64_t>(whole);
    if (!accepts(run)) continue;
    run[name] = between;
    key.integer = !accepts(run);
  }
}

std::string wants_whole_numbers(const SearchSpace& space, const Assignment& run,
                                const std::function<bool(const Assignment&)>& accepts) {
  if (accepts(run)) return "";  // something else was refused
  Assignment rounded = run;
  std::vector<std::string> names;
  for (auto& [name, value] : rounded) {
    const auto key = space.keys.find(name);
    if (key == space.keys.end() || !key->second.is_range() || !value.is_number_float()) continue;
    const double number = value.get<double>();
    if (number == std::floor(number) || std::abs(number) > kLargestWhole) continue;
    value = static_cast<std::int64_t>(std::ceil(number));
    names.push_back(quote(name));
  }
  if (names.empty() || !accepts(rounded)) return "";
  return concat("; \"integer\": true beside \"from\" and \"to\" of ", join(names, " or "),
                " draws whole numbers");
}

}  // namespace jigsaw::inline sweep
