#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "array/array.h"
#include "array/box.h"
#include "fields/file_set.h"
#include "grids/rim.h"
#include "samples/channel_writer.h"
#include "samples/channels.h"
#include "samples/planes.h"
#include "samples/statistics.h"

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
  /// Beside `origin`, for r = 1 … rollout where targets are read: what they are made of, f64 in physical
  /// units as the files hold it, before transforms; NaN where the target is.
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

/// Reads the pieces of batches: of each field that the piece's channels need, the rows and columns of the
/// piece, one hyperslab per time; what a batch needs twice is read once, and static fields are kept.
/// The files, which it does not own, may be shared; the reader is for one thread.
class BatchReader {
 public:
  /// @param statistics  have passed check_statistics(). @param files  have all fields selected.
  /// @param rim  points whose prognostic fields rollouts take from the files.
  BatchReader(FileSet& files, const Channels& channels, const Statistics& statistics, Predict predict,
              Time lead_time, const Rim& rim = {});

  /// Of leads that are read one after the other each state is read once, as far as it serves neighbouring
  /// leads: what the next lead takes, too, is kept until it is read.
  ///
  /// @param context  on the host; its arena counts the arrays as Purpose::kInput.
  /// @throws DataError  when a time is not in the files or cannot be read; ShapeError when a box does not
  /// fit.
  Batch read(const BatchRequest& request, const Context& context);
  /// Of the planes that are kept for the next lead.
  std::int64_t kept_bytes() const { return kept_.bytes(); }

 private:
  /// A field, and the channels that are made of it.
  struct Source {
    Field field;
    Role role = Role::kPrognostic;
    FieldStatistics statistics;
    Transform transform;
    std::vector<int> inputs, targets;

    double normalised(double x) const { return (x - statistics.mean) / statistics.deviation; }
  };
  class Planes;

  void check(const BatchRequest& request) const;
  void fill(const BatchRequest& request, Batch& batch);
  Source& source_of(const Channel& channel, const Statistics& statistics);
  void fill_inputs(const Source& source, const BatchRequest& request, Planes& planes, Batch& batch);
  void fill_present(const Source& source, const BatchRequest& request, Planes& planes, Batch& batch);
  void fill_present_elsewhere(const BatchRequest& request, Batch& batch);
  /// Prescribed fields at the leads after the first.
  void fill_prescribed(const Source& source, const BatchRequest& request, Planes& planes, Batch& batch);
  void fill_boundary(const Source& source, const BatchRequest& request, Planes& planes, Batch& batch);
  void fill_rims(const Source& source, const BatchRequest& request, Planes& planes, Batch& batch);
  /// Chunks of files that hold several times serve several leads: the cache of chunks is to keep them from
  /// one lead to the next, with those of all other fields between.
  void keep_chunks(const BatchRequest& request);
  /// Says which planes the next lead of the rollout takes of a source.
  void want_next(const Source& source, const BatchRequest& request);
  /// What is read of a plane of whose rim the values are taken: all of it where that is read anyway.
  std::vector<Box> boxes_for_rim(const Box& plane, bool whole) const;
  using ReadBox = std::function<PlaneView(const Box& box)>;
  PlaneView on_rim(const Box& plane, bool whole, const ReadBox& read);
  /// Whether a rollout puts predictions into this channel of the input.
  bool is_predicted(int input) const;
  /// Whether its targets are changes since time 0.
  bool as_increment(const Source& source) const {
    return predict_ == Predict::kIncrement && source.role == Role::kPrognostic;
  }
  void fill_targets(const Source& source, const BatchRequest& request, Planes& planes, Batch& batch);
  /// Batch::states.
  void fill_states(const Source& source, const BatchRequest& request, Planes& planes, Batch& batch);
  void fill_baseline(const Source& source, const BatchRequest& request, Planes& planes, Batch& batch);
  void fill_origin(const Source& source, const BatchRequest& request, Planes& planes, Batch& batch);
  void fill_forcings(const BatchRequest& request, std::int64_t together, Batch& batch);
  /// Writes what was noted, and takes back the memory of its planes.
  void flush();
  void clear_noted();
  void keep_planes_of(const Box& plane);
  std::span<const double> static_plane(const Source& source, const Box& plane);
  const std::vector<double>& place_plane(Forcing forcing, const Box& plane);
  const PointPlaces& point_places(const Box& plane);

  FileSet& files_;
  Channels channels_;
  Predict predict_;
  Time lead_;
  Rim rim_;
  bool forced_;  ///< rollouts are given something at their leads
  ForcingFields forcings_;
  std::vector<Source> sources_;
  ChannelWriter writer_;
  std::size_t noted_ = 0;  ///< fields that wait in it with whole planes
  PlanePool pool_;
  StreamedPlanes streams_;          ///< read when they are written
  KeptPlanes kept_;                 ///< of rollouts that are read lead by lead
  std::vector<std::size_t> order_;  ///< in which fields of the batch are read
  Box static_box_;                  ///< that of the static planes kept
  std::map<Field, std::vector<double>> static_planes_;
  std::map<Forcing, std::vector<double>> place_planes_;  ///< latitudes and longitudes of projected grids
  std::optional<PointPlaces> point_places_;
};

}  // namespace jigsaw::inline samples
