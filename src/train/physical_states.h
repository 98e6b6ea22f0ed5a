#pragma once
#include <vector>

#include "samples/channels.h"
#include "samples/statistics.h"
#include "train/forecaster.h"

namespace jigsaw::inline train {

/// From what forecasts are trained on to states in physical units: the inverse of the field's transform T at
/// mean + deviation · y, or, where increments are predicted, of prognostic channels at T(x(0)) + deviation of
/// the increments · y.
class PhysicalStates {
 public:
  PhysicalStates(const Channels& channels, const Statistics& statistics, Predict predict);

  /// Whether any target has a transform under which errors are not those of normalised values but for a
  /// factor.
  bool transformed() const;

  /// This rank's piece of the states [B, space…, C], row-major, in float64.
  /// @param values  a target of the batch, or its baseline, in this layout.
  /// @param origin  Batch::origin of its box.
  std::vector<double> of(const Rank& rank, const Layout& layout, const Array& values,
                         const Array& origin) const;
  /// The same of a prediction as Forecaster::run() gives it, kept in the ranges of data.clamp to the last
  /// bit.
  std::vector<double> predicted(const Rank& rank, const Layout& layout, const Array& values,
                                const Array& origin) const;

 private:
  struct Scale {
    bool increment;
    double mean, deviation;
    Transform transform;
    ValueRange range;
  };
  std::vector<double> states_of(const Rank& rank, const Layout& layout, const Array& values,
                                const Array& origin, bool clamped) const;

  std::vector<Scale> scales_;  // per target channel
};

}  // namespace jigsaw::inline train
