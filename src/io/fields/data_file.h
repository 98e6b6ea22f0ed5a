#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fields/channel_layout.h"
#include "fields/field.h"
#include "files/variable_file.h"
#include "grids/listed_grids.h"
#include "times/time_axis.h"

namespace jigsaw::inline fields {

enum class AxisKind : std::uint8_t;

/// Which dimension of a variable is which axis; -1 where it has none.
struct FieldAxes {
  int time = -1, level = -1, latitude = -1, longitude = -1;
  /// "expver" of the Climate Data Store's legacy files: each time is in one of them, the final analysis (1)
  /// or the preliminary one (5), and missing in the other.
  int version = -1;
  int channel = -1;  ///< variables by name, as in Makani's `fields`
  int member = -1;   ///< of an ensemble
  /// Latitude and longitude are rows and columns of a projection or of another grid whose points have
  /// latitudes and longitudes of their own.
  bool projected = false;
  /// Points that are a list, each with a latitude and a longitude.
  int cells = -1;

  bool horizontal() const { return cells >= 0 || (latitude >= 0 && longitude >= 0); }
  /// Rows and columns of a variable on these axes; those of a list are one row.
  Shape plane_of(const Shape& shape) const {
    return cells >= 0 ? Shape{1, shape[cells]} : Shape{shape[latitude], shape[longitude]};
  }
};

/// What a field is in a file.
struct FieldPlace {
  const FileVariable* variable = nullptr;
  std::int64_t channel = -1;  ///< along the axis of channels, where it is one of them
};

/// A coordinate as its file has it.
struct CoordinateDescription {
  std::string name;                          ///< of the dimension and of its variable, without groups
  std::map<std::string, std::string> texts;  ///< its attributes: units, standard_name, long_name, axis, …
  bool single_precision = false;
  std::vector<double> values;  ///< in the file's units; none of a dimension without a coordinate variable
  std::string bounds_name;     ///< of the variable of cell limits; "" where there is none
  std::vector<double> bounds;  ///< two limits for each value
};

/// Whether a variable names a coordinate in its `coordinates` (CF, section 5).
bool names_coordinate(const FileVariable& variable, const FileVariable& coordinate);

/// Throws DataError where it is not known whether a list of points has its places in degrees or radians: no
/// unit is said and the values may be either, or they are those of the globe in radians and called degrees.
/// @param places  of the whole list, as they follow from the units.
void require_known_unit(const std::string& path, const FileVariable& latitudes,
                        const FileVariable& longitudes, const ListedPlaces& places);

/// A file whose variables name their dimensions, as fields on axes: these are recognised by the
/// standard_name, units or axis of their coordinate variable, else by name, and coordinates are decoded once.
class DataFile {
 public:
  explicit DataFile(std::unique_ptr<VariableFile> file) : file_(std::move(file)) {}

  /// Takes a data set's dimensions, channels, grid and times as they are given, in place of what the file
  /// says.
  /// @throws DataError  when it has no such data set, or one of other extents, or no year in its name.
  void describe_channels(const ChannelLayout& layout);

  VariableFile& file() { return *file_; }
  const VariableFile& file() const { return *file_; }

  /// A dimension is one of times only where something says the times along it.
  FieldAxes axes(const FileVariable& variable) const;
  /// Whether all of a variable stands at one height or depth, in a unit of length: t2m at 2 m.
  bool at_one_height(const FileVariable& variable) const;
  /// The height or depth that all of a variable stands at, in m, as a dimension of one entry or a scalar
  /// coordinate says in a unit of length; nothing elsewhere.
  std::optional<double> height_of(const FileVariable& variable);
  /// The scalar coordinate (CF, section 5.7) that says the level of a field without a dimension of levels, as
  /// in files of one level each; null where the file has none, or several.
  const FileVariable* scalar_level(const FileVariable& variable) const;
  /// Scalar coordinates that a field names in its `coordinates` and that say neither its time, nor its
  /// member, nor that of `level`: the height of t2m. With limits of their cell where they have some.
  std::vector<CoordinateDescription> scalars_of(const FileVariable& variable, const FileVariable* level);
  /// What it says, as coordinates() has levels.
  std::optional<double> level_of(const FileVariable& variable);
  /// The scalar coordinate that says of which member of an ensemble a file is.
  std::optional<CoordinateDescription> scalar_member();
  /// The two variables of the latitudes and longitudes of the points that a field on projected axes has, each
  /// [rows, columns] or [time, rows, columns], or those of a list of points, [cells]. @throws DataError  when
  /// they are not in degrees, or those of a list in radians.
  std::pair<const FileVariable*, const FileVariable*> places(const FileVariable& variable) const;
  /// Of a list of points whose places are those of a grid that the file names, not of variables: HEALPix by
  /// its grid mapping (`healpix_nside`, `healpix_order`, or `refinement_level`, `indexing_scheme` of CF) and
  /// the numbers of its pixels where a coordinate says these, and reduced Gaussian grids as CDO writes them
  /// (`reduced_points` beside `lat`). Nothing elsewhere. @throws DataError
  std::optional<ListedPlaces> named_places(const FileVariable& variable);
  /// The variable of this name, also in a group (of several the one with the level that is asked for, or
  /// without levels) or, of GRIB, behind its kind of level, else the channel, else the one field with it as
  /// standard_name, else the variable with another usual name of it; nothing when there is none. @throws
  /// DataError  when several groups or standard_names fit.
  std::optional<FieldPlace> find(const Field& field);
  /// Throws DataError unless the variable is a field of numbers: latitude, longitude, perhaps time and level,
  /// every other dimension of extent 1.
  /// @param free     names of dimensions that may have any extent.
  /// @param uniform  whether it may be a series in time without places.
  void require_field(const FileVariable& variable, const std::vector<std::string>& free = {},
                     bool uniform = false) const;

  /// Why a variable cannot be read that lies on a grid of which it is known what helps: faces of a cubed
  /// sphere, HEALPix and unstructured grids whose points have no places in the file; "" elsewhere.
  std::string unread_grid(const FileVariable& variable, const FieldAxes& axes) const;

  /// What times() are asked for of a field with these axes: its dimension of times, or, of a file that holds
  /// one state, a scalar coordinate (CF, section 5.7); nothing where nothing says its time.
  std::optional<std::string> times_of(const FileVariable& variable, const FieldAxes& axes) const;
  /// The variable that counts from the start of forecasts to what they are of, in a unit of time: the
  /// coordinate of a dimension, or a scalar one. Null for other dimensions, and where there is none.
  const FileVariable* leads_along(const std::string& dimension) const;
  /// Whether another variable than its coordinate says starts along a dimension (forecast_reference_time).
  bool starts_along(const std::string& dimension) const;
  /// Whether the coordinate of a dimension counts since a date.
  bool counts_dates(const std::string& dimension) const;
  const FileVariable* scalar_lead() const;
  /// The scalar coordinate that says when a forecast starts; null where none does.
  const FileVariable* scalar_start() const;
  /// Whether times() along a dimension, or of a scalar coordinate, are those for which states hold, and not
  /// those of a start, as far as the file says it.
  bool says_valid_times(const std::string& dimension) const;
  /// The lead of a scalar coordinate of the variable, where `times`, as times() is asked for them, count when
  /// its forecasts began; nothing where they count when its states hold, or there is no such lead.
  std::optional<Time> lead_beside(const FileVariable& variable, const std::string& times) const;

  /// Names along a dimension of channels. @throws DataError
  const std::vector<std::string>& names(const std::string& dimension);
  /// Coordinates of a dimension: latitude and longitude in degrees; levels of pressure in hPa, others in the
  /// file's unit. @throws DataError  when it has none, one is missing, latitudes or longitudes are in another
  /// unit, or a level stands twice.
  const std::vector<double>& coordinates(const std::string& dimension);
  /// Numbers of the members of an ensemble along a dimension: its coordinates, or 0, 1, … where it has none,
  /// or names (r1i1p1f1).
  /// @throws DataError
  std::vector<double> member_numbers(const std::string& dimension, std::int64_t members);
  /// The same for a message, with names where there are any: "0 (r1i1p1f1), 1 (r2i1p1f1), …, 39 (r40i1p1f1)".
  /// @throws DataError
  std::string describe_members(const std::string& dimension, std::int64_t members);
  /// The same as the file has it, for files that are written, in the precision in which readers unpack it
  /// (read_coordinate); of names no values. @throws DataError
  CoordinateDescription describe(const std::string& dimension);
  /// The same of a scalar coordinate.
  CoordinateDescription describe_scalar(const FileVariable& scalar);
  /// Name, type and attributes of a variable, without its values.
  static CoordinateDescription describe(const FileVariable& variable);
  /// Decoded coordinates of a time dimension, or the valid times along one of reference times or steps of
  /// forecasts, or WRF's `Times` or XTIME, or the one time of a scalar coordinate. @throws DataError
  const std::vector<Time>& times(const std::string& dimension);
  /// The middles of the intervals that they stand for, where the file says these (`bounds`), as of monthly
  /// means; else the same. @throws DataError
  std::vector<Time> middles(const std::string& dimension);
  /// The two ends of each of those intervals; empty where the file does not say them. @throws DataError
  std::vector<Time> limits(const std::string& dimension);
  /// The calendar that they are counted in. @throws DataError
  Calendar calendar(const std::string& dimension) const;
  /// The same as the file calls it, "proleptic_gregorian"; "standard" where it does not say. @throws
  /// DataError
  std::string calendar_name(const std::string& dimension) const;

 private:
  std::optional<FieldPlace> find_by_name(const Field& field);
  const FileVariable& one_of_groups(const Field& field, const std::vector<const FileVariable*>& candidates);
  bool has_level(const FileVariable& variable, const std::optional<double>& level, bool this_level);
  std::optional<FieldPlace> find_channel(const Field& field);
  std::optional<FieldPlace> find_standard_name(const Field& field);
  const FileVariable& coordinate(const std::string& dimension) const;
  void find_projection(const FileVariable& variable, FieldAxes& axes) const;
  void find_cells(const FileVariable& variable, FieldAxes& axes) const;
  std::int64_t healpix_sides(const FileVariable& variable) const;
  const FileVariable* pixel_numbers(const std::string& dimension) const;
  ListedPlaces places_of_healpix(const FileVariable& variable, int d);
  const FileVariable* reduced_points() const;
  int named_cells(const FileVariable& variable) const;
  int other_time_axis(const FileVariable& variable, const FieldAxes& axes) const;
  const FileVariable* times_along(const std::string& dimension) const;
  const FileVariable* valid_times_along(const std::string& dimension) const;
  std::string lead_along(const FileVariable& variable, int time, int d) const;
  const FileVariable* scalar_time() const;
  static bool counts_leads(const FileVariable& variable);
  bool belongs_to(const FileVariable& scalar, const FileVariable& variable) const;
  static const FileVariable* coordinate_of(const VariableFile& file, const std::string& dimension);
  const FileVariable& require_times(const std::string& dimension) const;
  const FileVariable* bounds_of(const FileVariable& coordinate) const;
  std::vector<double> numbers(const FileVariable& variable);
  void require_degrees(const FileVariable& variable) const;
  void require_different(const FileVariable& variable, std::vector<double> levels) const;
  const FileVariable* place_variable(AxisKind kind, const FileVariable& variable, int dims) const;

  bool is_given(const std::string& dimension, int axis) const;

  std::unique_ptr<VariableFile> file_;
  const FileVariable* given_ = nullptr;  ///< that describe_channels() was called for
  std::map<std::string, std::vector<double>> coordinates_;
  std::optional<CoordinateDescription> scalar_member_;
  std::map<std::string, std::vector<Time>> times_;
  std::map<std::string, std::vector<std::string>> names_;
};

}  // namespace jigsaw::inline fields
