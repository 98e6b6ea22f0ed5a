#include "predict/place_axis.h"

#include <algorithm>
#include <utility>

namespace jigsaw::inline predict {

PlaceAxis::PlaceAxis(NetcdfOutput& file, NamedPlaces places) : places_(std::move(places)) {
  using Type = NetcdfOutput::Type;
  std::size_t longest = 1;
  for (const std::string& name : places_.names) longest = std::max(longest, name.size());
  dimension_ = file.add_dimension("station", places_.size());
  const int letters = file.add_dimension("station_name_length", longest);
  names_ = file.add_variable("station_name", Type::kChar, {dimension_, letters});
  file.add_text(names_, "long_name", "name of the place");
  file.add_text(names_, "cf_role", "timeseries_id");
  file.add_text(names_, "_Encoding", "utf-8");
  latitudes_ = file.add_variable("latitude", Type::kDouble, {dimension_});
  file.add_text(latitudes_, "standard_name", "latitude");
  file.add_text(latitudes_, "units", "degrees_north");
  longitudes_ = file.add_variable("longitude", Type::kDouble, {dimension_});
  file.add_text(longitudes_, "standard_name", "longitude");
  file.add_text(longitudes_, "units", "degrees_east");
}

void PlaceAxis::write(NetcdfOutput& file) const {
  file.write(names_, places_.names);
  file.write(latitudes_, places_.latitudes);
  file.write(longitudes_, places_.longitudes);
}

}  // namespace jigsaw::inline predict
