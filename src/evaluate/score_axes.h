#pragma once
#include <utility>
#include <vector>

#include "evaluate/region.h"
#include "files/netcdf_output.h"
#include "times/time_axis.h"

namespace jigsaw::inline evaluate {

/// The leads that are scored.
struct ScoredLeads {
  Time lead_time = 6 * kHour;  ///< from each to the next
  bool of_months = false;
  int count = 0;
};

/// The dimensions and coordinates that all files of scores have: `lead_time` in the unit of predict's files,
/// and `region` by number, whose names are its flag_meanings and limits `region_south`, `region_north`,
/// `region_west` and `region_east`.
class ScoreAxes {
 public:
  ScoreAxes() = default;
  /// Defines them.
  ScoreAxes(NetcdfOutput& file, const ScoredLeads& leads, const std::vector<Region>& regions);
  /// Once all is defined.
  void write(NetcdfOutput& file) const;

  /// Numbers of the dimensions.
  int lead() const { return lead_; }
  int region() const { return region_; }

 private:
  int add(NetcdfOutput& file, const char* name, const std::vector<int>& values);

  int lead_ = -1, region_ = -1;
  std::vector<std::pair<int, std::vector<int>>> values_;  ///< by variable
  std::vector<std::pair<int, std::vector<double>>> limits_;
};

}  // namespace jigsaw::inline evaluate
