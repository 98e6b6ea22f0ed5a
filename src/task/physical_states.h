#pragma once
#include <vector>

#include "kernels/forecast_scores.h"
#include "samples/channels.h"
#include "samples/statistics.h"
#include "task/forecaster.h"

namespace jigsaw::inline task {

/// From what forecasts are trained on to states in physical units: the inverse of the field's transform T at
/// mean + deviation · y, or, where increments are predicted, of prognostic channels at T(x(0)) + deviation of
/// the increments · y.
class PhysicalStates {
 public:
  PhysicalStates(const Channels& channels, const Statistics& statistics, Predict predict);

  /// Whether any target has a transform under which errors are not those of normalised values but for a
  /// factor.
  bool transformed() const;

  /// This rank's piece of the states [B, space…, C], f64, where the values stand.
  /// @param values  a target of the batch, or its baseline, in this layout.
  /// @param origin  Batch::origin of its box.
  Array of(const Rank& rank, const Layout& layout, const Array& values, const Array& origin) const;
  /// The same of a prediction as Forecaster::run() gives it, kept in the ranges of data.clamp to the last
  /// bit.
  Array predicted(const Rank& rank, const Layout& layout, const Array& values, const Array& origin) const;

  /// of() of one number of a target. @param origin  x(0) of increments.
  double of(std::size_t target, double value, double origin) const {
    return open_.at(target).state(value, origin);
  }
  /// predicted() of one number of a target that is a mean of predictions whose numbers were brought to the
  /// ends of their ranges (Clamped::kAtEnd): what lies so near an end is that end to the last bit.
  /// @param rounding  of the predictions' numbers, as a part of them.
  double predicted(std::size_t target, double value, double origin, double rounding) const;

  /// States of predictions or truths, those at a bound of data.clamp, or as near it as roundings of
  /// normalised numbers reach, all alike: members and truth that were 0 are then equal.
  /// @param states  f64 [any number of samples, space…, C], of `layout` but for the samples.
  Array alike_at_bounds(const Rank& rank, const Layout& layout, const Array& states) const;

  /// The states of each sample's members, as they stand in `together` [b·members, space…, C].
  /// @param layout  of one field of each sample, as `origin` stands.
  Array of_members(const Rank& rank, const Layout& layout, const Array& together, const Array& origin,
                   std::int64_t members) const;

 private:
  static Array states_of(const Rank& rank, const Layout& layout, const Array& values, const Array& origin,
                         const std::vector<StateChannel>& channels);

  std::vector<StateChannel> open_, clamped_;  // per target channel, without its range and with it
  std::vector<StateChannel> alike_;           // states as they are, in the range less a few roundings
};

}  // namespace jigsaw::inline task
