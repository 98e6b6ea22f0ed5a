#include "fields/file_set.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "base/heartbeat.h"
#include "base/text.h"

namespace jigsaw::inline fields {

namespace {

/// Sets the part of a file's axis from the first to the last point of a run.
void span_run(const AxisRun& run, Box& slab, int axis) {
  const std::int64_t last = run.first + (run.count - 1) * run.step;
  slab.begin[axis] = std::min(run.first, last);
  slab.extent[axis] = std::abs(last - run.first) + 1;
}

template <typename T>
void fill_missing(const std::optional<double>& fill, std::span<T> values) {
  if (!fill) return;
  const auto number = static_cast<T>(*fill);
  for (T& value : values) value = std::isnan(value) ? number : value;
}

}  // namespace

FileSet::FileSet(const std::vector<std::string>& paths, FileSelection selection, const FileOpener& open)
    : selection_(std::move(selection)) {
  for (const std::string& path : paths) {
    files_.push_back(std::make_unique<DataFile>(open(path)));
    DataFile& file = use(static_cast<int>(files_.size()) - 1);
    if (selection_.channels) file.describe_channels(*selection_.channels);
  }
}

DataFile& FileSet::use(int file) {
  const std::lock_guard lock(open_mutex_);
  std::erase(open_, file);
  open_.push_back(file);
  if (open_.size() > kMostOpenFiles) {
    const auto idle =
        std::find_if(open_.begin(), open_.end() - 1, [&](int f) { return !pinned_.contains(f); });
    if (idle != open_.end() - 1) {
      files_[static_cast<std::size_t>(*idle)]->file().close();
      open_.erase(idle);
    }
  }
  return *files_[static_cast<std::size_t>(file)];
}

FileSet::Pin::Pin(FileSet& files, int file)
    : files_(files), number_(file), file_(*files.files_[static_cast<std::size_t>(file)]) {
  {
    const std::lock_guard lock(files_.open_mutex_);
    ++files_.pinned_[number_];
  }
  files_.use(number_);
}

FileSet::Pin::~Pin() {
  const std::lock_guard lock(files_.open_mutex_);
  if (--files_.pinned_[number_] == 0) files_.pinned_.erase(number_);
}

void FileSet::end_selection() {
  for (const auto& file : files_) file->file().forget_described();
}

void FileSet::select(const Field& field, bool has_time) {
  Series series;
  series.has_time = has_time;
  select(field, std::move(series), false);
}

bool FileSet::holds(const Field& field) {
  const std::lock_guard lock(mutex_);
  for (int f = 0; f < static_cast<int>(files_.size()); ++f)
    if (find_in(f, field)) return true;
  return false;
}

bool FileSet::holds_level(const Field& field) {
  const std::lock_guard lock(mutex_);
  for (int f = 0; f < static_cast<int>(files_.size()); ++f) {
    const std::optional<FieldPlace> place = find_in(f, field);
    if (!place) continue;
    Part part;
    part.file = f;
    part.variable = place->variable;
    part.axes = use(f).axes(*place->variable);
    if (part.axes.channel >= 0 ? place->channel >= 0 : find_level(field, part)) return true;
  }
  return false;
}

void FileSet::select_absent(const Field& field, const std::string& units, const Field& like) {
  const std::lock_guard lock(mutex_);
  Series absent = series(like);
  absent.units = units;
  absent.absent = absent.has_time = true;
  absent.fill.reset();
  absent.summed.reset();
  absent.index = std::make_shared<TimeIndex>();
  absent.groups.clear();
  absent.group_indices.clear();
  series_.insert({field, std::move(absent)});
}

/// What is refused leaves nothing behind: the grid, calendar and members are those of fields that were taken.
void FileSet::select(const Field& field, Series series, bool uniform) {
  const std::lock_guard lock(mutex_);
  if (series_.contains(field)) return;
  const bool without_grid = grid_.axes.empty(), first = series_.empty();
  try {
    take(field, std::move(series), uniform);
  } catch (const DataError&) {
    if (without_grid) forget_grid();
    if (first) forget_calendar_and_members();
    throw;
  }
}

void FileSet::forget_grid() {
  grid_ = {};
  grid_file_.clear();
  sampled_places_.reset();
  places_.reset();
  axis_maps_.clear();
  sources_.clear();
  kept_weights_.clear();
}

void FileSet::forget_calendar_and_members() {
  calendar_.reset();
  calendar_file_.clear();
  calendar_name_.clear();
  members_.clear();
  members_file_.clear();
  noted_members_.clear();
  member_.reset();
  members_differ_ = false;
}

void FileSet::take(const Field& field, Series series, bool uniform) {
  series.parts = find_parts(field, uniform);
  for (Part& part : series.parts) {
    if (!part.axes.horizontal()) continue;
    check_memory(part);
    place_on_grid(part, selection_.regrid.of(field.variable));
  }
  series.units = check_units(field, series.parts);
  if (const std::optional<double> number = said_of_field(selection_.missing, field)) {
    for (Part& part : series.parts) part.variable = &with_missing(*part.variable, *number);
  }
  series.fill = said_of_field(selection_.fill, field);
  if (series.has_time) {
    series.summed = said_of_field(selection_.deaccumulate, field);
    check_methods(field, series.parts);
    require_one_level(field, series.parts);
    index_groups(field, series);
    if (series.between == Between::kCycle) begin_cycle(field, series);
  } else {
    series.index = std::make_shared<TimeIndex>();
    series.groups = groups_of(series.parts);
    std::set<std::int32_t> seen;
    std::vector<Part> first_of_groups;
    for (const Part& part : series.parts) {
      if (part.group == series.parts.front().group) series.last = part;
      if (seen.insert(part.group).second) first_of_groups.push_back(part);
    }
    series.parts = std::move(first_of_groups);
    const Part& part = series.parts[0];
    if (part.axes.time >= 0 && part.variable->shape[part.axes.time] == 0) {
      throw DataError(concat(field.name(), " in ", use(part.file).file().path(), " has no times"));
    }
  }
  series_[field] = std::move(series);
}

/// The variable as if its file declared that this number, unpacked, stands for missing values.
const FileVariable& FileSet::with_missing(const FileVariable& variable, double number) {
  const auto [found, anew] = with_missing_.try_emplace({&variable, number}, variable);
  if (!anew) return found->second;
  const auto attribute = [&](const char* name, double otherwise) {
    const auto said = variable.numbers.find(name);
    return said == variable.numbers.end() || said->second.empty() ? otherwise : said->second.front();
  };
  double stored = (number - attribute("add_offset", 0)) / attribute("scale_factor", 1);
  if (!is_floating(variable.type)) {
    constexpr double kRounding = 1e-3;
    if (!(std::abs(stored - std::round(stored)) < kRounding))
      return found->second;  // no packed number stands for it
    stored = std::round(stored);
  }
  found->second.numbers["missing_value"].push_back(stored);
  return found->second;
}

const FileSet::Series& FileSet::series(const Field& field) const {
  const auto found = series_.find(field);
  if (found == series_.end()) fail(concat("the field ", field.name(), " was not selected"));
  return found->second;
}

std::string FileSet::where(const Field& field) const {
  const std::vector<Part>& parts = series(field).parts;
  const std::string& first = files_[static_cast<std::size_t>(parts.front().file)]->file().path();
  return first_and_more(first, std::ssize(parts) - 1, "file");
}

bool FileSet::has(const Field& field, Time time) const {
  return place_of(series(field), time).has_value();
}

std::optional<TimePlace> FileSet::place_of(const Series& series, Time time) const {
  return place_among(series.index->times, series.between, time, calendar(), series.calendar);
}

template <typename T>
void FileSet::note_seen(const Field& field, Time time, std::span<const T> values) {
  if (values.empty() || !watched_.contains(field)) return;
  const bool any = std::ranges::any_of(values, [](T value) { return !std::isnan(value); });
  const std::lock_guard lock(seen_mutex_);
  bool& seen = seen_[field][time];
  seen = seen || any;
}

void FileSet::read(const Field& field, Moment moment, const Box& box, std::span<double> out) {
  read_values(field, moment, box, series(field).fill, out);
  note_seen<double>(field, moment.time, out);
}

void FileSet::read(const Field& field, Moment moment, const Box& box, std::span<float> out) {
  read_values(field, moment, box, series(field).fill, out);
  note_seen<float>(field, moment.time, out);
}

void FileSet::read_unfilled(const Field& field, Moment moment, const Box& box, std::span<double> out) {
  read_values(field, moment, box, std::nullopt, out);
}

bool FileSet::exact_in_float(const Field& field) const {
  const Series& source = series(field);
  if (source.between == Between::kLinear || source.between == Between::kCycle) return false;
  if (source.summed) return false;
  if (source.fill && static_cast<double>(static_cast<float>(*source.fill)) != *source.fill) return false;
  const std::vector<Part>& parts = source.parts;
  return std::all_of(parts.begin(), parts.end(), [](const Part& part) {
    return !part.regridded() && Unpacking::exact_in_float(*part.variable);
  });
}

template <typename T>
void FileSet::read_values(const Field& field, Moment moment, const Box& box,
                          const std::optional<double>& fill, std::span<T> out) {
  const Series& source = series(field);
  const auto [time, member] = moment;
  if (!source.has_time) {
    read_part<T>(source.constant(member), 0, member, box, out);
    return fill_missing(fill, out);
  }
  const std::optional<TimePlace> place = place_of(source, time);
  if (!place)
    throw DataError(concat("the files hold no ", field.name(), " at ", format_time(time, calendar())));
  read_at<T>(field, source, place->before, member, box, out);
  fill_missing(fill, out);
  if (place->before == place->after) return;
  std::vector<T> next(out.size());
  read_at<T>(field, source, place->after, member, box, next);
  fill_missing(fill, std::span<T>(next));
  const double part = place->part;
  std::transform(out.begin(), out.end(), next.begin(), out.begin(), [&](double before, double after) {
    return static_cast<T>(before + part * (after - before));
  });
}

std::optional<HyperslabStream> FileSet::stream(const Field& field, Moment moment, const Box& box) {
  const Series& source = series(field);
  const auto [time, member] = moment;
  if (!source.has_time || box.empty() || source.fill || watched_.contains(field)) return {};
  const std::optional<TimePlace> place = place_of(source, time);
  if (!place || place->before != place->after) return {};
  const TimeIndex& index = source.index_of(member);
  if (index.sums || index.others.contains(index.times[place->before])) return {};
  const TimeIndex::Entry& entry = index.entries[place->before];
  const Part& part = source.parts[static_cast<std::size_t>(entry.part)];
  if (part.versions.size() > 1 || !part.axes.horizontal() || part.axes.latitude > part.axes.longitude)
    return {};
  if (part.regridded()) return {};
  Box slab = slab_of(part, entry.position, member);
  for (const int axis : {0, 1}) {
    const std::vector<AxisRun> runs =
        (axis == 0 ? part.rows : part.columns)->runs(box.begin[axis], box.extent[axis]);
    if (runs.size() != 1 || runs[0].step != 1) return {};
    span_run(runs[0], slab, axis == 0 ? part.axes.latitude : part.axes.longitude);
  }
  Pin pin(*this, part.file);
  return pin.file().file().stream(*part.variable, slab);
}

/// The state of this number among the times.
template <typename T>
void FileSet::read_at(const Field& field, const Series& source, std::size_t number, std::int32_t member,
                      const Box& box, std::span<T> out) {
  const TimeIndex& index = source.index_of(member);
  if (index.sums) return read_difference<T>(field, source, number, member, box, out);
  read_stored<T>(field, source, index, number, member, box, out);
}

/// What the files hold at the time of this number.
template <typename T>
void FileSet::read_stored(const Field& field, const Series& source, const TimeIndex& index,
                          std::size_t number, std::int32_t member, const Box& box, std::span<T> out) {
  const TimeIndex::Entry& entry = index.entries[number];
  read_part<T>(source.parts[static_cast<std::size_t>(entry.part)], entry.position, member, box, out);
  if (index.others.empty()) return;
  check_others<T>(field, source, index, {index.times[number], member}, box, out);
}

/// The sum over the step that ends then, in double whatever is wanted: of large sums little is left.
template <typename T>
void FileSet::read_difference(const Field& field, const Series& source, std::size_t number,
                              std::int32_t member, const Box& box, std::span<T> out) {
  const TimeIndex& index = source.index_of(member);
  const TimeIndex::Step& step = index.steps[number];
  std::vector<double> sums(out.size());
  read_stored<double>(field, source, *index.sums, step.end, member, box, sums);
  if (step.begin) {
    std::vector<double> before(out.size());
    read_stored<double>(field, source, *index.sums, *step.begin, member, box, before);
    std::ranges::transform(sums, before, sums.begin(), std::minus<>());
  }
  std::ranges::transform(sums, out.begin(), [](double sum) { return static_cast<T>(sum); });
}

/// One point of a variable, but for rows and columns.
Box FileSet::slab_of(const Part& part, std::int64_t time, std::int32_t member) {
  const int rank = part.variable->shape.rank();
  Box slab{Shape::filled(rank, 0), Shape::filled(rank, 1)};
  if (part.axes.time >= 0) slab.begin[part.axes.time] = time;
  if (part.axes.level >= 0) slab.begin[part.axes.level] = part.level;
  if (part.axes.channel >= 0) slab.begin[part.axes.channel] = part.channel;
  if (part.axes.member >= 0 && !part.members.empty())
    slab.begin[part.axes.member] =
        part.members[part.members.size() > 1 ? static_cast<std::size_t>(member) : 0];
  if (!part.versions.empty()) slab.begin[part.axes.version] = part.versions[0];
  if (part.lead_axis >= 0) slab.begin[part.lead_axis] = part.lead_position;
  return slab;
}

int FileSet::dimension_of(const Part& part, const std::string& name) {
  const std::vector<std::string>& all = part.variable->dimensions;
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const std::string& one) { return without_groups(one) == name; });
  if (found != all.end()) return static_cast<int>(found - all.begin());
  throw DataError(concat(part.variable->name, " in ", use(part.file).file().path(), " has no dimension ",
                         name, "; it has ", join(all, ", ")));
}

std::vector<double> FileSet::coordinates(const Field& field, const std::string& name) {
  const Part& part = series(field).parts[0];
  Pin pin(*this, part.file);
  return pin.file().coordinates(dimension(*part.variable, dimension_of(part, name)));
}

void FileSet::read_entry(const Field& field, const std::map<std::string, std::int64_t>& positions,
                         const Box& box, std::span<double> out) {
  const Part& part = series(field).parts[0];
  Box slab = slab_of(part, 0, 0);
  for (const auto& [name, position] : positions) slab.begin[dimension_of(part, name)] = position;
  read_state<double>(part, slab, box, out);
  fill_missing(series(field).fill, out);
}

template <typename T>
void FileSet::read_part(const Part& part, std::int64_t time, std::int32_t member, const Box& box,
                        std::span<T> out) {
  read_state<T>(part, slab_of(part, time, member), box, out);
}

/// Versions after the first fill what is missing in those before.
template <typename T>
void FileSet::read_versions(const Part& part, Box slab, const Box& points, std::span<T> out) {
  read_points<T>(part, slab, points, out);
  std::vector<T> other;
  for (std::size_t v = 1; v < part.versions.size(); ++v) {
    if (std::none_of(out.begin(), out.end(), [](T value) { return std::isnan(value); })) return;
    slab.begin[part.axes.version] = part.versions[v];
    other.resize(out.size());
    read_points<T>(part, slab, points, other);
    std::transform(out.begin(), out.end(), other.begin(), out.begin(),
                   [](T value, T instead) { return std::isnan(value) ? instead : value; });
  }
}

template <typename T>
void FileSet::read_state(const Part& part, Box slab, const Box& box, std::span<T> out) {
  if (box.empty()) return;
  if (!part.regridded()) return read_versions<T>(part, slab, box, out);
  if (part.source) return read_at_points<T>(part, slab, box, out);
  const AxisInterval wanted_rows{box.begin[0], box.extent[0]}, wanted_columns{box.begin[1], box.extent[1]};
  const AxisInterval rows = part.rows->needed(box.begin[0], box.extent[0]),
                     columns = part.columns->needed(box.begin[1], box.extent[1]);
  static thread_local std::vector<T> there;  // kept from plane to plane
  there.resize(static_cast<std::size_t>(rows.count * columns.count));
  read_versions<T>(part, slab, {{rows.begin, columns.begin}, {rows.count, columns.count}}, there);
  regrid<T>(*part.rows->weights(), wanted_rows, *part.columns->weights(), wanted_columns, there, out);
}

template <typename T>
void FileSet::read_at_points(const Part& part, Box slab, const Box& box, std::span<T> out) {
  const auto weights = weights_at(part, box);
  std::vector<T> there(static_cast<std::size_t>(weights->read()));
  std::size_t at = 0;
  for (const Box& piece : weights->boxes()) {
    const auto count = static_cast<std::size_t>(piece.extent.count());
    read_versions<T>(part, slab, piece, std::span(there).subspan(at, count));
    at += count;
  }
  weights->apply<T>(there, out);
}

/// Points that AxisMap::needed() of a part's rows and columns counts, or those of a list. Every piece of them
/// whose rows and columns are equally spaced in the file comes with the hyperslab that holds it.
template <typename T>
void FileSet::read_points(const Part& part, Box slab, const Box& box, std::span<T> out) {
  Pin pin(*this, part.file);
  VariableFile& file = pin.file().file();
  if (!part.axes.horizontal()) {
    double value = 0;
    file.read<double>(*part.variable, slab, std::span(&value, 1));
    std::fill(out.begin(), out.end(), static_cast<T>(value));
    return;
  }
  if (part.axes.cells >= 0) {
    slab.begin[part.axes.cells] = box.begin[1];
    slab.extent[part.axes.cells] = box.extent[1];
    return file.read<T>(*part.variable, slab, out);
  }
  const int row_axis = part.axes.latitude, column_axis = part.axes.longitude;
  const std::vector<AxisRun> column_runs = part.columns->runs(box.begin[1], box.extent[1]);
  const std::int64_t width = box.extent[1];
  static thread_local std::vector<T> piece;  // kept from plane to plane
  for (const AxisRun& rows : part.rows->runs(box.begin[0], box.extent[0])) {
    for (const AxisRun& columns : column_runs) {
      span_run(rows, slab, row_axis);
      span_run(columns, slab, column_axis);
      const bool as_it_is = row_axis < column_axis && rows.step == 1 && columns.step == 1;
      if (as_it_is && columns.count == width) {
        file.read<T>(*part.variable, slab,
                     out.subspan(static_cast<std::size_t>((rows.begin - box.begin[0]) * width),
                                 static_cast<std::size_t>(rows.count * width)));
        continue;
      }
      piece.resize(static_cast<std::size_t>(slab.extent.count()));
      file.read<T>(*part.variable, slab, piece);
      beat();
      const Shape strides = slab.extent.strides();
      const std::int64_t down = strides[row_axis] * rows.step, along = strides[column_axis] * columns.step;
      const std::int64_t first = (rows.first - slab.begin[row_axis]) * strides[row_axis] +
                                 (columns.first - slab.begin[column_axis]) * strides[column_axis];
      const std::int64_t to = (rows.begin - box.begin[0]) * width + columns.begin - box.begin[1];
      for (std::int64_t i = 0; i < rows.count; ++i) {
        for (std::int64_t j = 0; j < columns.count; ++j) {
          out[static_cast<std::size_t>(to + i * width + j)] =
              piece[static_cast<std::size_t>(first + i * down + j * along)];
        }
      }
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

/// Files of the same times may hold one member of an ensemble each.
void FileSet::require_one_member(const Field& field, const Part& one, const Part& other) {
  const auto member_in = [&](const Part& part) {
    Pin pin(*this, part.file);
    if (part.axes.member < 0) return pin.file().scalar_member();
    CoordinateDescription along = pin.file().describe(dimension(*part.variable, part.axes.member));
    return along.values.size() == 1 ? std::optional(std::move(along)) : std::nullopt;
  };
  const std::optional<CoordinateDescription> here = member_in(one), there = member_in(other);
  if (!here || !there || here->values == there->values) return;
  throw DataError(concat(field.name(), " in ", use(one.file).file().path(), " is of member ", here->values[0],
                         " of an ensemble (", here->name, "), and in ", use(other.file).file().path(),
                         " of member ", there->values[0],
                         ", at the same times; data.member says which one is taken, or \"all\""));
}

template <typename T>
void FileSet::check_others(const Field& field, const Series& source, const TimeIndex& index, Moment moment,
                           const Box& box, std::span<const T> values) {
  const Time time = moment.time;
  const auto [begin, end] = index.others.equal_range(time);
  std::vector<T> other(values.size());
  for (auto entry = begin; entry != end; ++entry) {
    const Part& part = source.parts[static_cast<std::size_t>(entry->second.part)];
    read_part<T>(part, entry->second.position, moment.member, box, other);
    const bool equal = std::equal(values.begin(), values.end(), other.begin(),
                                  [](T a, T b) { return a == b || (std::isnan(a) && std::isnan(b)); });
    if (equal) continue;
    const auto found = std::ranges::lower_bound(index.times, time);
    const TimeIndex::Entry& first = index.entries[static_cast<std::size_t>(found - index.times.begin())];
    if (first.part == entry->second.part) {
      throw DataError(concat(field.name(), " at ", format_time(time, calendar()), " stands twice in ",
                             use(part.file).file().path(), ", at ", first.position, " and ",
                             entry->second.position, " along time, with other values; say by data.overlap ",
                             "whether the \"first\" or the \"last\" counts, or write the file with one; runs "
                             "of a model one behind the other along time cannot be told apart: let them be "
                             "members along a dimension of their own (data.member \"all\")"));
    }
    require_one_member(field, source.parts[static_cast<std::size_t>(first.part)], part);
    throw DataError(concat(field.name(), " at ", format_time(time, calendar()), " has other values in ",
                           use(part.file).file().path(), " than in ",
                           use(source.parts[static_cast<std::size_t>(first.part)].file).file().path(),
                           "; say by data.overlap which file wins, leave one of them out, or give the "
                           "variable `files` of its own; runs with the same times are members of an "
                           "ensemble, along one dimension or numbered in their files (data.member \"all\")"));
  }
}

std::int64_t FileSet::bytes_read() const {
  return std::accumulate(files_.begin(), files_.end(), std::int64_t{0},
                         [](std::int64_t sum, const auto& file) { return sum + file->file().bytes_read(); });
}

std::vector<FieldStorage> FileSet::storage() const {
  std::vector<FieldStorage> result;
  for (const auto& [field, series] : series_) {
    const Part& part = series.parts.front();
    // A series has no places.
    if (!part.axes.horizontal() || series.absent) continue;
    const VariableFile& file = files_[static_cast<std::size_t>(part.file)]->file();
    result.push_back({file.path(), std::string(file.format()), part.variable, part.axes,
                      part.axes.channel >= 0 ? part.channel : part.level, part.rows, part.columns,
                      part.source != nullptr, series.summed ? 2 : 1});
  }
  return result;
}

bool FileSet::share_chunks(const Field& one, const Field& other) const {
  const Series &first = series(one), &second = series(other);
  const Part &here = first.parts.front(), &there = second.parts.front();
  const int axis = here.axes.channel >= 0 ? here.axes.channel : here.axes.level;
  if (here.variable != there.variable || axis < 0) return false;
  const Shape& chunks = here.variable->chunks;
  return chunks.rank() > 0 && chunks[axis] > 1 && first.index->times == second.index->times;
}

std::int64_t FileSet::bytes_fetched() const {
  return std::accumulate(
      files_.begin(), files_.end(), std::int64_t{0},
      [](std::int64_t sum, const auto& file) { return sum + file->file().bytes_fetched(); });
}

// Latitudes and longitudes of projected grids are read in file_set_grid.cpp.
template void FileSet::read_part<double>(const Part&, std::int64_t, std::int32_t, const Box&,
                                         std::span<double>);

}  // namespace jigsaw::inline fields
