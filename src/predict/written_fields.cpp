#include "predict/written_fields.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "base/printable.h"
#include "base/text.h"
#include "files/field_attributes.h"

namespace jigsaw::inline predict {

namespace {

/// Rows and columns of a chunk at most; 256 KiB.
constexpr std::int64_t kChunkExtent = 256;
/// Chunks of a variable that are kept until they are whole, in bytes at most.
constexpr std::int64_t kMostCachedBytes = std::int64_t{64} << 20;

/// An extent in equal parts of at most `most`: their extent.
std::size_t part_of(std::int64_t extent, std::int64_t most) {
  const std::int64_t parts = (extent + most - 1) / most;
  return static_cast<std::size_t>((extent + parts - 1) / parts);
}

std::vector<float> in_single_precision(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

void write_numbers(NetcdfOutput& file, int variable, const std::vector<double>& values, bool single) {
  if (single) {
    file.write(variable, in_single_precision(values));
  } else {
    file.write(variable, values);
  }
}

NetcdfOutput::Type type_of(const CoordinateDescription& description) {
  return description.single_precision ? NetcdfOutput::Type::kFloat : NetcdfOutput::Type::kDouble;
}

/// A field of one variable by the level that it has in its own file.
struct FieldLevel {
  std::size_t field = 0;
  double value = 0;
  std::vector<double> bounds;  ///< two, or none
};

FieldLevel level_of(const FieldDescription& description, std::size_t field) {
  const CoordinateDescription& level = *description.level;
  const auto at = static_cast<std::size_t>(description.level_position);
  FieldLevel result{field, level.values[at], {}};
  if (!level.bounds.empty()) result.bounds = {level.bounds[2 * at], level.bounds[2 * at + 1]};
  return result;
}

/// In the order of the file that has them all, or else, as far as files say, from the first to the last.
void order_levels(std::vector<FieldLevel>& levels, const std::vector<FieldDescription>& fields) {
  const auto in_file = [&](const FieldLevel& level) -> const FieldDescription& {
    return fields[level.field];
  };
  const std::vector<double>& first = in_file(levels.front()).level->values;
  if (std::ranges::all_of(levels, [&](const FieldLevel& l) { return in_file(l).level->values == first; })) {
    std::ranges::sort(levels, {}, [&](const FieldLevel& l) { return in_file(l).level_position; });
  } else if (levels.front().value > levels.back().value) {
    std::ranges::sort(levels, std::greater(), &FieldLevel::value);
  } else {
    std::ranges::sort(levels, {}, &FieldLevel::value);
  }
}

/// As a variable of its own it says its level in words.
FieldDescription described(FileSet& files, const Field& field, bool split_levels) {
  FieldDescription description = files.describe(field);
  if (!split_levels || !description.level) return description;
  const double level = description.level->values[static_cast<std::size_t>(description.level_position)];
  std::string& long_name = description.texts["long_name"];
  const std::string units = description.level->texts["units"];
  long_name = concat(long_name.empty() ? field.variable : long_name, " at ", description.level->name, " ",
                     level, units.empty() ? "" : " ", units);
  description.level.reset();
  return description;
}

}  // namespace

int WrittenFields::bounds_dimension() {
  if (bounds_ < 0) bounds_ = file_.add_dimension("bounds", 2);
  return bounds_;
}

void WrittenFields::take_fields(FileSet& files, const std::vector<Field>& fields, bool split_levels) {
  places_.resize(fields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    fields_.push_back(described(files, fields[i], split_levels));
    const std::string name = split_levels ? fields[i].name() : fields[i].variable;
    const auto known = std::ranges::find(variables_, name, &Variable::name);
    places_[i].variable = static_cast<std::size_t>(known - variables_.begin());
    if (known == variables_.end()) variables_.push_back({name, {}});
    variables_[places_[i].variable].fields.push_back(i);
  }
  for (const Variable& variable : variables_) taken_.insert(variable.name);
  for (const FieldDescription& field : fields_)
    if (field.level) taken_.insert(field.level->name);
}

void WrittenFields::define_places(FileSet& files, const std::vector<Field>& fields, bool split_levels,
                                  const NamedPlaces& places) {
  take_fields(files, fields, split_levels);
  named_places_.emplace(file_, places);
  plane_ = 1;
  axes_.push_back({named_places_->dimension(), -1, -1, named_places_->size(), {}});
  of_points_ = PlaceAxis::coordinates();
}

void WrittenFields::define_grid(FileSet& files, const std::vector<Field>& fields, bool split_levels) {
  take_fields(files, fields, split_levels);
  const Shape extents = files.grid().shape();
  add_axis(fields_.front().rows, extents[0]);
  add_axis(fields_.front().columns, extents[1]);
  if (!files.grid().geographic) define_points(files.describe_points(fields.front()));
}

/// A scalar coordinate as the input has it, once. @return  its name here
std::string WrittenFields::add_scalar(const CoordinateDescription& description) {
  for (const Scalar& known : scalars_) {
    const CoordinateDescription& there = known.description;
    if (there.name == description.name && there.values == description.values &&
        there.texts == description.texts)
      return known.name;
  }
  const std::string name = description.name + (taken_.contains(description.name) ? "_" : "");
  Scalar scalar{description, -1, -1, file_.free_name(name)};
  scalar.variable = add_described(scalar.name, description, {});
  if (!description.bounds.empty()) {
    const std::string bounds = file_.free_name(description.bounds_name);
    file_.add_text(scalar.variable, "bounds", bounds);
    scalar.bounds = file_.add_variable(bounds.c_str(), type_of(description), {bounds_dimension()});
  }
  scalars_.push_back(scalar);
  return scalar.name;
}

/// Number of the axis of these values, which is added unless it is there. Axes of one name and other values
/// get names of their own. One without values is a dimension alone.
std::size_t WrittenFields::add_axis(const CoordinateDescription& description, std::int64_t extent) {
  int same_name = 0;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].description.name != description.name) continue;
    if (axes_[i].description.values == description.values) return i;
    ++same_name;
  }
  const NetcdfOutput::Type type = type_of(description);
  const std::string suffix = same_name == 0 ? "" : concat("_", same_name + 1);
  const std::string name = description.name + suffix;
  Axis axis{file_.add_dimension(name.c_str(), static_cast<std::size_t>(extent)), -1, -1, extent, description};
  if (!description.values.empty()) axis.variable = add_described(name, description, {axis.dimension});
  if (!description.bounds.empty()) {
    const std::string bounds = description.bounds_name + suffix;
    file_.add_text(axis.variable, "bounds", bounds);
    axis.bounds = file_.add_variable(bounds.c_str(), type, {axis.dimension, bounds_dimension()});
  }
  axes_.push_back(std::move(axis));
  return axes_.size() - 1;
}

/// A variable with the attributes of a coordinate.
int WrittenFields::add_described(const std::string& name, const CoordinateDescription& description,
                                 const std::vector<int>& dimensions) {
  const int variable = file_.add_variable(name.c_str(), type_of(description), dimensions);
  for (const auto& [attribute, text] : description.texts) file_.add_text(variable, attribute.c_str(), text);
  return variable;
}

/// A variable of numbers at the points of the grid, compressed.
int WrittenFields::add_of_points(const CoordinateDescription& description) {
  const int variable = add_described(description.name, description, {axes_[0].dimension, axes_[1].dimension});
  file_.add_chunks(variable, {part_of(axes_[0].extent, kChunkExtent), part_of(axes_[1].extent, kChunkExtent)},
                   0);
  return variable;
}

void WrittenFields::define_points(const PointsDescription& described) {
  points_ = {.latitude = add_of_points(described.latitude),
             .longitude = add_of_points(described.longitude),
             .single_latitude = described.latitude.single_precision,
             .single_longitude = described.longitude.single_precision};
  of_points_ = {described.latitude.name, described.longitude.name};
  if (described.mapping == nullptr) return;
  const FileVariable& mapping = *described.mapping;
  const std::string name = DataFile::describe(mapping).name;
  points_->mapping_name = name;
  points_->mapping = file_.add_variable(name.c_str(), NetcdfOutput::Type::kInt, {});
  for (const auto& [attribute, text] : mapping.texts) {
    if (says_mapping(attribute)) file_.add_text(points_->mapping, attribute.c_str(), text);
  }
  for (const auto& [attribute, numbers] : mapping.numbers) {
    if (says_mapping(attribute)) file_.add_numbers(points_->mapping, attribute.c_str(), numbers);
  }
}

/// The axis of the levels of these fields, which may stand in several files.
std::size_t WrittenFields::add_levels(const std::vector<std::size_t>& members) {
  std::vector<FieldLevel> levels;
  for (const std::size_t member : members) levels.push_back(level_of(fields_[member], member));
  const auto unit = [&](std::size_t member) {
    const auto& texts = fields_[member].level->texts;
    return texts.contains("units") ? texts.at("units") : std::string();
  };
  for (const std::size_t member : members) {
    if (unit(member) == unit(members.front())) continue;
    throw DataError(
        concat("the levels of ", fields_[member].level->name, " stand in ", printable(unit(members.front())),
               " in one file and in ", printable(unit(member)),
               " in another, and no axis has both; --split-levels writes each as a variable of its own"));
  }
  order_levels(levels, fields_);
  CoordinateDescription axis = *fields_[members.front()].level;
  axis.values.clear();
  axis.bounds.clear();
  const bool bounded =
      std::ranges::none_of(levels, [](const FieldLevel& level) { return level.bounds.empty(); });
  for (std::size_t place = 0; place < levels.size(); ++place) {
    places_[levels[place].field].level = static_cast<std::int64_t>(place);
    axis.values.push_back(levels[place].value);
    if (bounded)
      axis.bounds.insert(axis.bounds.end(), levels[place].bounds.begin(), levels[place].bounds.end());
  }
  return add_axis(axis, std::ssize(levels));
}

int WrittenFields::define(std::size_t variable, const Definition& definition) {
  const std::vector<std::size_t>& members = variables_[variable].fields;
  std::vector<int> dimensions = definition.leading;
  std::vector<std::size_t> chunks(dimensions.size(), 1);
  if (fields_[members.front()].level) {
    dimensions.push_back(axes_[add_levels(members)].dimension);
    chunks.push_back(1);
  }
  std::int64_t at_border = 0;
  std::size_t chunk_points = 1;
  for (std::size_t axis = 0; axis < plane_; ++axis) {
    const std::int64_t extent = axes_[axis].extent;
    dimensions.push_back(axes_[axis].dimension);
    chunks.push_back(part_of(extent, plane_ > 1 ? kChunkExtent : kChunkExtent * kChunkExtent));
    chunk_points *= chunks.back();
    at_border += extent / static_cast<std::int64_t>(chunks.back()) + 1;
  }
  std::vector<std::string> coordinates = of_points_;
  coordinates.insert(coordinates.end(), definition.auxiliary.begin(), definition.auxiliary.end());
  for (const CoordinateDescription& scalar : fields_[members.front()].scalars)
    coordinates.push_back(add_scalar(scalar));
  const int number =
      file_.add_variable(file_.free_name(definition.name).c_str(), NetcdfOutput::Type::kFloat, dimensions);
  const auto chunk_bytes = static_cast<std::int64_t>(chunk_points * sizeof(float));
  const std::int64_t cache = std::min(definition.planes * at_border * chunk_bytes, kMostCachedBytes);
  file_.add_chunks(number, chunks, static_cast<std::size_t>(cache));
  file_.add_number(number, "_FillValue", NetcdfOutput::kFill);
  for (const auto& [attribute, text] : definition.texts) file_.add_text(number, attribute.c_str(), text);
  for (const auto& [attribute, numbers] : definition.numbers)
    file_.add_numbers(number, attribute.c_str(), numbers);
  if (!coordinates.empty()) file_.add_text(number, "coordinates", join(coordinates, " "));
  if (points_ && points_->mapping >= 0) file_.add_text(number, "grid_mapping", points_->mapping_name);
  return number;
}

void WrittenFields::write_coordinates(FileSet& files) {
  for (const Scalar& scalar : scalars_) {
    const bool single = scalar.description.single_precision;
    write_numbers(file_, scalar.variable, scalar.description.values, single);
    if (scalar.bounds >= 0) write_numbers(file_, scalar.bounds, scalar.description.bounds, single);
  }
  for (const Axis& axis : axes_) {
    if (axis.variable < 0) continue;
    const bool single = axis.description.single_precision;
    write_numbers(file_, axis.variable, axis.description.values, single);
    if (axis.bounds >= 0) write_numbers(file_, axis.bounds, axis.description.bounds, single);
  }
  if (named_places_) named_places_->write(file_);
  if (!points_) return;
  const PointPlaces places = files.read_degrees(Box::whole(files.grid().shape()));
  write_numbers(file_, points_->latitude, places.latitude, points_->single_latitude);
  write_numbers(file_, points_->longitude, places.longitude, points_->single_longitude);
  if (points_->mapping >= 0) file_.write(points_->mapping, std::vector<int>{0});
}

void WrittenFields::write(int variable, std::size_t field, const std::vector<std::int64_t>& leading,
                          const Box& box, std::span<float> values) {
  for (float& value : values) {
    if (!std::isfinite(value)) value = NetcdfOutput::kFill;
  }
  Box slab;
  const auto add = [&](std::int64_t begin, std::int64_t extent) {
    slab.begin.append(begin);
    slab.extent.append(extent);
  };
  for (const std::int64_t place : leading) add(place, 1);
  if (places_[field].level >= 0) add(places_[field].level, 1);
  for (int d = 0; d < box.extent.rank(); ++d) add(box.begin[d], box.extent[d]);
  file_.write(variable, slab, values);
}

}  // namespace jigsaw::inline predict
