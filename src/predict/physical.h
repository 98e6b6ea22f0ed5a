#pragma once
#include <vector>

#include "samples/channels.h"
#include "samples/statistics.h"
#include "train/forecaster.h"

namespace jigsaw::inline predict {

/// From what forecasts are trained on to states in physical units: mean + deviation · y, or, where increments
/// are predicted, of prognostic channels x(0) + deviation of the increments · y.
class PhysicalStates {
 public:
  PhysicalStates(const Channels& channels, const Statistics& statistics, Predict predict);

  /// This rank's piece of the states [B, space…, C], row-major, in float64.
  /// @param values  a prediction as Forecaster::run() gives it, or a target of the batch, in this layout.
  /// @param origin  Batch::origin of its box.
  std::vector<double> of(const Rank& rank, const Layout& layout, const Array& values,
                         const Array& origin) const;

 private:
  struct Scale {
    bool increment;
    double mean, deviation;
  };
  std::vector<Scale> scales_;  // per target channel
};

/// NaN wherever the state at time 0 is missing. @return  how many values that are.
std::int64_t hide_missing(const Rank& rank, const Array& origin, std::vector<double>& states);

}  // namespace jigsaw::inline predict
