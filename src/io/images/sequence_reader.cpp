#include "images/sequence_reader.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/error.h"
#include "samples/piece.h"

namespace jigsaw::inline images {

/// The states of one field that a batch needs, each box of one read once.
class SequenceReader::States {
 public:
  States(ImageFiles& files, const Channel& channel)
      : files_(files), field_(channel.field), transform_(channel.transform) {}

  const Field& field() const { return field_; }
  /// Transformed, in the spatial part of a piece of [B, space…, C].
  std::span<const double> at(std::int64_t state, const Box& piece) {
    return transform_.linear() ? physical(state, piece) : known(state, piece, true);
  }
  /// In physical units.
  std::span<const double> physical(std::int64_t state, const Box& piece) {
    return known(state, piece, false);
  }

 private:
  struct Known {
    std::int64_t state;
    Box box;
    bool transformed;
    std::vector<double> values;
  };

  std::span<const double> known(std::int64_t state, const Box& piece, bool transformed) {
    Box space;
    for (int d = 1; d + 1 < piece.begin.rank(); ++d) {
      space.begin.append(piece.begin[d]);
      space.extent.append(piece.extent[d]);
    }
    for (const Known& one : known_)
      if (one.state == state && one.box == space && one.transformed == transformed) return one.values;
    std::vector<double> values(static_cast<std::size_t>(space.extent.count()));
    if (transformed) {
      std::ranges::copy(physical(state, piece), values.begin());
      transform_values(transform_, values);
    } else {
      files_.read(field_, state, space, values);
    }
    // Moving an entry when the list grows leaves its values where they are.
    return known_.emplace_back(Known{state, space, transformed, std::move(values)}).values;
  }

  ImageFiles& files_;
  Field field_;
  Transform transform_;
  std::vector<Known> known_;
};

Batch SequenceReader::read(const SampleRequest& request, const Context& context) {
  BatchRequest windows = batch_request(request);
  for (const std::int64_t sample : request.samples)
    windows.times.push_back(data_.windows(request.split).at(static_cast<std::size_t>(sample)));
  return read(windows, context);
}

Batch SequenceReader::read(const BatchRequest& request, const Context& context) const {
  const auto samples = std::ssize(request.times);
  const Channels& channels = data_.channels();
  require_piece(request.input, samples, data_.grid().shape(), channels.inputs.size());
  require_piece(request.target, samples, data_.grid().shape(), channels.targets.size());
  require(request.dtype != DType::kBfloat16, "batches are float32 or float64");
  Batch batch = allocate_batch(request, false, context);
  for (int c = 0; c < static_cast<int>(channels.targets.size()); ++c) {
    States states(data_.files(), channels.targets[static_cast<std::size_t>(c)]);
    if (request.starts()) fill_inputs(request, states, batch);
    if (covers(request.target, c)) fill_targets(request, c, states, batch);
  }
  if (!request.starts()) return batch;
  for (const Channel& channel : channels.inputs) {
    if (channel.role != Role::kStatic) continue;
    States states(data_.files(), channel);
    fill_inputs(request, states, batch);
  }
  return batch;
}

void SequenceReader::fill_inputs(const BatchRequest& request, States& states, Batch& batch) const {
  const Box& piece = request.input;
  const FieldStatistics& statistics = data_.statistics().of(states.field());
  const double mean = statistics.mean, scale = 1 / statistics.deviation;
  for (int c = 0; c < static_cast<int>(data_.channels().inputs.size()); ++c) {
    const Channel& channel = data_.channels().inputs[static_cast<std::size_t>(c)];
    if (!(channel.field == states.field()) || !covers(piece, c)) continue;
    for (std::int64_t b = piece.begin[0]; b < piece.end(0); ++b) {
      const std::int64_t start = request.times[static_cast<std::size_t>(b)];
      const std::span<const double> x = states.at(start + channel.offset, piece);
      write_channel(batch.input, piece, b, c,
                    [&](std::size_t i) { return std::isnan(x[i]) ? 0.0 : (x[i] - mean) * scale; });
      if (!batch.present.defined()) continue;
      const bool goes_on = channel.role == Role::kPrognostic && channel.offset == 0;
      const std::span<const double> now = states.at(start, piece);
      write_channel(batch.present, piece, b, c,
                    [&](std::size_t i) { return goes_on && std::isnan(now[i]) ? 0.0 : 1.0; });
    }
  }
}

void SequenceReader::fill_targets(const BatchRequest& request, int channel, States& states,
                                  Batch& batch) const {
  const Box& piece = request.target;
  const FieldStatistics& statistics = data_.statistics().of(states.field());
  const double mean = statistics.mean, scale = 1 / statistics.deviation;
  const bool increment = data_.options().predict == Predict::kIncrement;
  for (std::int64_t b = piece.begin[0]; b < piece.end(0); ++b) {
    const std::int64_t start = request.times[static_cast<std::size_t>(b)];
    const bool needs_start =
        batch.baseline.defined() || batch.origin.defined() || (increment && request.targets);
    const std::span<const double> now = needs_start ? states.at(start, piece) : std::span<const double>();
    if (batch.baseline.defined()) {
      write_channel(batch.baseline, piece, b, channel, [&](std::size_t i) {
        return std::isnan(now[i]) ? now[i] : increment ? 0.0 : (now[i] - mean) * scale;
      });
    }
    if (batch.origin.defined()) {
      const std::span<const double> start_state = states.physical(start, piece);
      write_channel(batch.origin, piece, b, channel, [&](std::size_t i) { return start_state[i]; });
    }
    for (int lead = request.first_lead(); request.targets && lead < request.end_lead(); ++lead) {
      const auto at = static_cast<std::size_t>(lead - request.first_lead());
      const std::span<const double> y = states.at(start + (lead + 1) * data_.options().lead_steps, piece);
      write_channel(batch.targets[at], piece, b, channel, [&](std::size_t i) {
        return increment ? (y[i] - now[i]) / statistics.increment_deviation : (y[i] - mean) * scale;
      });
      if (batch.states.empty()) continue;
      const std::span<const double> truth =
          states.physical(start + (lead + 1) * data_.options().lead_steps, piece);
      write_channel(batch.states[at], piece, b, channel,
                    [&](std::size_t i) { return increment && std::isnan(now[i]) ? now[i] : truth[i]; });
    }
  }
}

}  // namespace jigsaw::inline images
