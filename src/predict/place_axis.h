#pragma once
#include <string>
#include <vector>

#include "fields/named_places.h"
#include "files/netcdf_output.h"

namespace jigsaw::inline predict {

/// The dimension `station` of a NetCDF file about places, and their names and degrees along it: the
/// coordinates `station_name`, `latitude` and `longitude` (CF-1.10, section 9 and appendix H.2).
class PlaceAxis {
 public:
  /// Defines them.
  PlaceAxis(NetcdfOutput& file, NamedPlaces places);
  /// Once all is defined.
  void write(NetcdfOutput& file) const;

  int dimension() const { return dimension_; }
  std::int64_t size() const { return static_cast<std::int64_t>(places_.size()); }
  /// What variables name as their `coordinates`.
  static std::vector<std::string> coordinates() { return {"station_name", "latitude", "longitude"}; }

 private:
  NamedPlaces places_;
  int dimension_ = -1, names_ = -1, latitudes_ = -1, longitudes_ = -1;
};

}  // namespace jigsaw::inline predict
