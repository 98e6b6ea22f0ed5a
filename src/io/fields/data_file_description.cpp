// What a file says of coordinates and members, for files that are written and for messages.
#include <numeric>
#include <tuple>

#include "base/error.h"
#include "base/printable.h"
#include "base/text.h"
#include "fields/data_file.h"
#include "files/coordinate_values.h"

namespace jigsaw::inline fields {

std::vector<double> DataFile::member_numbers(const std::string& dimension, std::int64_t members) {
  const FileVariable* const variable = coordinate_of(*file_, dimension);
  if (variable != nullptr && variable->numeric()) return coordinates(dimension);
  std::vector<double> numbers(static_cast<std::size_t>(members));
  std::iota(numbers.begin(), numbers.end(), 0.0);
  return numbers;
}

std::string DataFile::describe_members(const std::string& dimension, std::int64_t members) {
  constexpr std::size_t kMostTold = 8, kLongestName = 40;
  const std::vector<double> numbers = member_numbers(dimension, members);
  const FileVariable* const variable = file_->find(dimension);
  std::vector<std::string> names, told;
  if (variable != nullptr && !variable->numeric() && variable->shape.rank() > 0 &&
      variable->dimensions[0] == dimension) {
    try {
      names = file_->read_texts(*variable);
    } catch (const DataError&) {  // they are told by their numbers alone
    }
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::string name = i < names.size() ? printable(names[i].substr(0, kLongestName)) : "";
    if (i < kMostTold || i + 1 == numbers.size()) {
      told.push_back(name.empty() ? concat(numbers[i]) : concat(numbers[i], " (", name, ")"));
    } else if (i == kMostTold) {
      told.emplace_back("…");
    }
  }
  return join(told, ", ");
}

CoordinateDescription DataFile::describe(const FileVariable& variable) {
  CoordinateDescription result{without_groups(variable.name), {}, variable.single_precision, {}, "", {}};
  for (const char* attribute : {"units", "standard_name", "long_name", "axis", "positive"}) {
    if (const std::string text = variable.text(attribute); !text.empty()) result.texts[attribute] = text;
  }
  return result;
}

CoordinateDescription DataFile::describe_scalar(const FileVariable& scalar) {
  CoordinateDescription result = describe(scalar);
  result.values = file_->read_all(scalar);
  return result;
}

/// The limits of the cells of a coordinate variable, or null.
const FileVariable* DataFile::bounds_of(const FileVariable& coordinate) const {
  const FileVariable* const bounds = file_->find_from(coordinate, coordinate.text("bounds"));
  const bool fits = bounds != nullptr && bounds->numeric() && coordinate.shape.rank() == 1 &&
                    bounds->shape == Shape({coordinate.shape[0], 2});
  return fits ? bounds : nullptr;
}

CoordinateDescription DataFile::describe(const std::string& dimension) {
  for (const auto& [axis, name, units] :
       {std::tuple{2, "latitude", "degrees_north"}, std::tuple{3, "longitude", "degrees_east"}}) {
    if (is_given(dimension, axis))
      return {name, {{"units", units}, {"standard_name", name}}, false, coordinates(dimension), "", {}};
  }
  const FileVariable* variable = coordinate_of(*file_, dimension);
  if (variable == nullptr) return {without_groups(dimension), {}, false, {}, "", {}};
  CoordinateDescription result = describe(*variable);
  if (!variable->numeric()) return result;
  CoordinateValues decoded = read_coordinate(*file_, *variable);
  result.values = std::move(decoded.values);
  result.single_precision = decoded.single_precision;
  if (const FileVariable* const bounds = bounds_of(*variable)) {
    result.bounds_name = without_groups(bounds->name);
    result.bounds = file_->read_all(*bounds);
  }
  return result;
}

}  // namespace jigsaw::inline fields
