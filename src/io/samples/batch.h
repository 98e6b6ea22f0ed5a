#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "array/array.h"
#include "array/box.h"
#include "fields/members.h"
#include "times/time_axis.h"

namespace jigsaw::inline samples {

/// What one rank needs of a global batch.
struct BatchRequest {
  std::vector<Time> times;            ///< time 0 of every sample of the global batch, B in all
  std::vector<std::int32_t> members;  ///< of an ensemble, of each; empty: the first
  Box input;                          ///< the rank's piece of [B, H, W, Cin]; may be empty
  Box target;                         ///< the rank's piece of [B, H, W, Cout]; may be empty
  int rollout = 1;
  bool baseline = false;
  DType dtype = DType::kFloat32;  ///< or kFloat64
  bool targets = true;            ///< whether they are read; forecasts need none
  bool rims = false;              ///< Batch::rims
  bool origin = false;            ///< Batch::origin and, with targets, Batch::states
  /// Of rollouts that are read lead by lead the one that is wanted, from 0 on; none: all. Lead 0 brings what
  /// the rollout starts from, too.
  std::optional<int> lead = {};

  bool starts() const { return first_lead() == 0; }
  int first_lead() const { return lead.value_or(0); }
  int end_lead() const { return lead ? *lead + 1 : rollout; }
  /// Time 0 of a sample.
  Moment moment(std::int64_t sample) const {
    const auto i = static_cast<std::size_t>(sample);
    return {times[i], members.empty() ? 0 : members[i]};
  }
};

/// The rank's pieces, contiguous, with the extents of their boxes: of a whole rollout, or of some leads of
/// it.
struct Batch {
  int rollout = 1;     ///< leads that the model runs
  int first_lead = 0;  ///< the first that is here, from 0 on: of the lists below index 0 belongs to it
  Array input;  ///< normalised, (x − mean) / deviation of the transformed x; 0 where the value is missing
  /// For r = 1 … rollout (of lead r − 1), NaN where the value is missing and on the rim. The state at time 0
  /// + r · lead, normalised; or, where increments are predicted, of prognostic channels (x(r · lead) − x(0))
  /// / deviation of the increments. One for each r in any case; undefined where they were not to be read.
  std::vector<Array> targets;
  /// For r = 1 … rollout − 1: what the forcing and prescribed channels of the input become when the forecast
  /// goes on from time 0 + r · lead, and on the rim the prognostic fields then; 0 in all else. Shaped like
  /// the input. Empty where there are no such channels and no rim.
  std::vector<Array> forcings;
  /// Where a rollout goes on, shaped like the input: 0 in the channel of a prognostic field at time 0 where
  /// its value is missing, and on the rim, 1 elsewhere. What is missing there stays so for the whole rollout:
  /// the model goes on from 0 as it began, not from a prediction that no loss holds.
  Array present;
  /// Persistence in the target's own normalisation, if asked for: 0 for increments, else the state at time 0;
  /// NaN where that is missing or not in the files.
  Array baseline;
  /// The target channels at time 0 in physical units, f64, if asked for: NaN where the value is missing, 0
  /// for fields that the files do not hold then.
  Array origin;
  /// Beside `origin`, which images lack, for r = 1 … rollout where targets are read: what they are made of,
  /// f64 in physical units as the files hold it, before transforms; NaN where the target is.
  std::vector<Array> states;
  /// If asked for, for r = 1 … rollout, f64 shaped like a target: on the rim the prognostic fields at time 0
  /// + r · lead in physical units, NaN for diagnostic ones, which no loss holds there; 0 elsewhere.
  std::vector<Array> rims;
  /// Time 0 of every sample of the global batch; none of images.
  std::vector<Time> times;

  const Array& target(int lead) const { return targets.at(static_cast<std::size_t>(lead - first_lead)); }
  const Array& state(int lead) const { return states.at(static_cast<std::size_t>(lead - first_lead)); }
  const Array& forcing(int lead) const { return forcings.at(static_cast<std::size_t>(lead - first_lead)); }
  const Array& rim(int lead) const { return rims.at(static_cast<std::size_t>(lead - first_lead)); }
  /// Calls `use` for all arrays of a batch, whether they are defined or not.
  template <typename AnyBatch, typename Use>
  static void for_each_array(AnyBatch& batch, const Use& use) {
    for (auto* array : {&batch.input, &batch.present, &batch.baseline, &batch.origin}) use(*array);
    for (auto* list : {&batch.targets, &batch.states, &batch.forcings, &batch.rims}) {
      for (auto& array : *list) use(array);
    }
  }
  /// Takes the leads of `part` in place of its own; of one that begins a rollout all that it holds.
  void go_on(Batch part);
};
/// The arrays that answer a request; what a rollout is given is 0, the others are not set.
/// @param forced  given_at_leads().
Batch allocate_batch(const BatchRequest& request, bool forced, const Context& context);
/// Of all its arrays.
std::int64_t bytes_of(const Batch& batch);
/// The same where kernels of the context can read it.
Batch upload(const Context& context, const Batch& batch);

}  // namespace jigsaw::inline samples
