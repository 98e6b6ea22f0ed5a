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
  for (Array& rim : there.rims) move(rim);
  return there;
}

/// The states of one field that a batch needs, each read once, in physical units and transformed.
class BatchReader::Planes {
 public:
  Planes(FileSet& files, const Source& source)
      : files_(files), field_(source.field), transform_(source.transform) {}

  /// Transformed.
  std::span<const double> at(Time time, const Box& plane) {
    if (transform_.linear()) return physical(time, plane);
    return find(transformed_, time, plane, [&](std::span<double> values) {
      const std::span<const double> x = physical(time, plane);
      std::transform(x.begin(), x.end(), values.begin(),
                     [&](double each) { return transform_.forward(each); });
    });
  }
  std::span<const double> physical(Time time, const Box& plane) {
    return find(read_, time, plane,
                [&](std::span<double> values) { files_.read(field_, time, plane, values); });
  }
  bool available(Time time) const { return files_.has(field_, time); }

 private:
  struct Plane {
    Time time;
    Box box;
    std::vector<double> values;
  };

  template <typename Fill>
  static std::span<const double> find(std::vector<Plane>& planes, Time time, const Box& box,
                                      const Fill& fill) {
    const auto known = std::find_if(planes.begin(), planes.end(), [&](const Plane& candidate) {
      return candidate.time == time && candidate.box == box;
    });
    if (known != planes.end()) return known->values;
    std::vector<double> values(static_cast<std::size_t>(box.extent.count()));
    fill(values);
    // Moving a Plane when the list grows leaves its values where they are.
    return planes.emplace_back(Plane{time, box, std::move(values)}).values;
  }

  FileSet& files_;
  Field field_;
  Transform transform_;
  std::vector<Plane> read_, transformed_;
};

BatchReader::BatchReader(FileSet& files, const Channels& channels, const Statistics& statistics,
                         Predict predict, int lead_hours, const Rim& rim)
    : files_(files),
      channels_(channels),
      predict_(predict),
      lead_(lead_hours * kHour),
      rim_(rim),
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
  return sources_.emplace_back(
      Source{channel.field, channel.role, statistics.of(channel.field), channel.transform, {}, {}});
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
  for (int r = 0; request.rims && r < request.rollout; ++r)
    batch.rims.push_back(Array::zeros(context, request.target.extent, DType::kFloat64, Purpose::kInput));
  if (request.rollout > 1) {
    batch.present = Array(context, request.input.extent, request.dtype, Purpose::kInput);
  }
  if (request.baseline) {
    batch.baseline = Array(context, request.target.extent, request.dtype, Purpose::kInput);
  }
  if (request.origin) {
    batch.origin = Array(context, request.target.extent, DType::kFloat64, Purpose::kInput);
  }
  for (const Source& source : sources_) {
    Planes planes(files_, source);
    fill_inputs(source, request, planes, batch);
    if (batch.present.defined()) fill_present(source, request, planes, batch);
    if (!rim_.empty()) fill_boundary(source, request, planes, batch);
    if (request.rims) fill_rims(source, request, planes, batch);
    if (request.targets) fill_targets(source, request, planes, batch);
    if (request.origin) fill_origin(source, request, planes, batch);
  }
  fill_forcings(request, batch);
  if (batch.present.defined()) fill_present_elsewhere(request, batch);
  return batch;
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
      const std::span<const double> x =
          source.role == Role::kStatic ? static_plane(source, plane)
                                       : planes.at(request.times[static_cast<std::size_t>(b)] + shift, plane);
      write_channel(batch.input, piece, b, c, [&](std::size_t i) {
        if (channel.mask) return std::isnan(x[i]) ? 0.0 : 1.0;
        return std::isnan(x[i]) ? 0.0 : (x[i] - mean) * scale;
      });
    }
    if (source.role == Role::kPrescribed && !channel.mask) fill_prescribed(source, c, request, planes, batch);
  }
}

void BatchReader::fill_prescribed(const Source& source, int channel, const BatchRequest& request,
                                  Planes& planes, Batch& batch) {
  const Box& piece = request.input;
  const Time hours = channels_.inputs[static_cast<std::size_t>(channel)].hours * kHour;
  for (std::int64_t b = piece.begin[0]; b < piece.end(0); ++b) {
    const Time start = request.times[static_cast<std::size_t>(b)] + hours;
    for (int r = 1; r < request.rollout; ++r) {
      const std::span<const double> x = planes.at(start + r * lead_, plane_of(piece));
      write_channel(batch.forcings[static_cast<std::size_t>(r - 1)], piece, b, channel,
                    [&](std::size_t i) { return std::isnan(x[i]) ? 0.0 : source.normalised(x[i]); });
    }
  }
}

/// The values of a plane on the rim at least; of all of it where that is read anyway.
std::vector<double> BatchReader::on_rim(const Box& plane, bool whole, const ReadBox& read) const {
  std::vector<double> values(static_cast<std::size_t>(plane.extent.count()), kNaN);
  if (plane.empty()) return values;
  for (const Box& part : whole ? std::vector{plane} : rim_.parts_of(plane)) {
    const std::span<const double> from = read(part);
    for (std::int64_t row = 0; row < part.extent[0]; ++row) {
      std::copy_n(from.begin() + row * part.extent[1], part.extent[1],
                  values.begin() + (part.begin[0] + row - plane.begin[0]) * plane.extent[1] + part.begin[1] -
                      plane.begin[1]);
    }
  }
  return values;
}

void BatchReader::fill_boundary(const Source& source, const BatchRequest& request, Planes& planes,
                                Batch& batch) {
  const Box& piece = request.input;
  const Box plane = plane_of(piece);
  for (const int c : source.inputs) {
    if (!is_predicted(c) || !covers(piece, c)) continue;
    for (std::int64_t b = piece.begin[0]; b < piece.end(0); ++b) {
      const Time start = request.times[static_cast<std::size_t>(b)];
      for (int r = 1; r < request.rollout; ++r) {
        const std::vector<double> x =
            on_rim(plane, request.targets, [&](const Box& box) { return planes.at(start + r * lead_, box); });
        write_channel(batch.forcings[static_cast<std::size_t>(r - 1)], piece, b, c, [&](std::size_t i) {
          return rim_.holds(plane, i) && !std::isnan(x[i]) ? source.normalised(x[i]) : 0.0;
        });
      }
    }
  }
}

void BatchReader::fill_rims(const Source& source, const BatchRequest& request, Planes& planes, Batch& batch) {
  const Box& piece = request.target;
  const Box plane = plane_of(piece);
  const bool known = source.role == Role::kPrognostic;
  for (const int c : source.targets) {
    if (!covers(piece, c)) continue;
    for (std::int64_t b = piece.begin[0]; b < piece.end(0); ++b) {
      for (int r = 1; r <= request.rollout; ++r) {
        const Time time = request.times[static_cast<std::size_t>(b)] + r * lead_;
        const auto read = [&](const Box& box) { return planes.physical(time, box); };
        const std::vector<double> x =
            known ? on_rim(plane, false, read)
                  : std::vector<double>(static_cast<std::size_t>(plane.extent.count()), kNaN);
        write_channel(batch.rims[static_cast<std::size_t>(r - 1)], piece, b, c,
                      [&](std::size_t i) { return rim_.holds(plane, i) ? x[i] : 0.0; });
      }
    }
  }
}

void BatchReader::fill_present(const Source& source, const BatchRequest& request, Planes& planes,
                               Batch& batch) {
  const Box& piece = request.input;
  const Box plane = plane_of(piece);
  for (const int c : source.inputs) {
    if (!is_predicted(c) || !covers(piece, c)) continue;
    for (std::int64_t b = piece.begin[0]; b < piece.end(0); ++b) {
      const std::span<const double> x = planes.at(request.times[static_cast<std::size_t>(b)], plane);
      write_channel(batch.present, piece, b, c, [&](std::size_t i) {
        return std::isnan(x[i]) || (!rim_.empty() && rim_.holds(plane, i)) ? 0.0 : 1.0;
      });
    }
  }
}

void BatchReader::fill_present_elsewhere(const BatchRequest& request, Batch& batch) const {
  const Box& piece = request.input;
  for (int c = 0; c < static_cast<int>(channels_.inputs.size()); ++c) {
    if (is_predicted(c) || !covers(piece, c)) continue;
    for (std::int64_t b = piece.begin[0]; b < piece.end(0); ++b)
      write_channel(batch.present, piece, b, c, [](std::size_t) { return 1.0; });
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
  const auto counts = [&](std::size_t i) { return rim_.empty() || !rim_.holds(plane, i); };
  for (const int c : source.targets) {
    if (!covers(piece, c)) continue;
    for (std::int64_t b = piece.begin[0]; b < piece.end(0); ++b) {
      const Time start = request.times[static_cast<std::size_t>(b)];
      for (int r = 1; r <= request.rollout; ++r) {
        Array& target = batch.targets[static_cast<std::size_t>(r - 1)];
        const std::span<const double> y = planes.at(start + r * lead_, plane);
        if (increment) {
          const std::span<const double> x = planes.at(start, plane);
          write_channel(target, piece, b, c,
                        [&](std::size_t i) { return counts(i) ? (y[i] - x[i]) * scale : kNaN; });
        } else {
          write_channel(target, piece, b, c,
                        [&](std::size_t i) { return counts(i) ? (y[i] - mean) * scale : kNaN; });
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
      write_channel(batch.baseline, piece, b, channel, [](std::size_t) { return 0.0; });
    } else if (!planes.available(start)) {
      write_channel(batch.baseline, piece, b, channel, [](std::size_t) { return kNaN; });
    } else {
      const std::span<const double> x = planes.at(start, plane_of(piece));
      write_channel(batch.baseline, piece, b, channel, [&](std::size_t i) { return (x[i] - mean) * scale; });
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
      std::span<const double> x;
      if (planes.available(start)) x = planes.physical(start, plane_of(piece));
      write_channel(batch.origin, piece, b, c, [&](std::size_t i) { return x.empty() ? 0.0 : x[i]; });
    }
  }
}

void BatchReader::fill_forcings(const BatchRequest& request, Batch& batch) {
  const Box& piece = request.input;
  const Box plane = plane_of(piece);
  std::vector<double> values(static_cast<std::size_t>(plane.extent.count()));
  for (int c = 0; c < static_cast<int>(channels_.inputs.size()); ++c) {
    const Channel& channel = channels_.inputs[static_cast<std::size_t>(c)];
    if (channel.role != Role::kForcing || !covers(piece, c)) continue;
    const bool place = channel.forcing == Forcing::kLatitude || channel.forcing == Forcing::kLongitude;
    const bool projected = place && !files_.grid().geographic;
    const bool given = needs_degrees(channel.forcing) && !files_.grid().geographic;
    if (projected) values = place_plane(channel.forcing, plane);
    for (std::int64_t b = piece.begin[0]; b < piece.end(0); ++b) {
      const Time start = request.times[static_cast<std::size_t>(b)] + channel.hours * kHour;
      for (int r = 0; r < request.rollout; ++r) {
        if (!projected) {
          forcings_.fill(channel.forcing, start + r * lead_, plane, values,
                         given ? &point_places(plane) : nullptr);
        }
        Array& array = r == 0 ? batch.input : batch.forcings[static_cast<std::size_t>(r - 1)];
        write_channel(array, piece, b, c, [&](std::size_t i) { return values[i]; });
      }
    }
  }
}

/// Planes that are kept are those of one box.
void BatchReader::keep_planes_of(const Box& plane) {
  if (static_box_ == plane) return;
  static_planes_.clear();
  place_planes_.clear();
  point_places_.reset();
  static_box_ = plane;
}

const PointPlaces& BatchReader::point_places(const Box& plane) {
  keep_planes_of(plane);
  if (!point_places_) point_places_ = files_.read_degrees(plane);
  return *point_places_;
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
    if (!source.transform.linear()) {
      std::transform(values.begin(), values.end(), values.begin(),
                     [&](double x) { return source.transform.forward(x); });
    }
  }
  return values;
}

}  // namespace jigsaw::inline samples
