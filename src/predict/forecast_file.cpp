#include "predict/forecast_file.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string_view>

#include "base/error.h"
#include "base/printable.h"
#include "base/text.h"
#include "files/field_attributes.h"

namespace jigsaw::inline predict {

namespace {

/// Rows and columns of a chunk at most; 256 KiB.
constexpr std::int64_t kChunkExtent = 256;
/// Starts and leads of a chunk of times at most.
constexpr std::size_t kChunkStarts = 64, kChunkLeads = 256;
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

LeadUnit lead_unit(Time lead_time, bool of_months) {
  if (of_months) return {"months", kMonth};
  if (lead_time % kHour == 0) return {"hours", kHour};
  return lead_time % kMinute == 0 ? LeadUnit{"minutes", kMinute} : LeadUnit{"seconds", 1};
}

void add_lead_attributes(NetcdfOutput& file, int variable, const LeadUnit& unit) {
  if (unit.seconds == kMonth) {  // of which CF has no unit: they differ in length
    file.add_text(variable, "units", "1");
    file.add_text(variable, "long_name", "months since the start of the forecast");
    return;
  }
  file.add_text(variable, "units", unit.name);
  file.add_text(variable, "standard_name", "forecast_period");
  file.add_text(variable, "long_name", "time since the start of the forecast");
}

ForecastFile::ForecastFile(FileSet& files, const ForecastContents& contents, OutputFile& output,
                           std::int64_t overlap)
    : output_(output), file_(output.temporary(), NetcdfOutput::Format::kNetcdf4) {
  months_ = files.of_months();
  times_ = times_of(contents, files.file_calendar());
  define_times(contents, files.file_calendar());
  if (contents.members > 1) define_members(contents.members);
  if (files.member()) define_member(*files.member());
  define_fields(files, contents, overlap);
  file_.add_text(NetcdfOutput::kFile, "Conventions", "CF-1.10");
  for (const auto& [name, text] : contents.attributes)
    file_.add_text(NetcdfOutput::kFile, name.c_str(), text);
  file_.end_definitions();
  write_coordinates(contents);
  if (member_variable_ >= 0) write_numbers(file_, member_variable_, files.member()->values, false);
  if (points_) write_points(files);
}

/// A month is written as its middle.
ForecastFile::Times ForecastFile::times_of(const ForecastContents& contents, Calendar calendar) const {
  const bool hours = contents.lead_time % kHour == 0 &&
                     std::ranges::all_of(contents.starts, [](Time start) { return start % kHour == 0; });
  const double unit = hours ? static_cast<double>(kHour) : 1.0;
  const auto written = [&](Time time) { return static_cast<double>(time) / unit; };
  const auto middle = [&](Time time) { return written(months_ ? middle_of_month(time, calendar) : time); };
  const WrittenLeads leads = contents.leads();
  const Time step = contents.lead_time;
  Times times{concat(hours ? "hours" : "seconds", " since 1970-01-01 00:00:00"), {}, {}, {}, {}, {}, {}};
  for (const Time start : contents.starts) {
    times.starts.push_back(middle(start));
    for (int lead = 0; lead < leads.count(); ++lead) {
      const Time end = start + leads.step_of(lead) * step, begin = end - leads.every * step;
      times.valid.push_back(middle(end));
      if (!contents.means) continue;
      // From the beginning of the first to that of the month behind the last, however many a step has.
      times.bounds.push_back(written(months_ ? begin_of_month(begin + step, calendar) : begin));
      times.bounds.push_back(written(months_ ? begin_of_month(end + kMonth, calendar) : end));
    }
  }
  const LeadUnit of_leads = lead_unit(step, months_);
  const auto in_unit = [&](int steps) { return static_cast<int>(steps * step / of_leads.seconds); };
  for (int lead = 0; lead < leads.count(); ++lead) {
    const int last = leads.step_of(lead);
    times.leads.push_back(in_unit(last));
    times.lead_bounds.push_back(in_unit(last - leads.every));
    times.lead_bounds.push_back(in_unit(last));
  }
  if (contents.means) {
    std::string_view name = of_leads.name;  // of several
    if (in_unit(1) == 1) name.remove_suffix(1);
    times.cell_methods = concat("lead_time: mean (interval: ", in_unit(1), " ", name, ")");
  }
  return times;
}

void ForecastFile::define_times(const ForecastContents& contents, Calendar calendar) {
  using Type = NetcdfOutput::Type;
  time_ = file_.add_growing_dimension("time");
  lead_ = file_.add_growing_dimension("lead_time");
  const std::size_t starts = std::clamp<std::size_t>(times_.starts.size(), 1, kChunkStarts),
                    leads = std::clamp<std::size_t>(times_.leads.size(), 1, kChunkLeads);
  time_variable_ = file_.add_variable("time", Type::kDouble, {time_});
  file_.add_chunks(time_variable_, {starts}, 0);
  valid_variable_ = file_.add_variable("valid_time", Type::kDouble, {time_, lead_});
  file_.add_chunks(valid_variable_, {starts, leads}, 0);
  for (const int variable : {time_variable_, valid_variable_}) {
    file_.add_text(variable, "units", times_.units);
    file_.add_text(variable, "calendar",
                   calendar == Calendar::kStandard ? "proleptic_gregorian" : jigsaw::name(calendar));
  }
  file_.add_text(time_variable_, "standard_name", "forecast_reference_time");
  file_.add_text(time_variable_, "long_name", "start of the forecast");
  file_.add_text(time_variable_, "axis", "T");
  file_.add_text(valid_variable_, "standard_name", "time");
  file_.add_text(valid_variable_, "long_name", "time that the forecast is of");
  auxiliary_.emplace_back("valid_time");
  lead_variable_ = file_.add_variable("lead_time", Type::kInt, {lead_});
  file_.add_chunks(lead_variable_, {leads}, 0);
  add_lead_attributes(file_, lead_variable_, lead_unit(contents.lead_time, months_));
  if (contents.means) define_bounds(starts, leads);
}

/// Of means, from where to where they are. @param starts, leads  of a chunk
void ForecastFile::define_bounds(std::size_t starts, std::size_t leads) {
  const int bounds = bounds_dimension();
  lead_bounds_ = file_.add_variable("lead_time_bnds", NetcdfOutput::Type::kInt, {lead_, bounds});
  file_.add_chunks(lead_bounds_, {leads, 2}, 0);
  file_.add_text(lead_variable_, "bounds", "lead_time_bnds");
  valid_bounds_ = file_.add_variable("valid_time_bnds", NetcdfOutput::Type::kDouble, {time_, lead_, bounds});
  file_.add_chunks(valid_bounds_, {starts, leads, 2}, 0);
  file_.add_text(valid_variable_, "bounds", "valid_time_bnds");
}

int ForecastFile::bounds_dimension() {
  if (bounds_ < 0) bounds_ = file_.add_dimension("bounds", 2);
  return bounds_;
}

/// Those that the model makes.
void ForecastFile::define_members(std::int64_t members) {
  members_ = file_.add_dimension("number", static_cast<std::size_t>(members));
  members_variable_ = file_.add_variable("number", NetcdfOutput::Type::kInt, {members_});
  file_.add_text(members_variable_, "standard_name", "realization");
  file_.add_text(members_variable_, "long_name", "member of the model's ensemble");
  file_.add_text(members_variable_, "units", "1");
}

/// The member of the ensemble that all forecasts are of, a scalar coordinate.
void ForecastFile::define_member(const CoordinateDescription& member) {
  const std::string name = file_.free_name(member.name);
  const bool whole = std::trunc(member.values[0]) == member.values[0] && std::abs(member.values[0]) < 1e9;
  member_variable_ =
      file_.add_variable(name.c_str(), whole ? NetcdfOutput::Type::kInt : NetcdfOutput::Type::kDouble, {});
  std::map<std::string, std::string> texts = member.texts;
  texts.insert({{"standard_name", "realization"}, {"long_name", "member of the ensemble"}});
  for (const auto& [attribute, text] : texts) file_.add_text(member_variable_, attribute.c_str(), text);
  auxiliary_.push_back(name);
}

/// Number of the axis of these values, which is added unless it is there. Axes of one name and other values
/// get names of their own. One without values is a dimension alone.
std::size_t ForecastFile::add_axis(const CoordinateDescription& description, std::int64_t extent) {
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
int ForecastFile::add_described(const std::string& name, const CoordinateDescription& description,
                                const std::vector<int>& dimensions) {
  const int variable = file_.add_variable(name.c_str(), type_of(description), dimensions);
  for (const auto& [attribute, text] : description.texts) file_.add_text(variable, attribute.c_str(), text);
  return variable;
}

/// A variable of numbers at the points of the grid, compressed.
int ForecastFile::add_of_points(const CoordinateDescription& description) {
  const int variable = add_described(description.name, description, {axes_[0].dimension, axes_[1].dimension});
  file_.add_chunks(variable, {part_of(axes_[0].extent, kChunkExtent), part_of(axes_[1].extent, kChunkExtent)},
                   0);
  return variable;
}

void ForecastFile::define_points(const PointsDescription& described) {
  points_ = {.latitude = add_of_points(described.latitude),
             .longitude = add_of_points(described.longitude),
             .single_latitude = described.latitude.single_precision,
             .single_longitude = described.longitude.single_precision};
  auxiliary_.insert(auxiliary_.begin(), {described.latitude.name, described.longitude.name});
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
std::size_t ForecastFile::add_levels(const std::vector<FieldDescription>& fields,
                                     const std::vector<std::size_t>& members) {
  std::vector<FieldLevel> levels;
  for (const std::size_t member : members) levels.push_back(level_of(fields[member], member));
  const auto unit = [&](std::size_t member) {
    const auto& texts = fields[member].level->texts;
    return texts.contains("units") ? texts.at("units") : std::string();
  };
  for (const std::size_t member : members) {
    if (unit(member) == unit(members.front())) continue;
    throw DataError(
        concat("the levels of ", fields[member].level->name, " stand in ", printable(unit(members.front())),
               " in one file and in ", printable(unit(member)),
               " in another, and no axis has both; --split-levels writes each as a variable of its own"));
  }
  order_levels(levels, fields);
  CoordinateDescription axis = *fields[members.front()].level;
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

void ForecastFile::define_variable(const std::string& name, const std::vector<FieldDescription>& fields,
                                   const std::vector<std::size_t>& members, std::int64_t overlap) {
  const FieldDescription& field = fields[members.front()];
  std::vector<int> dimensions = {time_, lead_};
  std::vector<std::size_t> chunks = {1, 1};
  if (members_ >= 0) {
    dimensions.push_back(members_);
    chunks.push_back(1);
  }
  if (field.level) {
    dimensions.push_back(axes_[add_levels(fields, members)].dimension);
    chunks.push_back(1);
  }
  std::int64_t at_border = 0;
  for (const std::size_t axis : {std::size_t{0}, std::size_t{1}}) {
    const std::int64_t extent = axes_[axis].extent;
    dimensions.push_back(axes_[axis].dimension);
    chunks.push_back(part_of(extent, kChunkExtent));
    at_border += extent / static_cast<std::int64_t>(chunks.back()) + 1;
  }
  const int variable = file_.add_variable(name.c_str(), NetcdfOutput::Type::kFloat, dimensions);
  const auto chunk_bytes =
      static_cast<std::int64_t>(chunks[chunks.size() - 1] * chunks[chunks.size() - 2] * sizeof(float));
  const std::int64_t cache =
      std::min(std::ssize(members) * overlap * at_border * chunk_bytes, kMostCachedBytes);
  file_.add_chunks(variable, chunks, static_cast<std::size_t>(cache));
  file_.add_number(variable, "_FillValue", NetcdfOutput::kFill);
  std::map<std::string, std::string> texts = field.texts;
  if (!times_.cell_methods.empty()) {
    std::string& methods = texts["cell_methods"];
    methods += concat(methods.empty() ? "" : " ", times_.cell_methods);
  }
  for (const auto& [attribute, text] : texts) file_.add_text(variable, attribute.c_str(), text);
  for (const auto& [attribute, numbers] : field.numbers)
    file_.add_numbers(variable, attribute.c_str(), numbers);
  file_.add_text(variable, "coordinates", join(auxiliary_, " "));
  if (points_ && points_->mapping >= 0) file_.add_text(variable, "grid_mapping", points_->mapping_name);
  for (const std::size_t member : members) places_[member].variable = variable;
}

void ForecastFile::define_fields(FileSet& files, const ForecastContents& contents, std::int64_t overlap) {
  std::vector<FieldDescription> fields;
  std::vector<std::string> names;  // of the variables that the fields belong to
  std::vector<std::string> variables;
  for (const Field& field : contents.fields) {
    names.push_back(contents.split_levels ? field.name() : field.variable);
    fields.push_back(described(files, field, contents.split_levels));
    if (std::find(variables.begin(), variables.end(), names.back()) == variables.end())
      variables.push_back(names.back());
  }
  places_.resize(fields.size());
  const Shape extents = files.grid().shape();
  add_axis(fields.front().rows, extents[0]);
  add_axis(fields.front().columns, extents[1]);
  if (!files.grid().geographic) define_points(files.describe_points(contents.fields.front()));
  for (const std::string& name : variables) {
    std::vector<std::size_t> members;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == name) members.push_back(i);
    }
    define_variable(file_.free_name(name), fields, members, overlap);
  }
}

void ForecastFile::write_coordinates(const ForecastContents& contents) {
  if (members_ >= 0) {
    std::vector<int> numbers(static_cast<std::size_t>(contents.members));
    std::iota(numbers.begin(), numbers.end(), 0);
    file_.write(members_variable_, numbers);
  }
  for (const Axis& axis : axes_) {
    if (axis.variable < 0) continue;
    const bool single = axis.description.single_precision;
    write_numbers(file_, axis.variable, axis.description.values, single);
    if (axis.bounds >= 0) write_numbers(file_, axis.bounds, axis.description.bounds, single);
  }
}

/// Of the first of them.
void ForecastFile::write_times(std::size_t starts, std::size_t leads) {
  const auto count = [](std::size_t number) { return static_cast<std::int64_t>(number); };
  const auto write_first = [&](int variable, const Box& box, const auto& values) {
    file_.write(variable, box, std::span(values).first(static_cast<std::size_t>(box.extent.count())));
  };
  write_first(time_variable_, {{0}, {count(starts)}}, times_.starts);
  write_first(lead_variable_, {{0}, {count(leads)}}, times_.leads);
  if (lead_bounds_ >= 0) write_first(lead_bounds_, {{0, 0}, {count(leads), 2}}, times_.lead_bounds);
  for (std::size_t start = 0; start < starts; ++start) {
    const std::size_t at = start * times_.leads.size();
    const std::span<const double> valid(times_.valid), bounds(times_.bounds);
    write_first(valid_variable_, {{count(start), 0}, {1, count(leads)}}, valid.subspan(at));
    if (valid_bounds_ < 0) continue;
    write_first(valid_bounds_, {{count(start), 0, 0}, {1, count(leads), 2}}, bounds.subspan(2 * at));
  }
}

void ForecastFile::write_points(FileSet& files) {
  const PointPlaces places = files.read_degrees(Box::whole(files.grid().shape()));
  write_numbers(file_, points_->latitude, places.latitude, points_->single_latitude);
  write_numbers(file_, points_->longitude, places.longitude, points_->single_longitude);
  if (points_->mapping >= 0) file_.write(points_->mapping, std::vector<int>{0});
}

void ForecastFile::write(std::size_t field, std::int64_t start, std::int64_t lead, const Box& box,
                         std::span<float> values, std::int64_t member) {
  for (float& value : values) {
    if (!std::isfinite(value)) value = NetcdfOutput::kFill;
  }
  const Place& place = places_[field];
  Box slab{{start, lead}, {1, 1}};
  if (members_ >= 0) {
    slab.begin.append(member);
    slab.extent.append(1);
  }
  if (place.level >= 0) {
    slab.begin.append(place.level);
    slab.extent.append(1);
  }
  for (int d = 0; d < 2; ++d) {
    slab.begin.append(box.begin[d]);
    slab.extent.append(box.extent[d]);
  }
  file_.write(place.variable, slab, values);
}

void ForecastFile::close(std::int64_t starts, std::int64_t leads) {
  write_times(static_cast<std::size_t>(starts), static_cast<std::size_t>(leads));
  file_.close();
}

std::int64_t ForecastFile::finish() {
  close(std::ssize(times_.starts), std::ssize(times_.leads));
  return output_.commit();
}

}  // namespace jigsaw::inline predict
