#include "samples/batch_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "array/transfer.h"
#include "base/error.h"
#include "base/text.h"
#include "samples/piece.h"

namespace jigsaw::inline samples {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Channels that are written together: lines of the cache are long enough for 16 of one array.
constexpr std::size_t kMostTogether = 32;

std::int64_t bytes_of(const Batch& batch) {
  std::int64_t bytes = batch.input.bytes();
  for (const Array& target : batch.targets) bytes += target.defined() ? target.bytes() : 0;
  return bytes;
}

/// Rows and columns of a piece of [B, H, W, C].
Box plane_of(const Box& piece) {
  return {{piece.begin[1], piece.begin[2]}, {piece.extent[1], piece.extent[2]}};
}

}  // namespace

Batch upload(const Context& context, const Batch& batch) {
  Batch there = batch;
  const auto move = [&](Array& array) { array = upload(context, array, Purpose::kInput); };
  move(there.input);
  move(there.present);
  move(there.baseline);
  move(there.origin);
  for (Array& target : there.targets) move(target);
  for (Array& forcing : there.forcings) move(forcing);
  return there;
}

/// The states of one field that a batch needs, each read once.
class BatchReader::Planes {
 public:
  Planes(FileSet& files, const Field& field, PlanePool& pool)
      : files_(files), field_(field), pool_(pool), single_(files.exact_in_float(field)) {}

  PlaneView at(Time time, const Box& plane) {
    const auto known = std::find_if(read_.begin(), read_.end(), [&](const Plane& candidate) {
      return candidate.time == time && candidate.box == plane;
    });
    if (known != read_.end()) return known->values;
    const PlaneView values = single_ ? read<float>(time, plane) : read<double>(time, plane);
    return read_.emplace_back(Plane{time, plane, values}).values;
  }
  bool available(Time time) const { return files_.has(field_, time); }

 private:
  struct Plane {
    Time time;
    Box box;
    PlaneView values;
  };

  template <typename T>
  PlaneView read(Time time, const Box& plane) {
    const std::span<T> values = pool_.take<T>(plane.extent.count());
    files_.read(field_, time, plane, values);
    return {std::span<const T>(values)};
  }

  FileSet& files_;
  Field field_;
  PlanePool& pool_;
  bool single_;
  std::vector<Plane> read_;
};

BatchReader::BatchReader(FileSet& files, const Channels& channels, const Statistics& statistics,
                         Predict predict, int lead_hours)
    : files_(files),
      channels_(channels),
      predict_(predict),
      lead_(lead_hours * kHour),
      forcings_(files.grid(), files.calendar()) {
  for (int c = 0; c < static_cast<int>(channels.inputs.size()); ++c) {
    const Channel& channel = channels.inputs[static_cast<std::size_t>(c)];
    if (channel.role != Role::kForcing) source_of(channel, statistics).inputs.push_back(c);
  }
  for (int c = 0; c < static_cast<int>(channels.targets.size()); ++c) {
    source_of(channels.targets[static_cast<std::size_t>(c)], statistics).targets.push_back(c);
  }
}

BatchReader::Source& BatchReader::source_of(const Channel& channel, const Statistics& statistics) {
  const auto known = std::find_if(sources_.begin(), sources_.end(),
                                  [&](const Source& source) { return source.field == channel.field; });
  if (known != sources_.end()) return *known;
  return sources_.emplace_back(Source{channel.field, channel.role, statistics.of(channel.field), {}, {}});
}

void BatchReader::check(const BatchRequest& request) const {
  const Shape grid = files_.grid().shape();
  require_piece(request.input, std::ssize(request.times), grid, channels_.inputs.size());
  require_piece(request.target, std::ssize(request.times), grid, channels_.targets.size());
  require(request.rollout >= 1, "a rollout has at least one step");
  require(request.dtype != DType::kBfloat16, "batches are float32 or float64");
}

Batch BatchReader::read(const BatchRequest& request, const Context& context) {
  check(request);
  // Left by a read that failed.
  writer_.clear();
  pool_.give_back();
  Batch batch;
  batch.times = request.times;
  batch.input = Array(context, request.input.extent, request.dtype, Purpose::kInput);
  for (int r = 1; r <= request.rollout; ++r) {
    batch.targets.emplace_back();
    if (request.targets)
      batch.targets.back() = Array(context, request.target.extent, request.dtype, Purpose::kInput);
    if (r == request.rollout) continue;
    batch.forcings.push_back(Array::zeros(context, request.input.extent, request.dtype, Purpose::kInput));
  }
  if (request.rollout > 1) {
    batch.present = Array(context, request.input.extent, request.dtype, Purpose::kInput);
  }
  if (request.baseline) {
    batch.baseline = Array(context, request.target.extent, request.dtype, Purpose::kInput);
  }
  if (request.origin) {
    batch.origin = Array(context, request.target.extent, DType::kFloat64, Purpose::kInput);
  }
  // Several fields are written together, as far as their planes take little memory beside the batch.
  const std::int64_t together = bytes_of(batch) / 8;
  for (const Source& source : sources_) {
    Planes planes(files_, source.field, pool_);
    fill_inputs(source, request, planes, batch);
    if (batch.present.defined()) fill_present(source, request, planes, batch);
    if (request.targets) fill_targets(source, request, planes, batch);
    if (request.origin) fill_origin(source, request, planes, batch);
    if (writer_.size() >= kMostTogether || pool_.bytes() >= together) flush();
  }
  fill_forcings(request, batch);
  if (batch.present.defined()) fill_present_elsewhere(request, batch);
  flush();
  return batch;
}

void BatchReader::flush() {
  writer_.flush();
  pool_.give_back();
}

void BatchReader::fill_inputs(const Source& source, const BatchRequest& request, Planes& planes,
                              Batch& batch) {
  const Box& piece = request.input;
  const Box plane = plane_of(piece);
  const double mean = source.statistics.mean, scale = 1 / source.statistics.deviation;
  for (const int c : source.inputs) {
    if (!covers(piece, c)) continue;
    const Channel& channel = channels_.inputs[static_cast<std::size_t>(c)];
    const Time shift = channel.hours * kHour;
    for (std::int64_t b = piece.begin[0]; b < piece.end(0); ++b) {
      const PlaneView x = source.role == Role::kStatic
                              ? PlaneView(static_plane(source, plane))
                              : planes.at(request.times[static_cast<std::size_t>(b)] + shift, plane);
      writer_.add(batch.input, piece, b, c, [x, mean, scale, mask = channel.mask](std::size_t i) {
        if (mask) return std::isnan(x[i]) ? 0.0 : 1.0;
        return std::isnan(x[i]) ? 0.0 : (x[i] - mean) * scale;
      });
    }
  }
}

void BatchReader::fill_present(const Source& source, const BatchRequest& request, Planes& planes,
                               Batch& batch) {
  const Box& piece = request.input;
  for (const int c : source.inputs) {
    if (!is_predicted(c) || !covers(piece, c)) continue;
    for (std::int64_t b = piece.begin[0]; b < piece.end(0); ++b) {
      const PlaneView x = planes.at(request.times[static_cast<std::size_t>(b)], plane_of(piece));
      writer_.add(batch.present, piece, b, c, [x](std::size_t i) { return std::isnan(x[i]) ? 0.0 : 1.0; });
    }
  }
}

void BatchReader::fill_present_elsewhere(const BatchRequest& request, Batch& batch) {
  const Box& piece = request.input;
  for (int c = 0; c < static_cast<int>(channels_.inputs.size()); ++c) {
    if (is_predicted(c) || !covers(piece, c)) continue;
    for (std::int64_t b = piece.begin[0]; b < piece.end(0); ++b)
      writer_.add(batch.present, piece, b, c, [](std::size_t) { return 1.0; });
  }
}

bool BatchReader::is_predicted(int input) const {
  const Channel& channel = channels_.inputs[static_cast<std::size_t>(input)];
  return channel.role == Role::kPrognostic && channel.hours == 0;
}

void BatchReader::fill_targets(const Source& source, const BatchRequest& request, Planes& planes,
                               Batch& batch) {
  const Box& piece = request.target;
  const Box plane = plane_of(piece);
  const bool increment = predict_ == Predict::kIncrement && source.role == Role::kPrognostic;
  const double mean = source.statistics.mean;
  const double scale = 1 / (increment ? source.statistics.increment_deviation : source.statistics.deviation);
  for (const int c : source.targets) {
    if (!covers(piece, c)) continue;
    for (std::int64_t b = piece.begin[0]; b < piece.end(0); ++b) {
      const Time start = request.times[static_cast<std::size_t>(b)];
      for (int r = 1; r <= request.rollout; ++r) {
        Array& target = batch.targets[static_cast<std::size_t>(r - 1)];
        const PlaneView y = planes.at(start + r * lead_, plane);
        if (increment) {
          const PlaneView x = planes.at(start, plane);
          writer_.add(target, piece, b, c, [x, y, scale](std::size_t i) { return (y[i] - x[i]) * scale; });
        } else {
          writer_.add(target, piece, b, c, [y, mean, scale](std::size_t i) { return (y[i] - mean) * scale; });
        }
      }
    }
    if (request.baseline) fill_baseline(source, c, request, planes, batch);
  }
}

void BatchReader::fill_baseline(const Source& source, int channel, const BatchRequest& request,
                                Planes& planes, Batch& batch) {
  const Box& piece = request.target;
  const bool increment = predict_ == Predict::kIncrement && source.role == Role::kPrognostic;
  const double mean = source.statistics.mean, scale = 1 / source.statistics.deviation;
  for (std::int64_t b = piece.begin[0]; b < piece.end(0); ++b) {
    const Time start = request.times[static_cast<std::size_t>(b)];
    if (increment) {
      writer_.add(batch.baseline, piece, b, channel, [](std::size_t) { return 0.0; });
    } else if (!planes.available(start)) {
      writer_.add(batch.baseline, piece, b, channel, [](std::size_t) { return kNaN; });
    } else {
      const PlaneView x = planes.at(start, plane_of(piece));
      writer_.add(batch.baseline, piece, b, channel,
                  [x, mean, scale](std::size_t i) { return (x[i] - mean) * scale; });
    }
  }
}

void BatchReader::fill_origin(const Source& source, const BatchRequest& request, Planes& planes,
                              Batch& batch) {
  const Box& piece = request.target;
  for (const int c : source.targets) {
    if (!covers(piece, c)) continue;
    for (std::int64_t b = piece.begin[0]; b < piece.end(0); ++b) {
      const Time start = request.times[static_cast<std::size_t>(b)];
      PlaneView x;
      if (planes.available(start)) x = planes.at(start, plane_of(piece));
      writer_.add(batch.origin, piece, b, c, [x](std::size_t i) { return x.empty() ? 0.0 : x[i]; });
    }
  }
}

void BatchReader::fill_forcings(const BatchRequest& request, Batch& batch) {
  const Box& piece = request.input;
  const Box plane = plane_of(piece);
  for (int c = 0; c < static_cast<int>(channels_.inputs.size()); ++c) {
    const Channel& channel = channels_.inputs[static_cast<std::size_t>(c)];
    if (channel.role != Role::kForcing || !covers(piece, c)) continue;
    const bool place = channel.forcing == Forcing::kLatitude || channel.forcing == Forcing::kLongitude;
    const bool projected = place && !files_.grid().geographic;
    PlaneView values;
    if (projected) values = std::span<const double>(place_plane(channel.forcing, plane));
    for (std::int64_t b = piece.begin[0]; b < piece.end(0); ++b) {
      const Time start = request.times[static_cast<std::size_t>(b)] + channel.hours * kHour;
      for (int r = 0; r < request.rollout; ++r) {
        if (!projected) {
          const std::span<double> filled = pool_.take<double>(plane.extent.count());
          forcings_.fill(channel.forcing, start + r * lead_, plane, filled);
          values = std::span<const double>(filled);
        }
        Array& array = r == 0 ? batch.input : batch.forcings[static_cast<std::size_t>(r - 1)];
        writer_.add(array, piece, b, c, [values](std::size_t i) { return values[i]; });
      }
    }
    if (writer_.size() >= kMostTogether) flush();
  }
}

/// Planes that are kept are those of one box.
void BatchReader::keep_planes_of(const Box& plane) {
  if (static_box_ == plane) return;
  static_planes_.clear();
  place_planes_.clear();
  static_box_ = plane;
}

const std::vector<double>& BatchReader::place_plane(Forcing forcing, const Box& plane) {
  keep_planes_of(plane);
  std::vector<double>& values = place_planes_[forcing];
  if (values.empty()) {
    values.resize(static_cast<std::size_t>(plane.extent.count()));
    files_.read_places(forcing, plane, values);
  }
  return values;
}

std::span<const double> BatchReader::static_plane(const Source& source, const Box& plane) {
  keep_planes_of(plane);
  std::vector<double>& values = static_planes_[source.field];
  if (values.empty()) {
    values.resize(static_cast<std::size_t>(plane.extent.count()));
    files_.read(source.field, 0, plane, values);
  }
  return values;
}

}  // namespace jigsaw::inline samples
