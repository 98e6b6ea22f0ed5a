#include "files/grib_file.h"

#include <eccodes.h>
#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/heartbeat.h"
#include "base/text.h"
#include "files/chunk_cache.h"
#include "files/grib.h"
#include "files/grib_handle.h"
#include "files/io_lock.h"
#include "files/value_kinds.h"

namespace jigsaw::inline files {

namespace {

/// What stands for a value that the bitmap leaves out: no number that any field has.
constexpr double kMissing = -1e300;
constexpr double kSecondsPerHour = 3600;
/// Of the coordinate of members.
const std::map<std::string, std::string> kMemberTexts = {{"standard_name", "realization"}, {"units", "1"}};

std::string time_text(std::int64_t seconds) {
  constexpr std::int64_t kDay = 86400;
  const std::int64_t days = seconds >= 0 ? seconds / kDay : -((kDay - 1 - seconds) / kDay);
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(days))};
  const std::int64_t minutes = (seconds - days * kDay) / 60;
  const auto two = [](std::int64_t n) { return concat(n < 10 ? "0" : "", n); };
  return concat(static_cast<int>(date.year()), "-", two(static_cast<unsigned>(date.month())), "-",
                two(static_cast<unsigned>(date.day())), "T", two(minutes / 60), ":", two(minutes % 60));
}

bool always_has_levels(const std::string& type) {
  return type.starts_with("isobaric") || type.starts_with("hybrid") || type.starts_with("theta") ||
         type.starts_with("generalVertical");
}

template <typename T, typename F>
std::vector<T> distinct(const F& of, std::size_t count) {
  std::vector<T> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(of(i));
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

/// Of rows (or columns) of which every other one runs the other way (flag table 3.4), the second, fourth, …
/// are turned.
void turn_every_other(std::span<double> values, std::size_t row) {
  for (std::size_t begin = row; begin + row <= values.size(); begin += 2 * row)
    std::ranges::reverse(values.subspan(begin, row));
}

}  // namespace

GribFile::GribFile(const std::string& path, External /*external*/) : VariableFile(path), key_(chunk_key()) {
  try {
    read_index();
  } catch (const FileError& error) {
    throw DataError(error.what());
  }
}

GribFile::GribFile(const FileDescription& known, External /*external*/)
    : VariableFile(known), key_(chunk_key()) {
  for (const nlohmann::json& described : nlohmann::json::parse(known.own)) {
    Array& array = arrays_.emplace_back();
    described.at(0).get_to(array.values);
    for (const nlohmann::json& plane : described.at(1))
      array.planes.push_back({plane.at(0).get<std::int64_t>(), plane.at(1).get<std::int64_t>()});
    described.at(2).get_to(array.in_row);
  }
}

std::string GribFile::own_description() const {
  nlohmann::json described = nlohmann::json::array();
  for (const Array& array : arrays_) {
    nlohmann::json planes = nlohmann::json::array();
    for (const Plane& plane : array.planes) planes.push_back({plane.offset, plane.bytes});
    described.push_back({array.values, std::move(planes), array.in_row});
  }
  return described.dump();
}

GribFile::~GribFile() {
  ChunkCache::shared().drop(key_);
}

void GribFile::close() {
  ChunkCache::shared().drop(key_);
}

std::string GribFile::read_message(const File& file, std::int64_t offset, std::int64_t bytes) const {
  std::string message(static_cast<std::size_t>(bytes), '\0');
  file.read(std::as_writable_bytes(std::span(message)), offset);
  return message;
}

void GribFile::read_index() {
  const File file(path(), O_RDONLY);
  std::map<std::string, std::size_t> known;  // fields by header
  std::vector<std::size_t> variable_of;      // of each field
  std::vector<std::vector<Plane>> variables;
  for_each_grib_message(file, [&](const GribMessage& message) {
    auto found = known.find(message.header);
    if (found == known.end()) {
      fields_.push_back(describe_message(message, read_message(file, message.offset, message.bytes)));
      found = known.emplace(message.header, fields_.size() - 1).first;
      const auto same = std::find_if(variables.begin(), variables.end(), [&](const auto& planes) {
        return field(planes.front()).same_variable(fields_.back());
      });
      variable_of.push_back(static_cast<std::size_t>(same - variables.begin()));
      if (same == variables.end()) variables.emplace_back();
    }
    variables[variable_of[found->second]].push_back(
        {message.offset, message.bytes, message.reference, found->second});
  });
  for (const std::vector<Plane>& planes : variables) {
    const GribField& own = field(planes.front());
    bool several_levels = false, several_steps = false;
    for (const std::vector<Plane>& others : variables) {
      const GribField& other = field(others.front());
      if (&others == &planes || other.name != own.name) continue;
      several_levels = several_levels || other.level_type != own.level_type;
      several_steps = several_steps || other.level_type == own.level_type;
    }
    add_variable(planes, several_levels, several_steps);
  }
  add_run(variables);
}

/// Of forecasts, whose times are those that they are of: the reference time of a file of one run, or the lead
/// of a file of one.
void GribFile::add_run(const std::vector<std::vector<Plane>>& variables) {
  std::set<std::int64_t> references, leads;
  for (const std::vector<Plane>& planes : variables) {
    for (const Plane& plane : planes) {
      references.insert(plane.reference);
      leads.insert(field(plane).lead);
    }
  }
  if (leads.empty() || *leads.rbegin() == 0) return;  // analyses
  if (references.size() == 1) {
    add_scalar("forecast_reference_time", static_cast<double>(*references.begin()),
               {{"units", "seconds since 1970-01-01"},
                {"calendar", "proleptic_gregorian"},
                {"standard_name", "forecast_reference_time"}});
  }
  if (leads.size() == 1) {
    add_scalar("forecast_period", static_cast<double>(*leads.begin()) / kSecondsPerHour,
               {{"units", "hours"}, {"standard_name", "forecast_period"}});
  }
}

void GribFile::add_variable(const std::vector<Plane>& planes, bool several_levels, bool several_steps) {
  const GribField& first = field(planes.front());
  FileVariable variable;
  variable.name = first.name;
  if (several_levels || several_steps)
    variable.name = concat(first.level_type, several_steps ? "_" + first.step_type : "", "/", first.name);
  for (const auto& [key, text] :
       {std::pair{"units", first.units}, std::pair{"long_name", first.long_name},
        std::pair{"standard_name", first.standard_name}, std::pair{"cell_methods", first.cell_methods},
        std::pair{kTypeOfLevel, first.level_type}, std::pair{kStepType, first.step_type}})
    if (!text.empty()) variable.texts[key] = text;
  if (first.range > 0) variable.numbers[kTimeRange] = {first.range};
  check_alike(variable, planes);
  if (variable.fault.empty()) fill(variable, planes);
  if (variable.fault.empty()) return;
  variable.id = static_cast<int>(arrays_.size());
  variables_.push_back(std::move(variable));
  arrays_.emplace_back();
}

/// Refuses a variable whose messages cannot be read, or are of several grids or lengths of time.
void GribFile::check_alike(FileVariable& variable, const std::vector<Plane>& planes) const {
  const GribField& first = field(planes.front());
  const auto ranges = distinct<double>([&](std::size_t i) { return field(planes[i]).range; }, planes.size());
  for (const Plane& plane : planes) {
    if (!field(plane).fault.empty()) variable.refuse(field(plane).fault);
    if (field(plane).grid != first.grid) variable.refuse("its messages are on several grids");
  }
  if (same_time_range(ranges.front(), ranges.back())) return;
  constexpr std::size_t kMostTold = 8;
  const std::size_t told = std::min(ranges.size(), kMostTold);
  variable.refuse(
      concat("its messages (", first.step_type, ") are over times of several lengths, of ",
             join(std::vector(ranges.begin(), ranges.begin() + static_cast<std::ptrdiff_t>(told)), ", "),
             told < ranges.size() ? ", …" : "", " hours; choose those of one with: grib_copy -w stepRange=",
             "BEGIN-END/… IN OUT, or make them alike (docs/data.md, GRIB)"));
}

/// The dimensions of a variable before those of its grid.
std::vector<GribFile::Axis> GribFile::axes_of(const std::vector<Plane>& planes) const {
  const GribField& first = field(planes.front());
  const std::size_t count = planes.size();
  const auto valid = [&](const Plane& plane) { return plane.reference + field(plane).lead; };
  const auto pairs = distinct<std::pair<std::int64_t, std::int64_t>>(
      [&](std::size_t i) {
        return std::pair{planes[i].reference, field(planes[i]).lead};
      },
      count);
  const auto valid_times = distinct<std::int64_t>([&](std::size_t i) { return valid(planes[i]); }, count);
  const bool by_step = valid_times.size() != pairs.size();
  // Beside members a run of none is their control run.
  const bool of_members =
      std::ranges::any_of(planes, [&](const Plane& plane) { return field(plane).number >= 0; });

  const bool pressure = first.level_type == "isobaricInhPa" || first.level_type == "isobaricInPa";
  std::map<std::string, std::string> level_texts = {{"axis", "Z"}, {"long_name", first.level_type}};
  if (pressure) {
    level_texts["units"] = first.level_type == "isobaricInhPa" ? "hPa" : "Pa";
    level_texts["standard_name"] = "air_pressure";
  }
  std::vector<Axis> axes = {
      {"time",
       {{"units", "seconds since 1970-01-01"},
        {"calendar", "proleptic_gregorian"},
        {"standard_name", "time"}},
       [=](const Plane& plane) { return static_cast<double>(by_step ? plane.reference : valid(plane)); }},
      {"step",
       {{"units", "hours"}, {"standard_name", "forecast_period"}},
       [this](const Plane& plane) { return static_cast<double>(field(plane).lead) / kSecondsPerHour; }},
      {"number", kMemberTexts,
       [=, this](const Plane& plane) { return of_members ? std::max(field(plane).number, 0.0) : -1.0; }},
      {"level", level_texts, [this](const Plane& plane) { return field(plane).level; }}};
  for (Axis& axis : axes)
    axis.values = distinct<double>([&](std::size_t i) { return axis.of(planes[i]); }, count);
  if (first.range > 0 && !by_step) axes.front().bounds = time_bounds(axes.front(), planes);
  std::erase_if(axes, [&](const Axis& axis) {
    return (axis.name == "step" && !by_step) ||
           (axis.name == "number" && axis.values.size() == 1 && axis.values[0] <= 0) ||
           (axis.name == "level" && axis.values.size() == 1 && !always_has_levels(first.level_type));
  });
  return axes;
}

/// Values of messages are over some time that ends with their valid time.
std::vector<double> GribFile::time_bounds(const Axis& times, const std::vector<Plane>& planes) const {
  std::vector<double> bounds(2 * times.values.size());
  for (const Plane& plane : planes) {
    const double end = times.of(plane);
    const auto at =
        static_cast<std::size_t>(std::ranges::lower_bound(times.values, end) - times.values.begin());
    bounds[2 * at] = end - field(plane).range * kSecondsPerHour;
    bounds[2 * at + 1] = end;
  }
  return bounds;
}

/// "2020-01-01T00:00, level 850". @param at  positions along the axes.
std::string GribFile::place_text(const std::vector<Axis>& axes, const std::vector<std::size_t>& at) {
  std::vector<std::string> texts;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const double value = axes[a].values[at[a]];
    texts.push_back(axes[a].name == "time" ? time_text(static_cast<std::int64_t>(value))
                                           : concat(axes[a].name, " ", value));
  }
  return join(texts, ", ");
}

/// Positions of a message along the axes.
std::vector<std::size_t> GribFile::place_of(const Plane& plane, const std::vector<Axis>& axes) {
  std::vector<std::size_t> at;
  for (const Axis& axis : axes)
    at.push_back(static_cast<std::size_t>(std::ranges::lower_bound(axis.values, axis.of(plane)) -
                                          axis.values.begin()));
  return at;
}

/// Of a variable with fewer messages than places.
void GribFile::refuse_holes(FileVariable& variable, const std::vector<Plane>& planes,
                            const std::vector<Axis>& axes) {
  std::vector<std::vector<std::size_t>> there;
  for (const Plane& plane : planes) there.push_back(place_of(plane, axes));
  std::ranges::sort(there);
  there.erase(std::unique(there.begin(), there.end()), there.end());
  // The first place that none of them has.
  std::vector<std::size_t> at(axes.size(), 0);
  for (std::size_t i = 0; i < there.size() && there[i] == at; ++i) {
    for (std::size_t a = axes.size(); a-- > 0;) {
      if (++at[a] < axes[a].values.size()) break;
      at[a] = 0;
    }
  }
  std::vector<std::string> extents;
  for (const Axis& axis : axes) extents.push_back(concat(axis.values.size(), " of ", axis.name));
  variable.refuse(concat("its ", planes.size(), " messages do not fill its dimensions, ",
                         join(extents, " x "), ": there is none of ", place_text(axes, at),
                         "; add what lacks, or choose messages that fill them with: grib_copy -w KEY=VALUE,… "
                         "IN OUT"));
}

/// Gives a variable its dimensions and each message its place in them.
void GribFile::fill(FileVariable& variable, const std::vector<Plane>& planes) {
  const std::vector<Axis> axes = axes_of(planes);
  std::size_t places = 1;
  for (const Axis& axis : axes) {
    places *= axis.values.size();
    if (places > planes.size()) return refuse_holes(variable, planes, axes);
  }
  Array array;
  array.planes.resize(places);
  for (const Plane& plane : planes) {
    const std::vector<std::size_t> at = place_of(plane, axes);
    std::size_t place = 0;
    for (std::size_t a = 0; a < axes.size(); ++a) place = place * axes[a].values.size() + at[a];
    if (const Plane& other = array.planes[place]; other.bytes > 0) {
      const std::string key = difference(other, plane);
      return variable.refuse(concat("it has two messages of ", place_text(axes, at), ", at bytes ",
                                    other.offset, " and ", plane.offset, " of the file",
                                    key.empty() ? "" : concat(", which differ in ", key),
                                    "; take one of them out with: grib_copy -w KEY=VALUE IN OUT"));
    }
    array.planes[place] = plane;
  }
  std::vector<std::uint64_t> extents;
  for (const Axis& axis : axes) {
    extents.push_back(axis.values.size());
    variable.dimensions.push_back(dimension(axis.name, axis.values, axis.texts, axis.bounds));
    variable.chunks.append(1);
  }
  const GribField& first = field(planes.front());
  for (const std::int64_t extent : add_plane(variable, grids_[static_cast<std::size_t>(first.grid)]))
    extents.push_back(static_cast<std::uint64_t>(extent));
  variable.set_extents(extents);
  if (!variable.fault.empty()) return;
  const auto of_control = [&](const Plane& plane) { return field(plane).number == 0; };
  const bool along = std::ranges::any_of(axes, [](const Axis& axis) { return axis.name == "number"; });
  if (!along && std::ranges::any_of(planes, of_control)) add_scalar("number", 0, kMemberTexts);
  variable.id = static_cast<int>(arrays_.size());
  const std::int64_t points = variable.chunks.count();
  variable.bytes = std::clamp<std::int64_t>(planes.front().bytes / points, 1, size_of(variable.type));
  variable.compressed = true;
  variable.numbers["_FillValue"] = {kMissing};
  variables_.push_back(variable);
  arrays_.push_back(std::move(array));
}

void GribFile::decode(const FileVariable& variable, const Plane& plane, std::span<std::byte> out,
                      std::int64_t& fetched) const {
  std::string bytes;
  try {
    bytes = read_message(File(path(), O_RDONLY), plane.offset, plane.bytes);
  } catch (const FileError& error) {
    throw DataError(error.what());
  }
  fetched += plane.bytes;
  // The buffer is aligned as new aligns bytes, for any number.
  const std::span values(reinterpret_cast<double*>(out.data()), out.size() / sizeof(double));
  const std::size_t wanted = values.size();
  std::size_t count = 0;
  {
    const auto lock = lock_io();
    const Handle handle(bytes, concat(variable.name, " of ", path()));
    handle.check(codes_set_double(handle.get(), "missingValue", kMissing), "missingValue");
    handle.check(codes_get_size(handle.get(), "values", &count), "values");
    if (count == wanted) {
      handle.check(codes_get_double_array(handle.get(), "values", values.data(), &count), "values");
      if (handle.integer("alternativeRowScanning") != 0)
        turn_every_other(values, static_cast<std::size_t>(variable.chunks[variable.chunks.rank() - 1]));
    }
  }
  if (count != wanted) {
    throw DataError(concat("cannot read ", variable.name, " of ", path(), ": its message at byte ",
                           plane.offset, " holds ", count, " values, and its grid ", wanted));
  }
  beat();
}

StoredNumbers GribFile::read_stored(const FileVariable& variable, const Box& box, ByteBuffer& out,
                                    std::int64_t& fetched) {
  if (!(intersect(Box::whole(variable.shape), box) == box)) {
    throw DataError(
        concat("cannot read ", variable.name, " of ", path(), " at ", box, ": it has ", variable.shape));
  }
  const Array& array = arrays_[static_cast<std::size_t>(variable.id)];
  const std::int64_t size = size_of(variable.type);
  const std::span<std::byte> to = out.take(static_cast<std::size_t>(box.extent.count() * size));
  if (!array.in_row.empty()) {
    // The buffer is aligned as new aligns bytes, for any number.
    fill_degrees(array, box.begin[0],
                 {reinterpret_cast<double*>(to.data()), static_cast<std::size_t>(box.extent[0])});
  } else if (array.planes.empty()) {
    copy_shared(std::as_bytes(std::span(array.values)), Box::whole(variable.shape), to, box, size);
  } else {
    read_by_chunks({key_, variable.id, variable.shape, variable.chunks, size}, box, to,
                   [&](const WantedChunk& chunk, std::span<std::byte> decoded) {
                     decode(variable, array.planes[static_cast<std::size_t>(chunk.number)], decoded, fetched);
                   });
  }
  return {variable.type, false};
}

std::string eccodes_version() {
  const long version = codes_get_api_version();  // 22801 is 2.28.1
  return concat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

std::optional<FileFormat> grib_format() {
  return format_of<GribFile>(true, holds_grib);
}

}  // namespace jigsaw::inline files
