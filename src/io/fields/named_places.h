#pragma once
#include <optional>
#include <string>
#include <vector>

#include "fields/data_file.h"
#include "files/text_table.h"

namespace jigsaw::inline fields {

/// Places on the earth with names, such as stations.
struct NamedPlaces {
  std::vector<std::string> names;
  std::vector<double> latitudes, longitudes;  ///< in degrees; NaN where a file does not say it

  std::size_t size() const { return names.size(); }
  void drop_last() {
    names.pop_back();
    latitudes.pop_back();
    longitudes.pop_back();
  }
};

/// The columns of a table that say where each line is: `latitude` or `lat`, `longitude`, `lon` or `lng`, and
/// `name`, `station`, `site`, `id`, …, without which places have numbers.
class PlaceColumns {
 public:
  /// @throws DataError  unless the table has them
  explicit PlaceColumns(const TextTable& table);
  /// Appends the place of the table's line. @throws DataError
  void add(const TextTable& table, NamedPlaces& places) const;
  bool have_names() const { return name_.has_value(); }

 private:
  std::size_t latitude_ = 0, longitude_ = 0;
  std::optional<std::size_t> name_;
};

/// The places that a file lists, in its order: a table of text with PlaceColumns, or a file of variables
/// (NetCDF, HDF5 with dimensions, Zarr) of which one lies along a dimension of latitudes and longitudes, as
/// places_of() takes it, or of these alone. @throws DataError  that names the file, and of a table the line.
NamedPlaces read_places(const std::string& path);

/// A sentence of places that have one name and stand apart: of the first such name where, and how many more
/// there are; "" where there are none. @param source  of the list: "--points towns.csv".
std::string remark_on_names(const NamedPlaces& places, const std::string& source);

/// The list of points that a variable lies on, FieldAxes::cells: their names are the texts, or the whole
/// numbers, of a variable along the same dimension that is called `station`, `station_name`, `station_id`,
/// `name`, `id`, … or like that dimension; else, and where these cannot be read, their positions from 0 on.
/// @throws DataError
NamedPlaces places_of(DataFile& file, const FileVariable& variable);

}  // namespace jigsaw::inline fields
