#include "train/forecast_file.h"

#include <netcdf.h>

#include <cmath>

#include "base/error.h"

namespace jigsaw::testing {

namespace {

constexpr double kMissing = -1e30;

void check(int status) {
  if (status != NC_NOERR) fail(nc_strerror(status));
}

/// A dimension with its coordinate variable.
struct Axis {
  int dimension = 0, variable = 0;

  Axis(int file, const std::string& name, const std::string& units, std::size_t extent) {
    check(nc_def_dim(file, name.c_str(), extent, &dimension));
    check(nc_def_var(file, name.c_str(), NC_DOUBLE, 1, &dimension, &variable));
    check(nc_put_att_text(file, variable, "units", units.size(), units.c_str()));
  }
};

}  // namespace

std::vector<double> coordinates(std::size_t count, double first, double step) {
  std::vector<double> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(first + step * static_cast<double>(i));
  return all;
}

void write_forecast_file(const std::string& path, const FileAxes& axes,
                         const std::vector<FileField>& fields) {
  int file = 0;
  check(nc_create(path.c_str(), NC_CLOBBER | NC_64BIT_OFFSET, &file));
  const Axis time(file, "time", "hours since 2019-12-30", axes.hours.size());
  const Axis latitude(file, "latitude", "degrees_north", axes.latitudes.size());
  const Axis longitude(file, "longitude", "degrees_east", axes.longitudes.size());
  std::vector<std::pair<int, std::vector<double>>> values = {{time.variable, axes.hours},
                                                             {latitude.variable, axes.latitudes},
                                                             {longitude.variable, axes.longitudes}};
  for (const FileField& field : fields) {
    std::vector<int> dimensions;
    if (field.has_time) dimensions.push_back(time.dimension);
    if (!field.levels.empty()) {
      const Axis level(file, "level", "hPa", field.levels.size());
      dimensions.push_back(level.dimension);
      values.emplace_back(level.variable, field.levels);
    }
    dimensions.insert(dimensions.end(), {latitude.dimension, longitude.dimension});
    int variable = 0;
    check(nc_def_var(file, field.name.c_str(), NC_DOUBLE, static_cast<int>(dimensions.size()),
                     dimensions.data(), &variable));
    check(nc_put_att_double(file, variable, "_FillValue", NC_DOUBLE, 1, &kMissing));
    values.emplace_back(variable, field.values);
    for (double& value : values.back().second) {
      if (std::isnan(value)) value = kMissing;
    }
  }
  check(nc_enddef(file));
  for (const auto& [variable, numbers] : values) check(nc_put_var_double(file, variable, numbers.data()));
  check(nc_close(file));
}

}  // namespace jigsaw::testing
