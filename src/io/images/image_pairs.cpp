#include "images/image_pairs.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "files/coordinate_units.h"
#include "images/image_axes.h"
#include "times/time_axis.h"

namespace jigsaw::inline images {

namespace {

/// What float32 leaves between an sform and a qform that say the same, in edges of a voxel.
constexpr double kRoundedForms = 1e-2;

/// An image of a variable, and what stands along its dims.
struct PairedImage {
  ImageSource source;
  ImageAxes axes;

  std::string where() const { return concat(source.data_set, " in ", source.path); }
  /// The number of a dim; nothing where there is none, or the file does not name its dims.
  std::optional<std::size_t> position(ImageDim dim) const {
    const auto found = std::ranges::find(source.dims, dim);
    if (found == source.dims.end() || axes.names.size() != source.dims.size()) return std::nullopt;
    return static_cast<std::size_t>(found - source.dims.begin());
  }
  const OutputCoordinate* along(ImageDim dim) const {
    const auto at = position(dim);
    return at ? axes.along(axes.names[*at]) : nullptr;
  }
};

std::string attribute_of(const OutputCoordinate& coordinate, const char* attribute) {
  const auto found = coordinate.texts.find(attribute);
  return found == coordinate.texts.end() ? "" : found->second;
}

/// Latitudes, longitudes, or what else a coordinate counts, in which unit.
std::string counted_by(const OutputCoordinate& coordinate) {
  const std::string units = attribute_of(coordinate, "units"),
                    standard_name = attribute_of(coordinate, "standard_name");
  if (counts_north(units)) return "latitudes";
  if (counts_east(units)) return "longitudes";
  return concat(standard_name.empty() ? without_groups(coordinate.name) : standard_name, " ", units);
}

bool is_of_place(const OutputCoordinate& coordinate) {
  return counts_north(attribute_of(coordinate, "units")) || counts_east(attribute_of(coordinate, "units"));
}

std::string ends_of(const OutputCoordinate& coordinate) {
  char words[80];
  std::snprintf(words, sizeof words, "%.6g to %.6g", coordinate.values.front(), coordinate.values.back());
  return words;
}

bool values_differ(const OutputCoordinate& a, const OutputCoordinate& b) {
  if (a.values.size() != b.values.size() || a.values.empty()) return false;
  const bool circle = counts_east(attribute_of(a, "units"));
  const double count = static_cast<double>(a.values.size()),
               step = std::abs(a.values.back() - a.values.front()) / std::max(count - 1, 1.0);
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    double apart = std::abs(a.values[i] - b.values[i]);
    if (circle) apart = std::abs(std::remainder(apart, 360));
    if (apart > 0.01 * step + 1e-6 * std::abs(a.values[i])) return true;
  }
  return false;
}

/// Of a spatial dim; "" where nothing is wrong.
std::string fault_along(ImageDim dim, const PairedImage& a, const PairedImage& b) {
  const OutputCoordinate *one = a.along(dim), *other = b.along(dim);
  if (one == nullptr || other == nullptr) return "";
  if (counted_by(*one) == counted_by(*other) ? !values_differ(*one, *other)
                                             : !(is_of_place(*one) && is_of_place(*other)))
    return "";
  return concat(without_groups(one->name), " of ", a.where(), " is ", ends_of(*one), " and ",
                without_groups(other->name), " of ", b.where(), " ", ends_of(*other));
}

/// Dims of the same names in another order.
std::string fault_of_order(const PairedImage& a, const PairedImage& b) {
  std::vector<std::string> one, other;
  for (const ImageDim dim : a.source.dims) {
    const auto here = a.position(dim), there = b.position(dim);
    if (!here || !there || dim == ImageDim::kChannel) continue;
    one.push_back(without_groups(a.axes.names[*here]));
    other.push_back(without_groups(b.axes.names[*there]));
  }
  if (one == other || !std::ranges::is_permutation(one, other)) return "";
  return concat("the dims of ", a.where(), " are ", join(one, ", "), " and those of ", b.where(), " ",
                join(other, ", "));
}

std::vector<Time> sample_times(const OutputCoordinate& coordinate) {
  if (!counts_since(attribute_of(coordinate, "units"))) return {};
  return decode_times(coordinate.values, attribute_of(coordinate, "units"),
                      attribute_of(coordinate, "calendar"), concat("the coordinate ", coordinate.name));
}

/// Of the times of the image itself; "" where nothing is wrong.
std::string fault_in_time(const PairedImage& a, const PairedImage& b) {
  const OutputCoordinate *one = a.along(ImageDim::kSample), *other = b.along(ImageDim::kSample);
  if (one == nullptr || other == nullptr) return "";
  try {
    const Calendar calendar = parse_calendar(attribute_of(*one, "calendar"), one->name);
    const std::vector<Time> here = sample_times(*one), there = sample_times(*other);
    const auto i = static_cast<std::size_t>(a.source.sample), j = static_cast<std::size_t>(b.source.sample);
    if (i >= here.size() || j >= there.size()) return "";
    if (calendar != parse_calendar(attribute_of(*other, "calendar"), other->name)) return "";
    const auto steps = std::max<std::int64_t>(std::ssize(here) - 1, 1);
    if (2 * std::abs(here[i] - there[j]) <= std::abs(here.back() - here.front()) / steps) return "";
    return concat(without_groups(one->name), " of ", a.where(), " is ", format_time(here[i], calendar),
                  " and ", without_groups(other->name), " of ", b.where(), " ",
                  format_time(there[j], calendar), " where they are paired");
  } catch (const DataError&) {
    return "";  // times that cannot be read
  }
}

std::string fault_of(const PairedImage& a, const PairedImage& b) {
  std::string fault = fault_of_order(a, b);
  for (const ImageDim dim : {ImageDim::kDepth, ImageDim::kHeight, ImageDim::kWidth})
    if (fault.empty()) fault = fault_along(dim, a, b);
  return fault.empty() ? fault_in_time(a, b) : fault;
}

}  // namespace

std::optional<std::string> order_warning(const ImageFiles& files, const std::vector<std::string>& variables) {
  if (variables.size() < 2 || files.count() == 0) return std::nullopt;
  const auto by_order = std::ranges::find_if(
      variables, [&](const std::string& variable) { return files.paired_by_order(variable); });
  if (by_order == variables.end()) return std::nullopt;
  return concat(
      "the files of ", *by_order, " and ", variables[0],
      " are paired in the order of their names, for what * stands for is alike in none of them: the "
      "first pair is ",
      files.source(*by_order, 0).path, " and ", files.source(variables[0], 0).path);
}

std::optional<std::string> forms_warning(const ImageFiles& files, const std::vector<std::string>& variables,
                                         std::optional<double> alignment) {
  std::set<int> seen;
  std::int64_t count = 0;
  std::string first;
  for (const std::string& variable : variables) {
    for (std::int64_t image = 0; image < files.count(); ++image) {
      const ImageSource source = files.source(variable, image);
      if (source.nifti == nullptr || !seen.insert(source.file).second) continue;
      const NiftiHeader::Contradiction& found = source.nifti->contradiction;
      const double edge = std::ranges::min(source.nifti->spacing);
      const bool apart = alignment && found.origins > (*alignment + kRoundedForms) * edge;
      if (!found.in_direction && !apart) continue;
      if (++count > 1) continue;
      first = concat(source.path, ", whose ",
                     found.in_direction ? "axes run another way by the one than by the other"
                                        : "first point lies elsewhere by the one than by the other");
    }
  }
  if (count == 0) return std::nullopt;
  return concat("sform and qform contradict each other in ", counted(count, "file"), ", such as ", first,
                "; the sform is taken");
}

std::vector<std::string> pairing_warnings(const ImageFiles& files,
                                          const std::vector<std::string>& variables) {
  std::vector<std::string> warnings;
  if (variables.size() < 2 || files.count() == 0) return warnings;
  if (auto warning = order_warning(files, variables)) warnings.push_back(*std::move(warning));
  const auto side = [&](const std::string& variable, std::int64_t image) {
    PairedImage result{files.source(variable, image), {}};
    result.axes = read_image_axes(result.source.path, result.source.data_set, 1);
    return result;
  };
  const std::pair first{side(variables[0], 0), side(variables[0], files.count() - 1)};
  for (std::size_t v = 1; v < variables.size(); ++v) {
    std::string fault = fault_of(first.first, side(variables[v], 0));
    if (fault.empty() && files.count() > 1)
      fault = fault_of(first.second, side(variables[v], files.count() - 1));
    if (fault.empty()) continue;
    warnings.push_back(concat("images and their points are paired in the order of the files, but ", fault));
  }
  return warnings;
}

}  // namespace jigsaw::inline images
