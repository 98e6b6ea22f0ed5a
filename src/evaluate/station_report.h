#pragma once
#include <map>
#include <string>
#include <vector>

#include "evaluate/score_report.h"
#include "evaluate/station_scores.h"

namespace jigsaw::inline evaluate {

/// For people: for each variable that was observed its scores by region and lead. None without stations.
std::vector<std::string> station_tables_of(const ScoreReport& report);
/// {"places": 118, "scores": {"t2m": {"units": "K", "all": {"rmse": [1.2, 1.9], …}}}}.
Json stations_of(const ScoreReport& report);
/// The scores at each station: a CF-1.10 NetCDF file, "t2m_rmse" [station, lead_time], …, with the places of
/// PlaceAxis, NaN where there is no number; or a table of text with a line for each station, variable and
/// lead.
/// @param path  the file, which is there and empty. @throws DataError
void write_station_scores(const ScoreReport& report, const std::string& path, bool as_table);

}  // namespace jigsaw::inline evaluate
