#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "fields/file_set.h"
#include "files/netcdf_output.h"
#include "predict/place_axis.h"

namespace jigsaw::inline predict {

/// Fields of data files in a NetCDF file that is written: rows, columns and levels stand as in the input,
/// with their attributes and bounds. On a projected grid its own rows and columns are in place of latitude
/// and longitude, which are auxiliary coordinates of each point, and the grid mapping of the input is there
/// with its attributes. Scalar coordinates of variables, as the height of t2m, stand as in the input. Fields
/// of one variable and several levels are one variable with a dimension for them. For one thread at a time.
class WrittenFields {
 public:
  explicit WrittenFields(NetcdfOutput& file) : file_(file) {}

  /// Defines rows and columns. @param files  have the fields selected.
  /// @param split_levels  each level is a variable of its own, t_850.
  void define_grid(FileSet& files, const std::vector<Field>& fields, bool split_levels);
  /// Defines places in their stead: fields have one dimension, `station`, for rows and columns.
  void define_places(FileSet& files, const std::vector<Field>& fields, bool split_levels,
                     const NamedPlaces& places);
  /// The dimension of two limits, which is defined when it is first asked for.
  int bounds_dimension();

  /// Variables that the fields belong to.
  std::size_t variables() const { return variables_.size(); }
  const std::string& name(std::size_t variable) const { return variables_[variable].name; }
  /// Of its first field. Attributes say what the field is.
  const FieldDescription& description(std::size_t variable) const {
    return fields_[variables_[variable].fields.front()];
  }
  std::size_t levels(std::size_t variable) const { return variables_[variable].fields.size(); }
  std::size_t variable_of(std::size_t field) const { return places_[field].variable; }

  /// A variable of float with the level, rows and columns of one of the fields', deflated.
  struct Definition {
    std::string name;          ///< as free_name() may change it
    std::vector<int> leading;  ///< dimensions before those
    std::map<std::string, std::string> texts;
    std::map<std::string, std::vector<double>> numbers;
    std::vector<std::string> auxiliary = {};  ///< coordinates beside those of points
    std::int64_t planes = 1;  ///< that are written at the same time: chunks are kept of so many
  };
  /// @return  the variable's number in the file. @throws DataError  when levels have no unit in common.
  int define(std::size_t variable, const Definition& definition);

  /// Behind the definitions.
  void write_coordinates(FileSet& files);
  /// Rows and columns `box` [H, W], or places, of a field in a variable that define() made of its variable.
  /// What is not finite is missing. @param leading  its place along the dimensions before level, rows and
  /// columns.
  void write(int variable, std::size_t field, const std::vector<std::int64_t>& leading, const Box& box,
             std::span<float> values);

 private:
  /// A dimension and its coordinate variable, where it has one.
  struct Axis {
    int dimension = -1, variable = -1, bounds = -1;
    std::int64_t extent = 0;
    CoordinateDescription description;
  };
  /// Variables of a projected grid.
  struct Points {
    int latitude = -1, longitude = -1, mapping = -1;
    bool single_latitude = false, single_longitude = false;
    std::string mapping_name;
  };
  /// A coordinate of one value.
  struct Scalar {
    CoordinateDescription description;
    int variable = -1, bounds = -1;
    std::string name;
  };
  struct Variable {
    std::string name;
    std::vector<std::size_t> fields;
  };
  struct Place {
    std::size_t variable = 0;
    std::int64_t level = -1;  ///< position in the file; -1 for a variable without levels
  };

  void take_fields(FileSet& files, const std::vector<Field>& fields, bool split_levels);
  std::string add_scalar(const CoordinateDescription& description);
  std::size_t add_axis(const CoordinateDescription& description, std::int64_t extent);
  std::size_t add_levels(const std::vector<std::size_t>& members);
  int add_described(const std::string& name, const CoordinateDescription& description,
                    const std::vector<int>& dimensions);
  int add_of_points(const CoordinateDescription& description);
  void define_points(const PointsDescription& described);

  NetcdfOutput& file_;
  int bounds_ = -1;
  std::vector<FieldDescription> fields_;
  std::vector<Variable> variables_;
  std::vector<Place> places_;  // by field
  std::vector<Axis> axes_;     // rows and columns, or places, then levels
  std::size_t plane_ = 2;      // how many of these are no levels
  std::vector<Scalar> scalars_;
  std::set<std::string> taken_;         // names of levels and variables, which scalars leave to them
  std::vector<std::string> of_points_;  // coordinates of points
  std::optional<Points> points_;
  std::optional<PlaceAxis> named_places_;
};

}  // namespace jigsaw::inline predict
