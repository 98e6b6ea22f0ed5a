#pragma once
#include <span>
#include <string>
#include <vector>

#include "config/json.h"
#include "evaluate/map_file.h"
#include "evaluate/score_report.h"
#include "files/netcdf_output.h"

namespace jigsaw::inline evaluate {

/// A score of a climate.
struct ClimateMeasure {
  const char *name, *long_name;
  double ClimateScore::*value;
  bool has_units;
  const char* title;  ///< of its column
};
std::span<const ClimateMeasure> climate_measures();

/// What a variable of groups, from 0 on, is.
void add_group_attributes(NetcdfOutput& file, int variable, const std::vector<std::string>& groups);
/// The file of the maps of a climate. @param attributes  of the file.
MapContents climate_maps(const ClimateOptions& options, std::map<std::string, std::string> attributes);
/// For each variable a table of its scores by region and group, and one of its trends; none without a
/// climate.
std::vector<std::string> climate_tables_of(const ScoreReport& report);
/// {"groups": ["all", "DJF", …], "spin_up": 4, "scores": {"t2m": {"all": {"rmse": [0.4, 0.6, …], …}}},
/// "trends": {"t2m": {"all": {"drift": 0.1, …}}}}: of each group a number, and of each trend one; null where
/// there is none.
Json climate_of(const ScoreReport& report);

}  // namespace jigsaw::inline evaluate
