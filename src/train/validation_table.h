#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/terminal.h"
#include "task/scores.h"

namespace jigsaw::inline train {

struct ValidationTable {
  std::map<std::string, std::string> units = {};  ///< by variable; may lack some
  Time lead_time = 0;                             ///< of one step; 0: samples are no forecasts
  bool of_months = false;                         ///< whether leads are said in months
  Terminal terminal = {};                         ///< for its colours
  bool in_steps = false;                          ///< lead_time is a number of steps
  bool of_regions = false;                        ///< whether labels are of regions, not of classes
};

/// A validation as a table for people of at most 80 columns: each variable at each lead beside the last
/// validation (an arrow says where the score went, green is better) and beside persistence and climatology
/// where these are known, with the skill 1 − RMSE / RMSE of the better known one. More rows than
/// kMostRows become groups (a variable over its levels and leads), the five worst and the five best.
/// Of images PSNR, of labels accuracy and Dice.
///
/// @param before  the validation before this one; may be null.
std::vector<std::string> table_of(const ValidationResult& now, const ValidationResult* before,
                                  const ValidationTable& options);

/// "t" of "t_850", otherwise the name itself.
std::string without_level(const std::string& variable);

}  // namespace jigsaw::inline train
