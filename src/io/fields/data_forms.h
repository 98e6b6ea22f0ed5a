#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "config/form.h"
#include "config/json.h"
#include "fields/data_options.h"

namespace jigsaw::inline fields {

// How values of the section `data` are written in a configuration.

/// A level as a number, or a pressure with its unit, which becomes a number of hPa.
FormPtr<double> level_form();
/// What durations may be at most, either way: 87600 h.
inline constexpr Time kMostDuration = 3650 * kDay;
/// What a configuration gives as hours, or as a text with a unit; nothing for what is none.
std::optional<Time> duration_of(const Json& json);
/// Hours, or a text as "5 min".
FormPtr<Time> duration_form(Time least, Time most);
/// As a configuration has it: 6, "5 min".
Json duration_json(Time time);
/// In hours, whole ones as integers.
Json hours_json(Time time);
/// Variables by name, or as sections with levels.
FormPtr<std::vector<VariableOptions>> variables_form();
/// A pair of dates, or slices of images.
FormPtr<DataPart> part_form();
/// @param why_sample  what the dimension "sample" is, for docs.
FormPtr<ImageDim> dim_form(const std::string& why_sample);

/// Points along an axis; the coordinates of as many fit into memory anywhere.
inline constexpr std::int64_t kLongestAxis = 10'000'000;

/// Whether no two are equal.
template <typename T>
bool distinct(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return std::adjacent_find(values.begin(), values.end()) == values.end();
}

}  // namespace jigsaw::inline fields
