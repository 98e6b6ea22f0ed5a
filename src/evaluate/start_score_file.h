#pragma once
#include <string>
#include <vector>

#include "evaluate/forecast_scores.h"
#include "evaluate/score_axes.h"
#include "files/netcdf_output.h"

namespace jigsaw::inline evaluate {

/// What a file of scores by start is of.
struct StartScoreContents {
  std::string title, source;
  ScoredLeads leads;
  Calendar calendar = Calendar::kStandard;  ///< of the files of data
  std::int64_t starts = 0, members = 1;
  std::vector<std::string> variables, units;  ///< per target channel
  std::vector<Region> regions;
};

/// A CF-1.10 NetCDF file of the scores of each forecast: "t2m_rmse" [time, region, lead_time], …, the scores
/// of kMeasures of a single forecast, by the time of its start; NaN where there is no number. Every failure
/// is a DataError that names the file.
class StartScoreFile {
 public:
  StartScoreFile(const StartScoreContents& contents, const std::string& path);

  /// Of the next starts.
  void write(const StartScores& scores);
  void close() { file_.close(); }

 private:
  void define_time();

  StartScoreContents contents_;
  NetcdfOutput file_;
  ScoreAxes axes_;
  int time_ = -1, time_variable_ = -1;
  std::vector<int> variables_;  ///< by channel and measure
  std::int64_t written_ = 0;
};

}  // namespace jigsaw::inline evaluate
