#pragma once
#include <cstdint>
#include <string>

namespace jigsaw::inline samples {

/// What data set to write; the default is 5°, six-hourly, two months: 5 MB.
struct SampleDataOptions {
  int rows = 37;     ///< latitudes from 90° to −90°
  int columns = 72;  ///< longitudes from 0° on
  int step_hours = 6;
  int year = 2021;
  int month = 1;  ///< the first
  int months = 2;
  std::uint64_t seed = 1;
};

/// Writes DIRECTORY/sample_YYYY-MM.nc, a file a month, as the Climate Data Store delivers ERA5 in packed
/// NetCDF (grib_to_netcdf: classic with 64-bit offsets): t2m [K], u10 and v10 [m s-1] and z [m2 s-2, at
/// 500 hPa] on (time, latitude, longitude), int16 with scale_factor, add_offset and _FillValue of each
/// file's own range, latitude from north to south, time in hours since 1900. What it holds is
/// RossbyHaurwitzFlow. The same options give the same bytes. Makes the folder; replaces files of these names.
///
/// @throws ConfigError  for options out of range (the waves need 18 columns)
/// @throws DataError    when a file cannot be written
void write_sample_data(const SampleDataOptions& options, const std::string& directory);

}  // namespace jigsaw::inline samples
