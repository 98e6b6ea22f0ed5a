#include "samples/batch_reader.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "base/trace.h"
#include "files/chunk_cache.h"
#include "samples/piece.h"
#include "samples/read_layout.h"

namespace jigsaw::inline samples {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Fields of which whole planes are read and then written together: lines of the cache are long enough for 16
/// channels of one array.
constexpr std::size_t kMostTogether = 16;

/// 0 in place of NaN, without a branch, so that loops over it are vectorised.
double or_zero(double value) {
  const auto all_or_none = -static_cast<std::uint64_t>(value == value);
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) & all_or_none);
}

/// Rows and columns of a piece of [B, H, W, C].
Box plane_of(const Box& piece) {
  return {{piece.begin[1], piece.begin[2]}, {piece.extent[1], piece.extent[2]}};
}

/// The leads of a request that a rollout goes on from: all but its last.
std::pair<int, int> forced_leads(const BatchRequest& request) {
  return {request.first_lead(), std::min(request.end_lead(), request.rollout - 1)};
}

}  // namespace

/// The states of one field that a batch needs, each read once, in physical units and transformed.
class BatchReader::Planes {
 public:
  /// @param streams  where planes are that can be streamed; null: none is. @param kept  where planes stay
  /// that the next read takes; null: all others are in the pool.
  Planes(FileSet& files, const Source& source, PlanePool& pool, StreamedPlanes* streams, KeptPlanes* kept)
      : files_(files),
        field_(source.field),
        transform_(source.transform),
        pool_(pool),
        streams_(source.transform.linear() ? streams : nullptr),
        kept_(kept),
        single_(files.exact_in_float(source.field)) {}

  /// Transformed.
  PlaneView at(Moment time, const Box& plane) {
    if (transform_.linear()) return physical(time, plane);
    return find(transformed_, time, plane, [&] {
      const PlaneView x = physical(time, plane);
      const std::span<double> values = pool_.take<double>(plane.extent.count());
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = transform_.forward(x[i]);
      return PlaneView(std::span<const double>(values));
    });
  }
  PlaneView physical(Moment time, const Box& plane) {
    return find(read_, time, plane,
                [&] { return single_ ? read<float>(time, plane) : read<double>(time, plane); });
  }
  /// With what is missing where read() fills it: physical, but for masks alone.
  PlaneView unfilled(Moment time, const Box& plane) {
    return find(unfilled_, time, plane, [&] {
      any_whole_ = true;
      const std::span<double> values = pool_.take<double>(plane.extent.count());
      files_.read_unfilled(field_, time, plane, values);
      return PlaneView(std::span<const double>(values));
    });
  }
  bool available(Moment moment) const { return files_.has(field_, moment.time); }
  /// Whether some plane was read whole.
  bool any_whole() const { return any_whole_; }

 private:
  struct Plane {
    Moment time;
    Box box;
    PlaneView values;
  };

  template <typename Fill>
  static PlaneView find(std::vector<Plane>& planes, Moment time, const Box& box, const Fill& fill) {
    const auto known = std::find_if(planes.begin(), planes.end(), [&](const Plane& candidate) {
      return candidate.time == time && candidate.box == box;
    });
    if (known != planes.end()) return known->values;
    return planes.emplace_back(Plane{time, box, fill()}).values;
  }

  template <typename T>
  PlaneView read(Moment time, const Box& plane) {
    const auto fill = [&](std::span<T> values) { files_.read(field_, time, plane, values); };
    if (kept_ != nullptr) {
      if (const std::optional<PlaneView> known = kept_->known(field_, time, plane)) return *known;
      if (kept_->wants(field_, time, plane)) return kept_->keep<T>(field_, time, plane, fill);
    }
    if (streams_ != nullptr) {
      std::optional<HyperslabStream> stream = files_.stream(field_, time, plane);
      const StreamedPlane* const added =
          stream ? streams_->add(std::move(*stream), plane.extent.count(), single_) : nullptr;
      if (added != nullptr) return *added;
    }
    any_whole_ = true;
    const std::span<T> values = pool_.take<T>(plane.extent.count());
    fill(values);
    return {std::span<const T>(values)};
  }

  FileSet& files_;
  Field field_;
  Transform transform_;
  PlanePool& pool_;
  StreamedPlanes* streams_;
  KeptPlanes* kept_;
  bool single_;
  bool any_whole_ = false;
  std::vector<Plane> read_, transformed_, unfilled_;
};

BatchReader::BatchReader(FileSet& files, const Channels& channels, const Statistics& statistics,
                         Predict predict, Time lead_time, const Rim& rim)
    : files_(files),
      channels_(channels),
      predict_(predict),
      lead_(lead_time),
      rim_(rim),
      forced_(given_at_leads(channels, !rim.empty())),
      forcings_(files.grid(), files.calendar()) {
  for (int c = 0; c < static_cast<int>(channels.inputs.size()); ++c) {
    const Channel& channel = channels.inputs[static_cast<std::size_t>(c)];
    if (channel.role != Role::kForcing) source_of(channel, statistics).inputs.push_back(c);
  }
  for (int c = 0; c < static_cast<int>(channels.targets.size()); ++c) {
    source_of(channels.targets[static_cast<std::size_t>(c)], statistics).targets.push_back(c);
  }
  order_ = ChunkCache::shared().order(sources_.size(), 0);
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
  require(request.members.empty() || request.members.size() == request.times.size(),
          "each sample of a batch has a member, or none");
  require(request.rollout >= 1, "a rollout has at least one step");
  require(!request.lead || (*request.lead >= 0 && *request.lead < request.rollout),
          "a rollout has no such lead");
  require(request.dtype != DType::kBfloat16, "batches are float32 or float64");
}

Batch BatchReader::read(const BatchRequest& request, const Context& context) {
  check(request);
  // Of a rollout that was not read to its end.
  if (request.starts()) kept_.clear();
  if (request.starts()) keep_chunks(request);
  Batch batch = allocate_batch(request, forced_, context);
  try {
    fill(request, batch);
  } catch (...) {
    clear_noted();
    throw;
  }
  kept_.end_read();
  return batch;
}

void BatchReader::fill(const BatchRequest& request, Batch& batch) {
  // Several fields are written together, as far as their planes take little memory beside the batch.
  const std::int64_t together = bytes_of(batch) / 4;
  const bool in_parts = request.end_lead() - request.first_lead() < request.rollout;
  for (const std::size_t i : order_) {
    const Source& source = sources_[i];
    // On a rim values are taken at any point.
    Planes planes(files_, source, pool_, rim_.empty() ? &streams_ : nullptr, in_parts ? &kept_ : nullptr);
    if (request.end_lead() < request.rollout) want_next(source, request);
    if (request.starts()) fill_inputs(source, request, planes, batch);
    if (source.role == Role::kPrescribed) fill_prescribed(source, request, planes, batch);
    if (batch.present.defined()) fill_present(source, request, planes, batch);
    if (!rim_.empty()) fill_boundary(source, request, planes, batch);
    if (request.rims) fill_rims(source, request, planes, batch);
    if (request.targets) fill_targets(source, request, planes, batch);
    if (!batch.states.empty()) fill_states(source, request, planes, batch);
    if (batch.baseline.defined()) fill_baseline(source, request, planes, batch);
    if (batch.origin.defined()) fill_origin(source, request, planes, batch);
    if (planes.any_whole()) ++noted_;
    if (noted_ >= kMostTogether || pool_.bytes() >= together || streams_.enough()) flush();
  }
  fill_forcings(request, together, batch);
  if (batch.present.defined()) fill_present_elsewhere(request, batch);
  flush();
}

void BatchReader::flush() {
  const std::string name = tracing() && streams_.size() > 0 ? streams_.name() : "";
  writer_.flush(streams_.window(), [&](std::int64_t end) {
    if (streams_.size() == 0) return;
    TraceSpan span(TraceKind::kRead, name);
    const std::int64_t before = span.event() != nullptr ? streams_.fetched() : 0;
    streams_.advance(end);
    if (span.event() != nullptr) span.event()->bytes = static_cast<double>(streams_.fetched() - before);
  });
  clear_noted();
}

void BatchReader::clear_noted() {
  writer_.clear();
  streams_.clear();
  pool_.give_back();
  noted_ = 0;
}

void BatchReader::fill_inputs(const Source& source, const BatchRequest& request, Planes& planes,
                              Batch& batch) {
  const Box& piece = request.input;
  const Box plane = plane_of(piece);
  const double mean = source.statistics.mean, scale = 1 / source.statistics.deviation;
  for (const int c : source.inputs) {
    if (!covers(piece, c)) continue;
    const Channel& channel = channels_.inputs[static_cast<std::size_t>(c)];
    const Time shift = channel.offset;
    for (std::int64_t b = piece.begin[0]; b < piece.end(0); ++b) {
      const bool as_missing = channel.mask && files_.is_filled(source.field);
      const PlaneView x = as_missing                     ? planes.unfilled(request.moment(b) + shift, plane)
                          : same_for_all_samples(source) ? PlaneView(static_plane(source, plane))
                                                         : planes.at(request.moment(b) + shift, plane);
      if (channel.mask) {
        writer_.add(
            batch.input, piece, b, c, [](std::size_t, double v) { return std::isnan(v) ? 0.0 : 1.0; }, x);
        continue;
      }
      const auto normalised = [mean, scale](std::size_t, double v) { return or_zero((v - mean) * scale); };
      writer_.add(batch.input, piece, b, c, normalised, x);
    }
  }
}

void BatchReader::fill_prescribed(const Source& source, const BatchRequest& request, Planes& planes,
                                  Batch& batch) {
  const Box& piece = request.input;
  const auto [first, end] = forced_leads(request);
  for (const int c : source.inputs) {
    const Channel& channel = channels_.inputs[static_cast<std::size_t>(c)];
    if (channel.mask || !covers(piece, c)) continue;
    for (std::int64_t b = piece.begin[0]; b < piece.end(0); ++b) {
      const Moment start = request.moment(b) + channel.offset;
      for (int lead = first; lead < end; ++lead) {
        const PlaneView x = planes.at(start + (lead + 1) * lead_, plane_of(piece));
        const auto normalised = [&source](std::size_t, double v) { return or_zero(source.normalised(v)); };
        writer_.add(batch.forcings[static_cast<std::size_t>(lead - first)], piece, b, c, normalised, x);
      }
    }
  }
}

void BatchReader::keep_chunks(const BatchRequest& request) {
  // The states of a sample that are read now. Of what is interpolated a lead reads those around it, which may
  // stand in two chunks. Processes that share chunks each decode some of the fields that all of them need.
  std::set<Time> states;
  for (const Channel& channel : channels_.inputs)
    if (channel.role != Role::kForcing) states.insert(channel.offset);
  for (int lead = request.first_lead(); lead < request.end_lead(); ++lead) states.insert((lead + 1) * lead_);
  const auto count = std::max<std::int64_t>(2, std::ssize(states));
  const std::vector<FieldStorage> fields = files_.storage();
  ChunkCache& cache = ChunkCache::shared();
  std::int64_t bytes = 0;
  std::int64_t shared = 0;
  for (const Box* piece : {&request.input, &request.target}) {
    const PieceChunks chunks = chunks_of_piece(fields, plane_of(*piece));
    const std::int64_t here = count * piece->extent[0] * chunks.bytes;
    if (chunks.elsewhere && cache.shares()) {
      // Others on this machine may read the other samples of the batch.
      const std::int64_t groups = std::ssize(request.times) / std::max<std::int64_t>(1, piece->extent[0]);
      shared = std::max(shared, here * std::min<std::int64_t>(groups, cache.processes()));
    }
    if (chunks.later || shared > 0) bytes = std::max(bytes, here);
  }
  cache.make_room(static_cast<std::size_t>(bytes));
  order_ = cache.order(sources_.size(), static_cast<std::size_t>(shared));
}

void BatchReader::want_next(const Source& source, const BatchRequest& request) {
  const int lead = request.end_lead();
  const bool goes_on = lead + 1 < request.rollout;
  const Time valid = (lead + 1) * lead_;
  const Box given = plane_of(request.input), predicted = plane_of(request.target);
  const auto want = [&](const Box& piece, Time after, const Box& box) {
    for (std::int64_t b = piece.begin[0]; b < piece.end(0); ++b)
      kept_.want(source.field, request.moment(b) + after, box);
  };
  for (const int c : source.inputs) {
    const Channel& channel = channels_.inputs[static_cast<std::size_t>(c)];
    if (!goes_on || !covers(request.input, c)) continue;
    if (channel.role == Role::kPrescribed) want(request.input, channel.offset + valid, given);
    if (!is_predicted(c)) continue;
    for (const Box& box : boxes_for_rim(given, request.targets)) want(request.input, valid, box);
  }
  for (const int c : source.targets) {
    if (!covers(request.target, c)) continue;
    if (request.targets) want(request.target, valid, predicted);
    if (request.targets && as_increment(source)) want(request.target, 0, predicted);
    if (!request.rims || source.role != Role::kPrognostic) continue;
    for (const Box& box : boxes_for_rim(predicted, false)) want(request.target, valid, box);
  }
}

std::vector<Box> BatchReader::boxes_for_rim(const Box& plane, bool whole) const {
  if (rim_.empty() || plane.empty()) return {};
  return whole ? std::vector{plane} : rim_.parts_of(plane);
}

/// The values of a plane on the rim at least; of all of it where that is read anyway.
PlaneView BatchReader::on_rim(const Box& plane, bool whole, const ReadBox& read) {
  const std::span<double> values = pool_.take<double>(plane.extent.count());
  std::fill(values.begin(), values.end(), kNaN);
  for (const Box& part : boxes_for_rim(plane, whole)) {
    const PlaneView from = read(part);
    for (std::int64_t row = 0; row < part.extent[0]; ++row) {
      const std::int64_t first =
          (part.begin[0] + row - plane.begin[0]) * plane.extent[1] + part.begin[1] - plane.begin[1];
      for (std::int64_t column = 0; column < part.extent[1]; ++column)
        values[static_cast<std::size_t>(first + column)] =
            from[static_cast<std::size_t>(row * part.extent[1] + column)];
    }
  }
  return {std::span<const double>(values)};
}

void BatchReader::fill_boundary(const Source& source, const BatchRequest& request, Planes& planes,
                                Batch& batch) {
  const Box& piece = request.input;
  const Box plane = plane_of(piece);
  const auto [first, end] = forced_leads(request);
  for (const int c : source.inputs) {
    if (!is_predicted(c) || !covers(piece, c)) continue;
    for (std::int64_t b = piece.begin[0]; b < piece.end(0); ++b) {
      for (int lead = first; lead < end; ++lead) {
        const Moment time = request.moment(b) + (lead + 1) * lead_;
        const PlaneView x =
            on_rim(plane, request.targets, [&](const Box& box) { return planes.at(time, box); });
        const auto on_it = [this, plane, &source](std::size_t i, double v) {
          return rim_.holds(plane, i) && !std::isnan(v) ? source.normalised(v) : 0.0;
        };
        writer_.add(batch.forcings[static_cast<std::size_t>(lead - first)], piece, b, c, on_it, x);
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
      for (int lead = request.first_lead(); lead < request.end_lead(); ++lead) {
        const Moment time = request.moment(b) + (lead + 1) * lead_;
        const auto read = [&](const Box& box) { return planes.physical(time, box); };
        Array& rim = batch.rims[static_cast<std::size_t>(lead - request.first_lead())];
        const auto on_it = [this, plane](std::size_t i, double v) { return rim_.holds(plane, i) ? v : 0.0; };
        if (known) {
          writer_.add(rim, piece, b, c, on_it, on_rim(plane, false, read));
        } else {
          writer_.add(rim, piece, b, c, [on_it](std::size_t i) { return on_it(i, kNaN); });
        }
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
      const PlaneView x = planes.at(request.moment(b), plane);
      if (rim_.empty()) {
        writer_.add(
            batch.present, piece, b, c, [](std::size_t, double v) { return std::isnan(v) ? 0.0 : 1.0; }, x);
        continue;
      }
      const auto there = [this, plane](std::size_t i, double v) {
        return std::isnan(v) || rim_.holds(plane, i) ? 0.0 : 1.0;
      };
      writer_.add(batch.present, piece, b, c, there, x);
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

bool BatchReader::same_for_all_samples(const Source& source) const {
  return source.role == Role::kStatic && files_.members_of(source.field) == 1;
}

bool BatchReader::is_predicted(int input) const {
  const Channel& channel = channels_.inputs[static_cast<std::size_t>(input)];
  return channel.role == Role::kPrognostic && channel.offset == 0;
}

void BatchReader::fill_targets(const Source& source, const BatchRequest& request, Planes& planes,
                               Batch& batch) {
  const Box& piece = request.target;
  const Box plane = plane_of(piece);
  const bool increment = as_increment(source);
  const double mean = source.statistics.mean;
  const double scale = 1 / (increment ? source.statistics.increment_deviation : source.statistics.deviation);
  const auto add = [&](Array& to, std::int64_t b, int c, auto value, const auto&... planes_of_it) {
    if (rim_.empty()) return writer_.add(to, piece, b, c, value, planes_of_it...);
    const auto inside = [this, plane, value](std::size_t i, auto... v) {
      return rim_.holds(plane, i) ? kNaN : value(i, v...);
    };
    writer_.add(to, piece, b, c, inside, planes_of_it...);
  };
  for (const int c : source.targets) {
    if (!covers(piece, c)) continue;
    for (std::int64_t b = piece.begin[0]; b < piece.end(0); ++b) {
      const Moment start = request.moment(b);
      for (int lead = request.first_lead(); lead < request.end_lead(); ++lead) {
        Array& to = batch.targets[static_cast<std::size_t>(lead - request.first_lead())];
        const PlaneView y = planes.at(start + (lead + 1) * lead_, plane);
        if (increment) {
          const auto change = [scale](std::size_t, double then, double now) { return (then - now) * scale; };
          add(to, b, c, change, y, planes.at(start, plane));
        } else {
          add(
              to, b, c, [mean, scale](std::size_t, double v) { return (v - mean) * scale; }, y);
        }
      }
    }
  }
}

void BatchReader::fill_states(const Source& source, const BatchRequest& request, Planes& planes,
                              Batch& batch) {
  const Box& piece = request.target;
  const Box plane = plane_of(piece);
  const auto inside = [this, plane](std::size_t i, double v) { return rim_.holds(plane, i) ? kNaN : v; };
  for (const int c : source.targets) {
    if (!covers(piece, c)) continue;
    for (std::int64_t b = piece.begin[0]; b < piece.end(0); ++b) {
      const Moment start = request.moment(b);
      for (int lead = request.first_lead(); lead < request.end_lead(); ++lead) {
        Array& to = batch.states[static_cast<std::size_t>(lead - request.first_lead())];
        const PlaneView y = planes.physical(start + (lead + 1) * lead_, plane);
        if (!as_increment(source)) {
          writer_.add(to, piece, b, c, inside, y);
          continue;
        }
        const auto where_both = [inside](std::size_t i, double then, double now) {
          return std::isnan(now) ? kNaN : inside(i, then);
        };
        writer_.add(to, piece, b, c, where_both, y, planes.physical(start, plane));
      }
    }
  }
}

void BatchReader::fill_baseline(const Source& source, const BatchRequest& request, Planes& planes,
                                Batch& batch) {
  const Box& piece = request.target;
  const bool increment = as_increment(source);
  const double mean = source.statistics.mean, scale = 1 / source.statistics.deviation;
  for (const int c : source.targets) {
    if (!covers(piece, c)) continue;
    for (std::int64_t b = piece.begin[0]; b < piece.end(0); ++b) {
      const Moment start = request.moment(b);
      if (increment) {
        writer_.add(batch.baseline, piece, b, c, [](std::size_t) { return 0.0; });
      } else if (lead_ == 0 || !planes.available(start)) {  // nothing persists within no time
        writer_.add(batch.baseline, piece, b, c, [](std::size_t) { return kNaN; });
      } else {
        const PlaneView x = planes.at(start, plane_of(piece));
        const auto normalised = [mean, scale](std::size_t, double v) { return (v - mean) * scale; };
        writer_.add(batch.baseline, piece, b, c, normalised, x);
      }
    }
  }
}

void BatchReader::fill_origin(const Source& source, const BatchRequest& request, Planes& planes,
                              Batch& batch) {
  const Box& piece = request.target;
  for (const int c : source.targets) {
    if (!covers(piece, c)) continue;
    for (std::int64_t b = piece.begin[0]; b < piece.end(0); ++b) {
      const Moment start = request.moment(b);
      // Of lead 0 it would be the truth, of which nothing is known where a model is used.
      if (lead_ > 0 && planes.available(start)) {
        const PlaneView x = planes.physical(start, plane_of(piece));
        writer_.add(
            batch.origin, piece, b, c, [](std::size_t, double v) { return v; }, x);
      } else {
        writer_.add(batch.origin, piece, b, c, [](std::size_t) { return 0.0; });
      }
    }
  }
}

void BatchReader::fill_forcings(const BatchRequest& request, std::int64_t together, Batch& batch) {
  const Box& piece = request.input;
  const Box plane = plane_of(piece);
  const auto [first, end] = forced_leads(request);
  for (int c = 0; c < static_cast<int>(channels_.inputs.size()); ++c) {
    const Channel& channel = channels_.inputs[static_cast<std::size_t>(c)];
    if (channel.role != Role::kForcing || !covers(piece, c)) continue;
    const bool place = channel.forcing == Forcing::kLatitude || channel.forcing == Forcing::kLongitude;
    const bool projected = place && !files_.grid().geographic;
    const bool given = needs_degrees(channel.forcing) && !files_.grid().geographic;
    PlaneView values;
    if (projected) values = std::span<const double>(place_plane(channel.forcing, plane));
    for (std::int64_t b = piece.begin[0]; b < piece.end(0); ++b) {
      const Time start = request.times[static_cast<std::size_t>(b)] + channel.offset;
      for (int r = request.starts() ? 0 : first + 1; r <= end; ++r) {
        if (!projected) {
          const std::span<double> filled = pool_.take<double>(plane.extent.count());
          forcings_.fill(channel.forcing, start + r * lead_, plane, filled,
                         given ? &point_places(plane) : nullptr);
          values = std::span<const double>(filled);
        }
        Array& array = r == 0 ? batch.input : batch.forcings[static_cast<std::size_t>(r - 1 - first)];
        writer_.add(
            array, piece, b, c, [](std::size_t, double v) { return v; }, values);
      }
    }
    if (pool_.bytes() >= together) flush();
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
  if (!point_places_) point_places_ = files_.read_forcing_degrees(plane);
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
