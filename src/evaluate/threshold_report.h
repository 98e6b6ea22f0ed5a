#pragma once
#include <array>
#include <string>
#include <vector>

#include "config/json.h"
#include "evaluate/score_report.h"

namespace jigsaw::inline evaluate {

/// A score of a threshold that is one number.
struct ThresholdMeasure {
  const char *name, *long_name;
  double ThresholdScore::*value;
  const char* title;  ///< of its column; "": in files alone
};
/// Those that scores of so many members have.
std::vector<ThresholdMeasure> threshold_measures(std::int64_t members);
/// A score of a threshold that is a list, one number for each count of members that reach it.
struct ReliabilityMeasure {
  const char *name, *long_name;
  std::vector<double> ThresholdScore::*values;
};
constexpr std::array kReliability = {
    ReliabilityMeasure{"forecast_share", "share of forecasts in which so many members reach a threshold",
                       &ThresholdScore::forecast_share},
    ReliabilityMeasure{"observed_frequency",
                       "how often the truth reaches a threshold where so many members do",
                       &ThresholdScore::observed_frequency}};

/// "0.1": the shortest text that is this number.
std::string threshold_text(double threshold);
/// For each variable and threshold a table of its scores by region and lead.
std::vector<std::string> threshold_tables_of(const ScoreReport& report);
/// {"tp": {"0.1": {"all": {"csi": [0.4, 0.3], …, "fss_5": […]}}}}: by variable, threshold, region and score,
/// of each lead; null where there is no number.
Json thresholds_of(const ScoreReport& report);

}  // namespace jigsaw::inline evaluate
