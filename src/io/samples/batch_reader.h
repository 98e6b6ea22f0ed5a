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
#include "samples/batch.h"
#include "samples/channel_writer.h"
#include "samples/channels.h"
#include "samples/planes.h"
#include "samples/statistics.h"

namespace jigsaw::inline samples {

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
  /// Whether its plane is one, to be read once: a static field that is not each member's own.
  bool same_for_all_samples(const Source& source) const;
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
