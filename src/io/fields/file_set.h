#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "array/box.h"
#include "array/grid.h"
#include "fields/data_file.h"
#include "fields/data_options.h"
#include "fields/field.h"
#include "fields/members.h"
#include "fields/prescribed_times.h"
#include "fields/variable_sources.h"
#include "grids/axis_map.h"
#include "grids/forcings.h"
#include "grids/source_points.h"

namespace jigsaw::inline fields {

/// What the files hold of one variable.
struct VariableSummary {
  std::string name, units, long_name, standard_name;
  std::vector<double> levels;               ///< ascending; empty for a variable without levels
  std::vector<Time> times;                  ///< ascending; empty for a variable without time
  Calendar calendar = Calendar::kStandard;  ///< of times
  bool flags = false;                       ///< FileVariable::holds_flags()
  std::string fault;                        ///< why its levels cannot be read; "" when they can
};

/// Which points and times of the files are taken, and from which file, as DataOptions say.
struct FileSelection {
  RegionOptions region;
  std::vector<std::int64_t> every = {1};
  RegridOptions regrid = {};
  TimeStep time_step = {};
  Time time_tolerance = 0;  ///< DataOptions::time_tolerance
  Overlap overlap = Overlap::kEqual;
  MemberChoice member = {};
  std::optional<ChannelLayout> channels = {};  ///< of files that do not say theirs
  VariableSources sources = {};
  /// Dimensions that read_entry() chooses along, beside those of fields.
  std::vector<std::string> free_dimensions = {};
  /// In place of missing values, by name of a variable or field.
  std::map<std::string, double> fill = {};
  /// What stands for missing values beside what files declare, in the same way.
  std::map<std::string, double> missing = {};
  /// Of which fields the files hold running sums, in the same way: their states are the sums over steps.
  std::map<std::string, SummedSince> deaccumulate = {};
  /// Rows and columns stand as these do, in place of those of the first file; on a projection where the
  /// corners are these.
  std::optional<GridOrder> like = {};
};

/// What the files say of a field, for files that are written.
struct FieldDescription {
  /// Attributes of its variable that say what it is: units, long_name, standard_name, cell_methods, …
  std::map<std::string, std::string> texts;
  std::map<std::string, std::vector<double>> numbers;
  /// Of the grid's rows and columns, latitude and longitude or those of a projection, as the file has them at
  /// these points; cell limits where they are those of the whole file.
  CoordinateDescription rows, columns;
  /// All levels of the first file that has the field's, which may be the one of a scalar coordinate; of
  /// channels those that were selected.
  std::optional<CoordinateDescription> level;
  std::int64_t level_position = 0;  ///< of the field's among them
  /// Other coordinates that its variable names and that have one value each, as the height of t2m, or that of
  /// a dimension of one level where the field names none.
  std::vector<CoordinateDescription> scalars;
};

/// What the file of a field says of the points of a projected grid, for files that are written.
struct PointsDescription {
  CoordinateDescription latitude, longitude;  ///< without values, which read_degrees() has
  /// How the projection's points lie on the earth, by attributes, as CF has it; null where the file does not
  /// say.
  const FileVariable* mapping = nullptr;
};

/// How a field stands in the first file that has it.
struct FieldStorage {
  std::string path, format;  ///< of the file, as VariableFile has them
  const FileVariable* variable = nullptr;
  FieldAxes axes;
  std::int64_t entry = 0;  ///< along its levels or channels
  std::shared_ptr<const AxisMap> rows, columns;
  bool point_by_point = false;  ///< then rows and columns do not say what is read
  int states = 1;               ///< of the file that one state is made of: 2 of differences of sums
};

/// Several files as one data set: each field has the union of its times over all files. Fields are
/// selected before they are read. The grid is that of the first one, without jumps in longitude, or the
/// selected part of it; the others may have its rows and columns in another order, or more of them, or are
/// brought to it as FileSelection::regrid says, which may also name another grid. All times are of one
/// calendar. read() may be called from several threads. At most kMostOpenFiles are held open.
///
/// Every error is a DataError that names variable and file.
class FileSet {
 public:
  static constexpr std::size_t kMostOpenFiles = 64;

  /// Reads the headers of these files. @throws DataError
  explicit FileSet(const std::vector<std::string>& paths, FileSelection selection = {},
                   const FileOpener& open = opener(Dimensions::kByName));
  FileSet(const FileSet&) = delete;
  FileSet& operator=(const FileSet&) = delete;

  /// Every variable that is a field, sorted by name: of GRIB with its kind of level, where any file parts it
  /// by that. @throws DataError  where times cannot be read.
  std::vector<VariableSummary> catalogue();

  /// data.region that reads an area across Greenwich or the dateline from west to east, where the longitudes
  /// of the first file with fields stand sorted and have a gap in it; nothing elsewhere.
  std::optional<RegionOptions> region_across_gap();
  /// data.regrid that brings fields on a list of points to rows and columns about as far apart as these,
  /// where no field has any; nothing elsewhere. @throws DataError
  std::optional<RegridOptions> regrid_of_list();
  /// Whether any field lies on a list of points.
  bool has_lists();
  const RegridOptions& regrid_options() const { return selection_.regrid; }
  /// That was selected.
  const RegionOptions& region() const { return selection_.region; }

  /// Variables that are series of numbers in time without places, `co2(time)`, sorted by name: not times
  /// themselves, nor those between the start of a forecast and its state.
  std::vector<std::string> series_in_time();

  /// Makes a field readable. Of a constant field (`has_time` false) the first state found is taken, for data
  /// sets repeat it in every file, with a time. @throws DataError for a variable or level that is not there
  /// (with what is), two units or calendars, or a grid that lacks points of that of the fields before.
  void select(const Field& field, bool has_time);
  /// Makes a field readable that is given at its own times, and between and beyond them as is said; it may
  /// also be a series of numbers without places, or on a grid of one point, which is the same everywhere.
  /// Between its times it may have another calendar than all other fields: its times are then those of
  /// at_part_of_month(). @throws DataError  also where the times of Between::kCycle reach over a year or
  /// more, or are of two calendars.
  void select_prescribed(const Field& field, Between between);
  /// The first file that holds a field at no time; nothing where all have times. @throws DataError
  std::optional<std::string> file_without_time(const Field& field);
  /// Whether any of the files holds the variable, or a channel of that name.
  bool holds(const Field& field);
  /// A field that the files hold at no time. Its places are those of another one, which has been selected.
  void select_absent(const Field& field, const std::string& units, const Field& like);
  /// What files keep for the selection alone is forgotten. Before the first read().
  void end_selection();
  /// Takes the grid of fields that others have selected, whatever that of the first file is, before anything
  /// is selected here. On a projection the points then must lie where theirs do.
  void take_grid(const FileSet& others);

  /// The grid of the selected fields; rows and columns stand as in the first file, or as FileSelection::like
  /// says.
  const Grid& grid() const { return grid_; }
  /// Latitudes or longitudes of the points `box` of a projected grid, which has no coordinates along its
  /// axes: standardised by those of its first, middle and last row, longitudes without a jump within half a
  /// circle of its middle. @throws DataError also where one is missing.
  void read_places(Forcing forcing, const Box& box, std::span<double> out);
  /// The same in degrees, as the file has them. @throws DataError
  PointPlaces read_degrees(const Box& box);
  /// read_degrees() for forcings. @throws DataError also where one is missing.
  PointPlaces read_forcing_degrees(const Box& box);
  /// The calendar of all times; of months that of month_of().
  Calendar calendar() const { return of_months() ? Calendar::k360Day : file_calendar(); }
  /// The same of the files.
  Calendar file_calendar() const { return calendar_.value_or(Calendar::kStandard); }
  /// @param what  that cannot be without dates. @throws DataError  where the times of the files have none.
  void require_dates(const std::string& what) const;
  /// As the first of them calls it.
  std::string calendar_name() const { return calendar_ ? calendar_name_ : name(file_calendar()); }
  /// Whether times are months.
  bool of_months() const { return selection_.time_step.month; }
  /// The periods among the parts in that calendar; of months those in which they begin and end are whole.
  /// @param key  as of periods_of(). @throws ConfigError
  std::vector<Period> periods(const std::vector<DataPart>& parts, const std::string& key) const;
  /// "2019-03-01T06:00", of months "2019-03"; "2019-03-01 to 2019-03-24", "2019-03 to 2019-05".
  std::string text_of(Time time) const;
  std::string text_of(const Period& period) const;
  const std::string& units(const Field& field) const { return series(field).units; }
  /// The times of a selected field, ascending.
  const std::vector<Time>& times(const Field& field) const { return series(field).index->times; }
  /// The same of a field that is selected as Between::kCycle, in calendar().
  std::vector<Time> times_of_cycle(const Field& field) const;
  /// The file of a selected field, "a.nc" or "a.nc and 3 more files".
  std::string where(const Field& field) const;
  /// The file that has a selected field of a member at a time; "" where the time is none of those of the
  /// files.
  const std::string& path_at(const Field& field, const Moment& moment) const;
  /// Times that stand more than once in the files of a selected field, and must be equal there; ascending.
  std::vector<Time> repeated_times(const Field& field) const;
  /// A file that goes on with other times of the day (or of the step) than the file before it.
  struct OtherPhase {
    std::string path;
    Time before = 0, time = 0;  ///< the last time of the file before, the first of this one
  };
  /// The first such file of a selected field whose states are a day apart at most; nothing where all times
  /// are whole steps apart.
  std::optional<OtherPhase> other_phase(const Field& field) const;
  /// From where to where the states of a selected field hold, from their times, where the files say that by
  /// bounds and it is the same for all (of months: where they say any); of differences of sums their step;
  /// nothing elsewhere. @throws DataError
  std::optional<Period> time_limits(const Field& field);
  /// What holds between the times of the files of a selected field.
  Between between(const Field& field) const { return series(field).between; }
  /// That of times(): calendar(), or another one of Between::kCycle.
  Calendar calendar_of(const Field& field) const;
  /// From now on it is noted of these selected fields whether read() finds any value. Before the first
  /// read().
  void watch(const std::vector<Field>& fields) { watched_.insert(fields.begin(), fields.end()); }
  /// Whether any value of such a field was found at a time; nothing where it was not read. Not while others
  /// read.
  std::optional<bool> seen_at(const Field& field, Time time) const;
  /// A file that lacks a field.
  struct Lacking {
    std::string path, holds;  ///< and another field that it has
    Time time = 0;            ///< of that
  };
  /// The first file in a period that has another selected field and not this one, which stands beside it in
  /// other files and in no file at that time: as where a variable has another name from some file on.
  std::optional<Lacking> first_file_without(const Field& field, const Period& period) const;
  /// Whether any file has the field, on its level.
  bool holds_level(const Field& field);
  /// Whether read() gives it then.
  bool has(const Field& field, Time time) const;
  /// The files of a selected field that lie on another grid than this.
  struct Regridded {
    std::int64_t files = 0, of = 0;  ///< so many of all that hold it
    std::string path;                ///< the first
  };
  Regridded regridded(const Field& field) const;
  /// Whether a selected field is brought to the grid from another one.
  bool is_regridded(const Field& field) const;
  /// The variable without levels that holds the areas of cells, by its standard_name, cell_area, or a usual
  /// name: areacello, areacella, cell_area, TAREA, or `area` in m2; nothing where there is none.
  std::optional<std::string> cell_area_variable();
  /// Whether rows and columns of a projected grid go round a circle.
  struct GoesRound {
    bool rows = false, columns = false;
    /// So many of the last columns lie where the first ones do, as the halo of ORCA grids; then columns do
    /// not go round, for the first one stands once more before the end.
    std::int64_t repeated = 0;
  };
  /// The last column does where it lies beside the first one, the last row where it lies at the first one, as
  /// far as places in the first, middle and last row show; also where these have none.
  GoesRound goes_round() const;
  /// Of a constant field: the file whose last state is another one than that which is read, if that of the
  /// last file is, as far as three rows show: by more than a thousandth of their range, for files are packed
  /// in ways of their own. @throws DataError
  std::optional<std::string> changes_in(const Field& field);
  /// Whether chunks on disk hold two selected fields together, at the same times: what reads one after the
  /// other reads them twice.
  bool share_chunks(const Field& one, const Field& other) const;
  /// Of selected fields that lie elsewhere, by the two-dimensional latitudes and longitudes that they name,
  /// than the grid has its points: corners of cells beside centres, or fields whose axes are nominal, as on
  /// tripolar grids. A sentence for each such pair, as far as three rows show.
  std::vector<std::string> fields_elsewhere();
  /// Of a selected field. @throws DataError
  FieldDescription describe(const Field& field);
  /// DataFile::height_of() of a selected field without a level, in its first file. @throws DataError
  std::optional<double> height_of(const Field& field);
  /// Of the points of a projected grid, and of its mapping in the file of a selected field.
  PointsDescription describe_points(const Field& field);

  /// How many members of an ensemble are read: more than one only where all of them are. Known when fields
  /// are selected.
  std::int32_t members() const { return members_.empty() ? 1 : static_cast<std::int32_t>(members_.size()); }
  /// Their numbers, ascending, where all are read; none where no selected field has any.
  const std::vector<double>& member_numbers() const { return members_; }
  /// Whether a selected field is of an ensemble, if of one member alone.
  bool has_members() const { return !members_.empty() || !noted_members_.empty(); }
  /// The one that is read, its number as the files have it, where they have an ensemble; nothing where
  /// several are read, or files that hold one each hold different ones. Known when fields are selected.
  const std::optional<CoordinateDescription>& member() const { return member_; }
  /// What a file says by a scalar coordinate of which member its states are.
  struct LoneMember {
    double number = 0;
    std::string name, path;
  };
  /// Of the files of a selected field that are not taken as those of an ensemble each such number with the
  /// first file that has it. Without those called `number`, which files of one analysis have as well.
  std::vector<LoneMember> lone_members(const Field& field);
  /// How many have states of their own of a selected field: members() or 1.
  std::int32_t members_of(const Field& field) const;

  /// Rows and columns `box` [H, W] of a field at one time in physical units, NaN where it is missing unless
  /// FileSelection::fill has a number for it (of each state, before it is interpolated in time): one
  /// hyperslab, or as many as pieces of the box lie apart in the file. For a constant field the time does not
  /// matter. @throws DataError  when the time is not there, or several files have it with other values.
  void read(const Field& field, Moment moment, const Box& box, std::span<double> out);
  /// The same in float; values that are no floats (exact_in_float) are rounded once.
  void read(const Field& field, Moment moment, const Box& box, std::span<float> out);
  /// Whether FileSelection::fill has a number for a selected field.
  bool is_filled(const Field& field) const { return series(field).fill.has_value(); }
  /// Whether the states of a selected field are differences of running sums, as FileSelection::deaccumulate
  /// says.
  bool is_deaccumulated(const Field& field) const { return series(field).summed.has_value(); }
  /// As read() gives it, NaN where it is missing whatever FileSelection::fill says.
  void read_unfilled(const Field& field, Moment moment, const Box& box, std::span<double> out);
  /// The same as read() gives, in parts, as VariableFile::stream() does; nothing where the state is not one
  /// hyperslab of one file in the order of the grid, must be compared with what other files hold, or is not
  /// there. @throws DataError
  std::optional<HyperslabStream> stream(const Field& field, Moment moment, const Box& box);
  /// Whether all values of a selected field are floats, whichever file they come from.
  bool exact_in_float(const Field& field) const;

  /// Of all selected fields.
  std::vector<FieldStorage> storage() const;

  /// Of a constant field: the coordinates of a dimension of its variable. @throws DataError  when it has
  /// none.
  std::vector<double> coordinates(const Field& field, const std::string& dimension);
  /// Of a constant field, at these positions along dimensions of its variable. @throws DataError
  void read_entry(const Field& field, const std::map<std::string, std::int64_t>& positions, const Box& box,
                  std::span<double> out);

  /// Elements read so far times their size on disk, coordinates included.
  std::int64_t bytes_read() const;
  /// VariableFile::bytes_fetched() of all files.
  std::int64_t bytes_fetched() const;
  /// VariableFile::undeclared() of all files, by "variable in file".
  std::map<std::string, UndeclaredValues> undeclared() const;

 private:
  /// The points of files whose fields are brought to those of the grid one by one, not along axes.
  struct Source {
    std::shared_ptr<const SourcePoints> points;
    Regrid method = Regrid::kNone;
    std::vector<double> known_by;  ///< extents and some of the degrees, which files of the same points share
  };
  /// Where the points of the grid stand along the axes of a file.
  struct Axes {
    std::shared_ptr<const AxisMap> rows, columns;
    std::shared_ptr<const Source> source;
  };
  /// A file, the dimensions of rows and columns or of a list in it, the latitudes that say where the points
  /// are that are brought to others, and how.
  using AxesKey = std::tuple<int, std::string, std::string, std::string, Regrid>;
  static constexpr std::int32_t kAllGroups = -1;
  /// A variable (on one level) in one file.
  struct Part {
    int file = 0;
    const FileVariable* variable = nullptr;
    FieldAxes axes;
    std::int64_t level = 0, channel = 0;
    /// Positions of the members that are read, those of other files -1; empty for what has none.
    std::vector<std::int64_t> members;
    std::int32_t group = kAllGroups;     ///< of files with the same members, where others have others
    std::vector<std::int64_t> versions;  ///< positions, the one that counts most first
    std::optional<Time> lead;            ///< of forecasts: its states are those of this lead
    int lead_axis = -1;                  ///< the dimension along which leads stand
    std::int64_t lead_position = 0;
    std::shared_ptr<const AxisMap> rows, columns;  ///< none of a list
    std::shared_ptr<const Source> source;          ///< or null

    bool regridded() const { return source || (rows && rows->weights() != nullptr); }
  };
  /// Where each time stands; shared by all fields of the same files, since it can be long.
  struct TimeIndex {
    struct Entry {
      std::int32_t part, position;
    };
    std::vector<Time> times;
    std::vector<Entry> entries;
    std::multimap<Time, Entry> others;  ///< of the same times in other files, which must be equal
    /// Of differences of running sums, in place of `others`: the sums as the files hold them, and of each of
    /// `times` the numbers of two among them.
    struct Step {
      std::size_t end = 0;
      std::optional<std::size_t> begin;  ///< that is subtracted; nothing where the sum began there
    };
    std::shared_ptr<const TimeIndex> sums;  ///< or null
    std::vector<Step> steps;
    Time step = 0;  ///< from the begin of each to its end
  };
  struct Series {
    std::string units;
    bool has_time = true;
    bool absent = false;  ///< the parts are those of another field
    Between between = Between::kNothing;
    Calendar calendar = Calendar::kStandard;  ///< of the times of Between::kCycle
    std::optional<double> fill;               ///< in place of missing values
    std::optional<SummedSince> summed;        ///< where the files hold running sums
    std::vector<Part> parts;
    std::shared_ptr<const TimeIndex> index;
    std::optional<Part> last;  ///< of a constant field, of whose parts the first of each group alone is kept
    /// Where files have other members than others: of each member the group, and the index of that, with the
    /// same times as `index`.
    std::vector<std::int32_t> groups;
    std::vector<std::shared_ptr<const TimeIndex>> group_indices;

    const TimeIndex& index_of(std::int32_t member) const;
    const Part& constant(std::int32_t member) const;
  };
  /// Parts by number and file, what says their times and of which lead they are; and whether data.time_step
  /// leaves any of their times out, and whether these are brought to the calendar of all others.
  struct TimeDimensions {
    std::vector<std::tuple<int, int, std::string, std::optional<Time>>> parts;
    bool steps = false, in_calendar = true;

    auto operator<=>(const TimeDimensions&) const = default;
  };

  /// Latitudes and longitudes of the first, middle and last row of a projected grid, in degrees.
  using SampledPlaces = std::array<std::vector<double>, 2>;

  const Series& series(const Field& field) const;
  const FileVariable& with_missing(const FileVariable& variable, double number);
  DataFile& use(int file);
  void select(const Field& field, Series series, bool uniform);
  void take(const Field& field, Series series, bool uniform);
  void forget_grid();
  void forget_calendar_and_members();
  std::vector<Part> find_parts(const Field& field, bool uniform);
  /// While it lives, its file is not closed.
  class Pin {
   public:
    Pin(FileSet& files, int file);
    ~Pin();
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;
    DataFile& file() { return file_; }

   private:
    FileSet& files_;
    int number_;
    DataFile& file_;
  };
  std::optional<FieldPlace> find_in(int file, const Field& field);
  bool find_level(const Field& field, Part& part);
  std::optional<double> single_level(const Part& part);
  void require_one_level(const Field& field, const std::vector<Part>& parts);
  void find_members(const Field& field, std::vector<Part>& parts);
  std::vector<std::vector<double>> numbers_of_members(const std::vector<Part>& parts);
  void take_member(std::vector<Part>& parts, const std::vector<std::vector<double>>& numbers);
  void take_all_members(std::vector<Part>& parts, const std::vector<std::vector<double>>& numbers);
  static std::vector<std::int32_t> groups_of(const std::vector<Part>& parts);
  void note_member(const Part& part);
  static Box slab_of(const Part& part, std::int64_t time, std::int32_t member);
  int dimension_of(const Part& part, const std::string& name);
  std::set<std::string> names_in_groups() const;
  static std::vector<std::string> names_in(DataFile& file, const FileVariable& variable);
  static const std::string& dimension(const FileVariable& variable, int axis);
  [[noreturn]] void refuse_channels(const Part& part);
  void refuse_tile(const Part& part, const std::vector<double>& latitudes,
                   const std::vector<double>& longitudes);
  [[noreturn]] void refuse_list(const Part& part, Regrid method);
  RegridOptions regrid_of(const Part& part);
  [[noreturn]] void refuse_unknown(const std::string& variable, bool uniform) const;
  static std::vector<std::string> series_of(const DataFile& file);
  [[noreturn]] void refuse_level(const Field& field);
  [[noreturn]] void refuse_timeless(const Field& field, const std::vector<Part>& parts, const Part& timeless);
  [[noreturn]] void refuse_beside_step(const Field& field, const Part& part, Time time, Time step);
  std::shared_ptr<const TimeIndex> index_times(const Field& field, const Series& series, std::int32_t group);
  std::shared_ptr<const TimeIndex> index_states(const Field& field, const Series& series, std::int32_t group);
  Time step_of_sums(const Field& field, const Series& series, const TimeIndex& sums);
  void index_groups(const Field& field, Series& series);
  std::string members_text(const Series& series, std::int32_t group) const;
  void begin_cycle(const Field& field, Series& series);
  std::optional<TimePlace> place_of(const Series& series, Time time) const;
  void check_memory(const Part& part);
  void place_on_grid(Part& part, Regrid method);
  void map_axes(Part& part, const std::vector<double>& latitudes, const std::vector<double>& longitudes,
                Regrid method);
  void place(Part& part, Regrid method);
  bool lies_on_projection(const Part& part, const std::vector<double>& rows,
                          const std::vector<double>& columns);
  void place_between(Part& part, const std::vector<double>& latitudes, const std::vector<double>& longitudes,
                     Regrid method);
  void place_scattered(Part& part, Regrid method);
  void share(Part& part, Regrid method, std::vector<double> known_by,
             const std::function<std::shared_ptr<const SourcePoints>()>& make);
  std::shared_ptr<const SourcePoints> find_points(const Part& part, Regrid method);
  std::vector<double> sample_points(const Part& part);
  ListedPlaces places_of(const Part& part, const Box& plane);
  std::vector<double> degrees_of(const Part& part, const FileVariable& degrees, const Box& plane);
  TargetPoints targets_of(const Box& box, Regrid method);
  TargetPoints sampled_targets(Regrid method);
  std::pair<SourceAxis, SourceAxis> source_axes(const Part& part, const std::vector<double>& latitudes,
                                                const std::vector<double>& longitudes);
  const Part& grid_part(const Part& part) const;
  std::shared_ptr<const PointWeights> weights_at(const Part& part, const Box& box);
  void require_reach(const Part& part, const PointWeights& weights, const TargetPoints& targets);
  void turn_projection(Part& part, const std::vector<double>& rows, const std::vector<double>& columns);
  void place_on_projection(const Part& part);
  std::optional<std::size_t> other_places(const SampledPlaces& found) const;
  /// Of latitudes and longitudes.
  using PlaceVariables = std::array<const FileVariable*, 2>;
  std::int64_t repeated_columns() const;
  SampledPlaces sample_degrees(const std::array<Part, 2>& parts);
  PointPlaces degrees_at(const std::array<Part, 2>& parts, const Box& box);
  void forget_zeros(int file, const PlaceVariables& variables, std::span<double> latitudes,
                    std::span<double> longitudes);
  bool has_zeros(int file, const PlaceVariables& variables);
  void require_everywhere(std::size_t axis, const Box& box, std::span<const double> degrees);
  void make_grid(const std::vector<double>& latitudes, const std::vector<double>& longitudes, bool projected,
                 const std::string& path);
  static void refuse_gap(const std::vector<double>& longitudes, const std::string& path);
  std::string both_have(const std::vector<double>& latitudes, const std::vector<double>& longitudes) const;
  [[noreturn]] void refuse_grid(const Part& part, const std::vector<double>& latitudes,
                                const std::vector<double>& longitudes, Regrid method);
  void check_calendar(int file, const std::string& times);
  bool in_other_calendar(const Series& series, int file, const std::string& times);
  std::vector<Time> times_in(int file, const std::string& times);
  std::optional<std::string> said_times(const Part& part);
  std::vector<Time> times_of(const Part& part, const std::string& times);
  bool take_lead(Part& part, Time lead);
  void refuse_starts(const Field& field, const Part& part, const std::string& times);
  [[noreturn]] void refuse_lead(const Field& field, Time lead);
  std::vector<std::int64_t> versions_of(const Part& part);
  CoordinateDescription describe_coordinates(const Part& part, DataFile& file, std::size_t axis) const;
  std::string check_units(const Field& field, const std::vector<Part>& parts) const;
  std::string method_of(const Part& part) const;
  void check_methods(const Field& field, const std::vector<Part>& parts) const;

  template <typename T>
  void note_seen(const Field& field, Time time, std::span<const T> values);
  template <typename T>
  void read_values(const Field& field, Moment moment, const Box& box, const std::optional<double>& fill,
                   std::span<T> out);
  template <typename T>
  void read_at(const Field& field, const Series& source, std::size_t number, std::int32_t member,
               const Box& box, std::span<T> out);
  template <typename T>
  void read_stored(const Field& field, const Series& source, const TimeIndex& index, std::size_t number,
                   std::int32_t member, const Box& box, std::span<T> out);
  template <typename T>
  void read_difference(const Field& field, const Series& source, std::size_t number, std::int32_t member,
                       const Box& box, std::span<T> out);
  template <typename T>
  void read_part(const Part& part, std::int64_t time, std::int32_t member, const Box& box, std::span<T> out);
  template <typename T>
  void read_state(const Part& part, Box slab, const Box& box, std::span<T> out);
  template <typename T>
  void read_at_points(const Part& part, Box slab, const Box& box, std::span<T> out);
  template <typename T>
  void read_versions(const Part& part, Box slab, const Box& points, std::span<T> out);
  template <typename T>
  void read_points(const Part& part, Box slab, const Box& points, std::span<T> out);
  void require_one_member(const Field& field, const Part& one, const Part& other);
  template <typename T>
  void check_others(const Field& field, const Series& source, const TimeIndex& index, Moment moment,
                    const Box& box, std::span<const T> values);

  /// Of a projected grid: latitudes and longitudes of its points in the first file.
  struct Places {
    std::array<Part, 2> parts;
    double middle = 0;  ///< longitude from which the others are counted
    std::array<double, 2> mean = {}, deviation = {};
  };

  std::pair<Places, SampledPlaces> sample_places(const Part& part);
  SampledPlaces sample_grid() const;
  double distance_from_grid(const Part& part);
  static std::vector<double> corners_of(const SampledPlaces& samples);

  FileSelection selection_;
  std::vector<std::unique_ptr<DataFile>> files_;
  std::deque<int> open_;       ///< least recently used first
  std::map<int, int> pinned_;  ///< how often
  std::mutex open_mutex_;      ///< guards these two and the handles behind them
  Grid grid_;
  std::string grid_file_;
  std::optional<SampledPlaces> sampled_places_;  ///< that all fields must have
  std::optional<Places> places_;
  /// Of points of the grid that were read last.
  struct KeptWeights {
    std::shared_ptr<const Source> source;
    Box box;
    std::shared_ptr<const PointWeights> weights;
  };
  std::deque<KeptWeights> kept_weights_;
  std::mutex kept_weights_mutex_;
  std::map<std::pair<int, std::string>, bool> zeros_;  ///< has_zeros() by file and latitudes
  std::mutex zeros_mutex_;
  std::vector<double> members_;  ///< their numbers, where all are read
  std::string members_file_;
  std::set<std::pair<int, std::string>> noted_members_;  ///< file and dimension
  std::optional<CoordinateDescription> member_;
  bool members_differ_ = false;
  std::optional<Calendar> calendar_;
  std::string calendar_file_, calendar_name_;
  std::map<AxesKey, Axes> axis_maps_;
  std::vector<std::shared_ptr<const Source>> sources_;
  std::map<Field, Series> series_;
  /// Variables of files with what FileSelection::missing says of them.
  std::map<std::pair<const FileVariable*, double>, FileVariable> with_missing_;
  std::map<TimeDimensions, std::shared_ptr<const TimeIndex>> indices_;  ///< of what the files hold
  /// Of differences of the sums of one of these.
  std::map<std::pair<const TimeIndex*, SummedSince>, std::shared_ptr<const TimeIndex>> differences_;
  std::set<Field> watched_;
  std::map<Field, std::map<Time, bool>> seen_;  ///< whether there was any value
  std::mutex seen_mutex_;
  std::mutex mutex_;  ///< of what finds out about fields; reading needs it not
};

}  // namespace jigsaw::inline fields
