#include "fields/variable_names.h"

#include <algorithm>
#include <set>

namespace jigsaw::inline fields {

const std::vector<std::string>& other_names(const std::string& variable) {
  // GRIB's short names and their NetCDF forms; then WeatherBench 2; then CMIP, where the unit is the same.
  static const std::vector<std::vector<std::string>> groups = {
      {"t2m", "2t", "2m_temperature", "tas"},
      {"d2m", "2d", "2m_dewpoint_temperature"},
      {"u10", "10u", "10m_u_component_of_wind", "uas"},
      {"v10", "10v", "10m_v_component_of_wind", "vas"},
      {"u100", "100u", "100m_u_component_of_wind"},
      {"v100", "100v", "100m_v_component_of_wind"},
      {"msl", "mean_sea_level_pressure", "psl"},
      {"sp", "surface_pressure", "ps"},
      {"skt", "skin_temperature", "ts"},
      {"sst", "sea_surface_temperature"},
      {"siconc", "ci", "sea_ice_cover"},
      {"tp", "total_precipitation"},
      {"tcwv", "total_column_water_vapour"},
      {"lsm", "land_sea_mask"},
      {"t", "temperature", "ta"},
      {"u", "u_component_of_wind", "ua"},
      {"v", "v_component_of_wind", "va"},
      {"w", "vertical_velocity", "wap"},
      {"q", "specific_humidity", "hus"},
      {"r", "relative_humidity", "hur"},
      {"z", "geopotential"}};
  static const std::vector<std::string> none;
  const auto group = std::find_if(groups.begin(), groups.end(), [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), variable) != names.end();
  });
  return group == groups.end() ? none : *group;
}

bool is_vector_component(const std::string& variable) {
  // Short names of the Climate Data Store and of GRIB, those of CMIP and CF, and those of WeatherBench 2.
  static const std::set<std::string> known = {"u",
                                              "v",
                                              "u10",
                                              "v10",
                                              "u100",
                                              "v100",
                                              "10u",
                                              "10v",
                                              "100u",
                                              "100v",
                                              "u10n",
                                              "v10n",
                                              "ua",
                                              "va",
                                              "uas",
                                              "vas",
                                              "eastward_wind",
                                              "northward_wind",
                                              "ewss",
                                              "nsss",
                                              "tauu",
                                              "tauv",
                                              "u_component_of_wind",
                                              "v_component_of_wind",
                                              "10m_u_component_of_wind",
                                              "10m_v_component_of_wind",
                                              "100m_u_component_of_wind",
                                              "100m_v_component_of_wind"};
  return known.contains(variable);
}

}  // namespace jigsaw::inline fields
