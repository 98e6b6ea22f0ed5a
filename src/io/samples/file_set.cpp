#include "samples/file_set.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/heartbeat.h"
#include "base/text.h"

namespace jigsaw::inline samples {

namespace {

const std::string& dimension(const FileVariable& variable, int axis) {
  return variable.dimensions[static_cast<std::size_t>(axis)];
}

/// Single and double precision of one coordinate count as equal.
bool same_coordinates(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return std::abs(x - y) < 1e-4; });
}

bool same_level(double a, double b) {
  return std::abs(a - b) <= 1e-6 * std::max(std::abs(a), std::abs(b));
}

void sort_unique(auto& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

FileSet::FileSet(const std::vector<std::string>& paths, External external) {
  for (const std::string& path : paths) {
    files_.push_back(std::make_unique<DataFile>(path, external));
    use(static_cast<int>(files_.size()) - 1);
  }
}

DataFile& FileSet::use(int file) {
  std::erase(open_, file);
  open_.push_back(file);
  if (open_.size() > kMostOpenFiles) {
    files_[static_cast<std::size_t>(open_.front())]->file().close();
    open_.pop_front();
  }
  return *files_[static_cast<std::size_t>(file)];
}

std::vector<VariableSummary> FileSet::catalogue() {
  const std::lock_guard lock(mutex_);
  std::map<std::string, VariableSummary> summaries;
  for (int f = 0; f < static_cast<int>(files_.size()); ++f) {
    DataFile& file = use(f);
    for (const FileVariable& variable : file.file().variables()) {
      const FieldAxes axes = file.axes(variable);
      if (!variable.numeric() || !axes.horizontal()) continue;
      VariableSummary& summary = summaries[variable.name];
      summary.name = variable.name;
      summary.units = variable.text("units");
      summary.long_name = variable.text("long_name");
      const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
      if (axes.level >= 0) append(summary.levels, file.coordinates(dimension(variable, axes.level)));
      if (axes.time >= 0) append(summary.times, file.times(dimension(variable, axes.time)));
    }
  }
  std::vector<VariableSummary> result;
  for (auto& [name, summary] : summaries) {
    sort_unique(summary.levels);
    sort_unique(summary.times);
    result.push_back(std::move(summary));
  }
  return result;
}

void FileSet::select(const Field& field, bool has_time) {
  const std::lock_guard lock(mutex_);
  if (series_.contains(field)) return;
  Series series;
  series.has_time = has_time;
  series.parts = find_parts(field);
  for (const Part& part : series.parts) check_memory(part);
  for (const Part& part : series.parts) check_grid(part);
  series.units = check_units(field, series.parts);
  if (has_time) {
    series.index = index_times(field, series.parts);
  } else {
    series.index = std::make_shared<TimeIndex>();
    series.parts.resize(1);
    const Part& part = series.parts[0];
    if (part.axes.time >= 0 && part.variable->shape[part.axes.time] == 0) {
      throw DataError(concat(field.name(), " in ", use(part.file).file().path(), " has no times"));
    }
  }
  series_[field] = std::move(series);
}

std::vector<FileSet::Part> FileSet::find_parts(const Field& field) {
  std::vector<Part> parts;
  bool known = false;
  for (int f = 0; f < static_cast<int>(files_.size()); ++f) {
    const FileVariable* variable = files_[static_cast<std::size_t>(f)]->file().find(field.variable);
    if (variable == nullptr) continue;
    known = true;
    DataFile& file = use(f);
    file.require_field(*variable);
    Part part{f, variable, file.axes(*variable), 0};
    if (find_level(field, part)) parts.push_back(part);
  }
  if (!known) refuse_unknown(field.variable);
  if (parts.empty()) refuse_level(field);
  return parts;
}

/// Whether the part has the level, whose position is set.
bool FileSet::find_level(const Field& field, Part& part) {
  if (part.axes.level < 0) return !field.level;
  const std::string& name = dimension(*part.variable, part.axes.level);
  const std::int64_t extent = part.variable->shape[part.axes.level];
  if (!field.level) return extent == 1;
  const std::vector<double>& levels = use(part.file).coordinates(name);
  const auto found = std::find_if(levels.begin(), levels.end(),
                                  [&](double level) { return same_level(level, *field.level); });
  part.level = found - levels.begin();
  return found != levels.end();
}

void FileSet::refuse_unknown(const std::string& variable) const {
  std::set<std::string> names;
  for (const auto& file : files_) {
    for (const FileVariable& candidate : file->file().variables()) {
      if (candidate.numeric() && file->axes(candidate).horizontal()) names.insert(candidate.name);
    }
  }
  const std::vector<std::string> known(names.begin(), names.end());
  throw DataError(concat("no variable ", variable, " in ", files_[0]->file().path(),
                         files_.size() > 1 ? concat(" and ", files_.size() - 1, " more files") : "",
                         did_you_mean(variable, known), "; there is ",
                         known.empty() ? "no field at all" : join(known, ", ")));
}

void FileSet::refuse_level(const Field& field) {
  std::vector<double> levels;
  std::string path;
  for (const auto& file : files_) {
    const FileVariable* variable = file->file().find(field.variable);
    if (variable == nullptr) continue;
    path = file->file().path();
    const int axis = file->axes(*variable).level;
    if (axis < 0) continue;
    const std::vector<double>& found = file->coordinates(dimension(*variable, axis));
    levels.insert(levels.end(), found.begin(), found.end());
  }
  sort_unique(levels);
  if (levels.empty()) {
    throw DataError(concat(field.variable, " in ", path, " has no levels, but the level ", *field.level,
                           " is asked for"));
  }
  const std::string there = concat("; there is ", join(levels, ", "));
  if (!field.level)
    throw DataError(concat(field.variable, " in ", path, " has levels: say which ones", there));
  throw DataError(concat(field.variable, " in ", path, " has no level ", *field.level, there));
}

/// One state of a field has to fit into memory.
void FileSet::check_memory(const Part& part) {
  const Shape& shape = part.variable->shape;
  require_memory({shape[part.axes.latitude], shape[part.axes.longitude]}, part.variable->name,
                 use(part.file).file().path());
}

void FileSet::check_grid(const Part& part) {
  DataFile& file = use(part.file);
  const std::vector<double>& latitudes = file.coordinates(dimension(*part.variable, part.axes.latitude));
  const std::vector<double>& longitudes = file.coordinates(dimension(*part.variable, part.axes.longitude));
  const std::string& path = file.file().path();
  if (grid_.axes.empty()) {
    try {
      grid_ = make_geographic_grid(latitudes, longitudes);
    } catch (const DataError& error) {
      throw DataError(concat(path, ": ", error.what()));
    }
    grid_file_ = path;
  } else if (!same_coordinates(latitudes, grid_.axes[0].coordinates) ||
             !same_coordinates(longitudes, grid_.axes[1].coordinates)) {
    throw DataError(concat(part.variable->name, " in ", path, " lies on another grid (", latitudes.size(),
                           " x ", longitudes.size(), ") than the fields of ", grid_file_, " (",
                           grid_.axes[0].coordinates.size(), " x ", grid_.axes[1].coordinates.size(), ")"));
  }
}

std::string FileSet::check_units(const Field& field, const std::vector<Part>& parts) const {
  std::string units = parts[0].variable->text("units");
  for (const Part& part : parts) {
    const std::string other = part.variable->text("units");
    if (other == units) continue;
    const auto path = [&](const Part& p) { return files_[static_cast<std::size_t>(p.file)]->file().path(); };
    throw DataError(concat(field.variable, " is in \"", units, "\" in ", path(parts[0]), " and in \"", other,
                           "\" in ", path(part), "; it must have one unit"));
  }
  return units;
}

std::shared_ptr<const FileSet::TimeIndex> FileSet::index_times(const Field& field,
                                                               const std::vector<Part>& parts) {
  TimeDimensions key;
  for (const Part& part : parts) {
    if (part.axes.time < 0) {
      throw DataError(concat(field.name(), " in ", use(part.file).file().path(),
                             " has no time; a constant field belongs into data.static"));
    }
    key.emplace_back(part.file, dimension(*part.variable, part.axes.time));
  }
  std::shared_ptr<const TimeIndex>& known = indices_[key];
  if (known) return known;
  std::vector<std::pair<Time, TimeIndex::Entry>> found;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const std::vector<Time>& times = use(parts[p].file).times(key[p].second);
    for (std::size_t i = 0; i < times.size(); ++i) {
      found.push_back({times[i], {static_cast<std::int32_t>(p), static_cast<std::int32_t>(i)}});
    }
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  auto index = std::make_shared<TimeIndex>();
  for (const auto& [time, entry] : found) {
    if (!index->times.empty() && index->times.back() == time) {
      const auto path = [&](const TimeIndex::Entry& e) {
        return use(parts[static_cast<std::size_t>(e.part)].file).file().path();
      };
      throw DataError(concat(field.name(), " has the time ", format_time(time), " twice, in ",
                             path(index->entries.back()), " and in ", path(entry)));
    }
    index->times.push_back(time);
    index->entries.push_back(entry);
  }
  return known = index;
}

const FileSet::Series& FileSet::series(const Field& field) const {
  const auto found = series_.find(field);
  if (found == series_.end()) fail(concat("the field ", field.name(), " was not selected"));
  return found->second;
}

bool FileSet::has(const Field& field, Time time) const {
  const std::vector<Time>& known = times(field);
  return std::binary_search(known.begin(), known.end(), time);
}

void FileSet::read(const Field& field, Time time, const Box& box, std::span<double> out) {
  const Series& source = series(field);
  TimeIndex::Entry entry{0, 0};
  if (source.has_time) {
    const auto found = std::lower_bound(source.index->times.begin(), source.index->times.end(), time);
    if (found == source.index->times.end() || *found != time) {
      throw DataError(concat("the files hold no ", field.name(), " at ", format_time(time)));
    }
    entry = source.index->entries[static_cast<std::size_t>(found - source.index->times.begin())];
  }
  const Part& part = source.parts[static_cast<std::size_t>(entry.part)];
  const int rank = part.variable->shape.rank();
  Box slab{Shape::filled(rank, 0), Shape::filled(rank, 1)};
  if (part.axes.time >= 0) slab.begin[part.axes.time] = entry.position;
  if (part.axes.level >= 0) slab.begin[part.axes.level] = part.level;
  for (const auto& [axis, dim] : {std::pair{part.axes.latitude, 0}, std::pair{part.axes.longitude, 1}}) {
    slab.begin[axis] = box.begin[dim];
    slab.extent[axis] = box.extent[dim];
  }
  const std::lock_guard lock(mutex_);
  VariableFile& file = use(part.file).file();
  if (part.axes.latitude < part.axes.longitude) {
    file.read<double>(*part.variable, slab, out);
    beat();
    return;
  }
  const std::int64_t rows = box.extent[0], columns = box.extent[1];
  std::vector<double> turned(out.size());
  file.read<double>(*part.variable, slab, turned);
  beat();
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      out[static_cast<std::size_t>(row * columns + column)] =
          turned[static_cast<std::size_t>(column * rows + row)];
    }
  }
}

std::map<std::string, UndeclaredValues> FileSet::undeclared() const {
  std::map<std::string, UndeclaredValues> found;
  for (const auto& file : files_) {
    for (const auto& [name, values] : file->file().undeclared())
      found[concat(name, " in ", file->file().path())] = values;
  }
  return found;
}

std::int64_t FileSet::bytes_read() const {
  return std::accumulate(files_.begin(), files_.end(), std::int64_t{0},
                         [](std::int64_t sum, const auto& file) { return sum + file->file().bytes_read(); });
}

}  // namespace jigsaw::inline samples
