#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "files/grib_messages.h"
#include "files/variable_file.h"

namespace jigsaw::inline files {

/// What ecCodes says of messages that differ in reference time and values alone.
struct GribField {
  /// Its shortName, "2t"; of a parameter that ecCodes does not know its numbers. Of what is no analysis or
  /// forecast of the parameter, but made of several or said of them, with what it is: "2t_spread".
  std::string name;
  std::string units, long_name, standard_name;
  std::string level_type, step_type;  ///< "isobaricInhPa", "instant"
  std::string cell_methods;           ///< as CF has it, "time: mean"; "" where it has no word
  double level = 0, number = -1;      ///< number of an ensemble's member, 0 of its control run, -1: of none
  std::int64_t lead = 0;              ///< seconds from the reference time to the valid time
  double range = 0;                   ///< hours over which values are summed, averaged or compared
  int grid = -1;                      ///< number of its grid
  std::string fault;                  ///< why its values cannot be read; then it has no grid

  /// Whether messages of both belong to one variable.
  bool same_variable(const GribField& other) const {
    return name == other.name && level_type == other.level_type && step_type == other.step_type;
  }
};

/// A GRIB file of edition 1 or 2 through ecCodes: a variable for each shortName, on (time, step, number,
/// level, latitude, longitude), of which each message holds one plane. Dimensions have coordinates; variables
/// with the same ones share them, others have "time_2", …
///
/// - time is the valid time; where two messages of a variable have the same one (forecasts from several
///   times), it is the reference time, and there is a dimension step, in hours.
/// - number is there where messages name a member other than 0, beside which those that name none are the
///   control run, 0; where all are of an ensemble's control run it is a scalar.
/// - level is there where the level is one of pressure, of the model or of potential temperature, or where
///   there are several.
/// - Several variables of one shortName get the kind of level, and if need be of step, before it:
///   "surface/t".
/// - What is derived from forecasts, as the mean or spread of an ensemble, probabilities, percentiles and
///   other products are variables of names of their own: "2t_spread".
/// - What the bitmap leaves out is _FillValue. cell_methods says how values were made in time, and bounds of
/// it
///   over which time.
///
/// Of a reduced Gaussian grid that goes round the globe, whose rows are of several lengths, all points are
/// one dimension, `values`, along which there are latitude and longitude.
///
/// A variable is refused on its own where it is on no grid of latitudes and longitudes, regular or
/// Gaussian, where its sums, means or extremes are over times of several lengths, or where its messages do
/// not fill its dimensions once each. Where messages stand is found once; each plane is decoded when it is
/// asked for, whole, and kept as chunks are (files/chunk_cache.h).
class GribFile : public VariableFile {
 public:
  static constexpr const char* kFormat = "GRIB";
  /// A message that ecCodes has taken apart (files/grib_handle.h).
  class Handle;

  /// @param external  not asked: such a file has no links. @throws DataError
  explicit GribFile(const std::string& path, External external = External::kRefused);
  GribFile(const FileDescription& known, External external);
  ~GribFile() override;

  std::string_view format() const override { return kFormat; }
  void close() override;
  bool is_open() const override { return true; }

 protected:
  StoredNumbers read_stored(const FileVariable& variable, const Box& box, ByteBuffer& out,
                            std::int64_t& fetched) override;
  /// Coordinates, and where the messages of variables stand.
  std::string own_description() const override;

 private:
  struct Grid {
    std::vector<double> latitudes, longitudes;
    bool columns_first = false;             ///< whether points of a column stand together
    std::vector<std::int64_t> in_row = {};  ///< points of each row, of a reduced grid
    bool operator==(const Grid&) const = default;
  };
  struct Plane {
    std::int64_t offset = 0, bytes = 0, reference = 0;
    std::size_t field = 0;
  };
  /// A dimension with its coordinates, and that of a message.
  struct Axis {
    std::string name;
    std::map<std::string, std::string> texts;
    std::function<double(const Plane&)> of;
    std::vector<double> values = {};
    std::vector<double> bounds = {};  ///< two of each value, or none
  };
  /// FileVariable::id counts them: what a coordinate holds, or the messages of a variable, row-major.
  struct Array {
    std::vector<double> values;
    std::vector<Plane> planes;
    /// Of latitudes or longitudes of the points of a reduced grid, how many of these each row has; latitudes
    /// have one value for each row.
    std::vector<std::int64_t> in_row = {};
  };

  void read_index();
  GribField describe_message(const GribMessage& message, const std::string& bytes);
  /// The first key of the headers of two messages in which these differ, with its values, "dataType an and
  /// fc"; "" where none is known.
  std::string difference(const Plane& one, const Plane& other) const;
  /// Empty, and why in `fault`, where it has not the rows that the message names.
  std::vector<double> gaussian_latitudes(const Handle& handle, std::string& fault) const;
  /// @param latitudes  of its rows; empty: in equal steps.
  int grid_of(const Handle& handle, std::vector<double> latitudes);
  /// Of a reduced one. @returns  -1, and why in `fault`, where it does not go round the globe.
  int reduced_grid_of(const Handle& handle, std::vector<double> latitudes, std::string& fault);
  int number_of(Grid grid);
  /// Gives a variable the dimensions of a grid behind those that it has. @returns  their extents.
  std::vector<std::int64_t> add_plane(FileVariable& variable, const Grid& grid);
  std::int64_t add_points(FileVariable& variable, const Grid& grid);
  void add_variable(const std::vector<Plane>& planes, bool several_levels, bool several_steps);
  void add_run(const std::vector<std::vector<Plane>>& variables);
  void check_alike(FileVariable& variable, const std::vector<Plane>& planes) const;
  std::vector<Axis> axes_of(const std::vector<Plane>& planes) const;
  std::vector<double> time_bounds(const Axis& times, const std::vector<Plane>& planes) const;
  static std::string place_text(const std::vector<Axis>& axes, const std::vector<std::size_t>& at);
  static std::vector<std::size_t> place_of(const Plane& plane, const std::vector<Axis>& axes);
  static void refuse_holes(FileVariable& variable, const std::vector<Plane>& planes,
                           const std::vector<Axis>& axes);
  void fill(FileVariable& variable, const std::vector<Plane>& planes);
  /// The name of a dimension with this coordinate, and with two bounds of each of its values or none.
  std::string dimension(const std::string& name, const std::vector<double>& values,
                        const std::map<std::string, std::string>& texts,
                        const std::vector<double>& bounds = {});
  /// A scalar coordinate; one that is there already does.
  void add_scalar(const std::string& name, double value, const std::map<std::string, std::string>& texts);
  std::string add_coordinate(FileVariable coordinate, const std::vector<double>& values,
                             const std::vector<double>& bounds);
  /// One value of the latitudes or longitudes of a reduced grid after the other.
  static void fill_degrees(const Array& array, std::int64_t begin, std::span<double> out);
  std::string read_message(const File& file, std::int64_t offset, std::int64_t bytes) const;
  void decode(const FileVariable& variable, const Plane& plane, std::span<std::byte> out,
              std::int64_t& fetched) const;
  const GribField& field(const Plane& plane) const { return fields_[plane.field]; }

  std::vector<GribField> fields_;
  std::vector<Grid> grids_;
  std::vector<Array> arrays_;
  std::uint64_t key_;  ///< in the cache of chunks
};

}  // namespace jigsaw::inline files
