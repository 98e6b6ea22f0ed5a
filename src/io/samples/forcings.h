#pragma once
#include <span>
#include <vector>

#include "array/box.h"
#include "array/grid.h"
#include "samples/time_axis.h"

namespace jigsaw::inline samples {

/// Fields that place and time alone determine; all are without unit and of order 1.
enum class Forcing {
  kLatitude,   ///< standardised over the grid's rows: mean 0, deviation 1
  kLongitude,  ///< standardised over the grid's columns
  kCosLongitude,
  kSinLongitude,
  kSinTimeOfDay,  ///< of the day in UTC
  kCosTimeOfDay,
  kSinDayOfYear,  ///< of the part of the year that has passed
  kCosDayOfYear
};
const char* name(Forcing forcing);

/// Forcings on a geographic grid.
class ForcingFields {
 public:
  /// @param calendar  that of the times.
  explicit ForcingFields(const Grid& grid, Calendar calendar = Calendar::kStandard);

  /// Rows and columns `box` [H, W] of a forcing at a time; `out` holds box.extent.count() values.
  void fill(Forcing forcing, Time time, const Box& box, std::span<double> out) const;

 private:
  Calendar calendar_;
  std::vector<double> latitude_, longitude_;  ///< standardised
  std::vector<double> cos_longitude_, sin_longitude_;
};

}  // namespace jigsaw::inline samples
