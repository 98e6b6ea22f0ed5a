#pragma once
#include <string>
#include <vector>

#include "fields/data_file.h"

namespace jigsaw::inline fields {

/// Places on the earth with names, such as stations.
struct NamedPlaces {
  std::vector<std::string> names;
  std::vector<double> latitudes, longitudes;  ///< in degrees

  std::size_t size() const { return names.size(); }
};

/// The places that a file lists, in its order. It is a table of text whose first line names its columns,
/// parted by commas, semicolons or tabs: one is `latitude` or `lat`, one `longitude`, `lon` or `lng`, and
/// one, unless places have numbers alone, `name`, `station`, `site` or `id` (in letters of either case);
/// others are passed over. Or it is a file of variables (NetCDF, HDF5 with dimensions, Zarr), of which one
/// lies along a dimension of latitudes and longitudes, as places_of() takes it.
/// @throws DataError  that names the file, and of a table the line.
NamedPlaces read_places(const std::string& path);

/// The list of points that a variable lies on, FieldAxes::cells: their names are the texts, or the whole
/// numbers, of a variable along the same dimension that is called `station`, `station_name`, `station_id`,
/// `name`, `id`, … or like that dimension; else their positions from 0 on. @throws DataError
NamedPlaces places_of(DataFile& file, const FileVariable& variable);

}  // namespace jigsaw::inline fields
