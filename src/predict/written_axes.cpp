#include "predict/written_axes.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "files/file_variable.h"

namespace jigsaw::inline predict {

namespace {

/// The first of "x", "a_x", "a_x_2", … of "a/x" that can be taken.
template <typename CanBeTaken>
std::string first_name(const std::string& name, const CanBeTaken& can_be_taken) {
  std::string candidate = without_groups(name), with_groups = name;
  if (can_be_taken(candidate)) return candidate;
  std::ranges::replace(with_groups, '/', '_');
  candidate = with_groups;
  for (int number = 2; !can_be_taken(candidate); ++number) candidate = concat(with_groups, "_", number);
  return candidate;
}

/// Missing ones are equal to each other.
bool same_values(const std::vector<double>& a, const std::vector<double>& b) {
  return std::ranges::equal(a, b, [](double x, double y) { return x == y || (x != x && y != y); });
}

}  // namespace

std::string WrittenAxes::add_dimension(const std::string& name, std::int64_t extent,
                                       const std::vector<double>& values,
                                       const std::vector<std::string>& others) {
  const std::string written = first_name(name, [&](const std::string& candidate) {
    if (std::ranges::find(others, candidate) != others.end()) return false;
    const auto known = std::ranges::find(dimensions_, candidate, &Dimension::name);
    if (known == dimensions_.end()) return !is_coordinate(candidate);
    return known->extent == extent && same_values(known->values, values);
  });
  if (std::ranges::find(dimensions_, written, &Dimension::name) == dimensions_.end())
    dimensions_.push_back({written, extent, values});
  return written;
}

bool WrittenAxes::is_coordinate(const std::string& name) const {
  return std::ranges::find(all_, name, &OutputCoordinate::name) != all_.end();
}

/// Renames it, unless it is that of a dim, which has its name.
void WrittenAxes::add_coordinate(OutputCoordinate& coordinate) {
  const auto same = [&](const OutputCoordinate& other) {
    return other.dimensions == coordinate.dimensions && same_values(other.values, coordinate.values) &&
           other.texts == coordinate.texts && other.numbers == coordinate.numbers;
  };
  if (coordinate.dimensions != std::vector{coordinate.name}) {
    coordinate.name = first_name(coordinate.name, [&](const std::string& candidate) {
      const auto known = std::ranges::find(all_, candidate, &OutputCoordinate::name);
      if (known != all_.end()) return same(*known);
      return std::ranges::find(dimensions_, candidate, &Dimension::name) == dimensions_.end();
    });
  }
  if (!is_coordinate(coordinate.name)) all_.push_back(coordinate);
}

ImageAxes WrittenAxes::add(ImageAxes axes) {
  std::map<std::string, std::string> written;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < axes.names.size(); ++i) {
    const std::string& name = axes.names[i];
    const OutputCoordinate* coordinate = axes.along(name);
    names.push_back(add_dimension(name, axes.extents.at(i),
                                  coordinate == nullptr ? std::vector<double>() : coordinate->values, names));
    written[name] = names.back();
  }
  axes.names = names;
  for (OutputCoordinate& coordinate : axes.coordinates) {
    const bool of_dimension = coordinate.dimensions == std::vector{coordinate.name};
    for (std::string& dimension : coordinate.dimensions) dimension = written.at(dimension);
    if (of_dimension) coordinate.name = coordinate.dimensions[0];
    add_coordinate(coordinate);
  }
  if (axes.mapping) add_coordinate(*axes.mapping);
  return axes;
}

}  // namespace jigsaw::inline predict
