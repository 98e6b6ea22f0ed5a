#include "train/nan_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "array/transfer.h"
#include "autograd/output_watch.h"
#include "base/text.h"
#include "comm/agreement.h"

namespace jigsaw::inline train {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Infinite where some element is no finite number.
double largest_of(const Context& context, const Array& array) {
  double largest = 0;
  for (const double value : download_values(context, array))
    largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : kInfinity;
  return largest;
}

std::string size_text(double value) {
  if (std::isinf(value)) return "no finite number";
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string to_string(const OutputWatch::Source& source) {
  const bool forward = source.phase == OutputWatch::Phase::kForward;
  return concat(forward ? "the result" : "the gradient of the result", " of operation ", source.operation,
                " (", source.name, ") of the block ", source.block);
}

/// Watches while it lives.
class Watching {
 public:
  Watching(Context& context, std::function<void(const OutputWatch::Source&, const ShardedTensor&)> saw)
      : watch_(context.state<OutputWatch>()) {
    watch_.saw = std::move(saw);
  }
  ~Watching() { watch_.saw = nullptr; }
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;

 private:
  OutputWatch& watch_;
};

/// By channel the largest magnitude in an array whose last dim is channels, over all ranks; missing values
/// are NaN and do not count.
std::vector<double> by_channel(Communicator& world, const Context& context, const Array& array,
                               std::int64_t first, std::size_t channels) {
  std::vector<double> largest(channels, 0.0);
  const std::int64_t width = array.shape()[array.shape().rank() - 1];
  const std::vector<double> values = download_values(context, array);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto channel = static_cast<std::size_t>(first + static_cast<std::int64_t>(i) % width);
    if (channel < channels && !std::isnan(values[i]))
      largest[channel] = std::max(largest[channel], std::abs(values[i]));
  }
  return world.all_reduce(largest, ReduceOp::kMax);
}

struct Extreme {
  std::string name;
  double largest = -1;

  void look(const std::vector<Channel>& channels, const std::vector<double>& values, const char* what) {
    for (std::size_t c = 0; c < channels.size(); ++c) {
      if (values[c] <= largest) continue;
      largest = values[c];
      name = concat(what, " ", channels[c].name,
                    channels[c].offset != 0 ? concat(" (", duration_text(channels[c].offset), ")") : "");
    }
  }
};

}  // namespace

StepResult NanSearch::run(std::int64_t step, Prefetch& parts) {
  before_ = std::move(parts_);
  parts_.clear();
  const double waited = parts.seconds_waited();
  StepResult result = step_.run(step, [&] { return parts_.emplace_back(parts.next()); });
  result.data_wait = parts.seconds_waited() - waited;
  if (result.empty) return result;
  double usual = 0;
  if (!result.finite) {
    tell_not_finite(step, result);
  } else if (leaps(result.loss, usual)) {
    tell_leap(step, result, usual);
  }
  if (result.finite) losses_.push_back(result.loss);
  if (losses_.size() > kRemembered) losses_.pop_front();
  return result;
}

bool NanSearch::leaps(double loss, double& usual) const {
  if (losses_.size() < kNeeded) return false;
  std::vector<double> sorted(losses_.begin(), losses_.end());
  std::nth_element(sorted.begin(), sorted.begin() + std::ssize(sorted) / 2, sorted.end());
  usual = sorted[sorted.size() / 2];
  return loss > kLeap * usual;
}

/// The step changed nothing, so that it runs again as it did.
void NanSearch::tell_not_finite(std::int64_t step, const StepResult& result) {
  const Rank& rank = run_.placed().rank();
  Communicator& world = run_.world();
  const std::string parameter = first_parameter(false);
  double seen = 0, first = kInfinity;
  std::string found;
  {
    const Watching watching(rank.context, [&](const OutputWatch::Source& source, const ShardedTensor& value) {
      ++seen;
      if (!found.empty() || !std::isinf(largest_of(rank.context, value.piece))) return;
      first = seen;
      found = to_string(source);
    });
    std::size_t next = 0;
    step_.run(step, [&] { return parts_[next++]; });
  }
  const double earliest = world.all_reduce(std::array{first}, ReduceOp::kMin)[0];
  found = agreed_failure(world, first == earliest ? found : "");
  std::string text =
      concat("step ", step, " replayed (loss ", result.loss, ", gradient norm ", result.norm, "): ");
  const std::string gradient = first_parameter(true);
  if (found.empty() && !gradient.empty()) found = concat("the gradient of the parameter ", gradient);
  text += found.empty()
              ? std::string("every result and gradient is finite, but sums of their squares are not")
              : concat("the first that is not finite is ", found);
  log_.warn(concat(text, "; ", extremes(parts_), "; ",
                   parameter.empty() ? std::string("all parameters are finite")
                                     : concat("not finite is the parameter ", parameter)));
}

void NanSearch::tell_leap(std::int64_t step, const StepResult& result, double usual) {
  const std::string text =
      concat("step ", step, ": loss ", result.loss, " is ", size_text(result.loss / usual),
             " times that of the steps before; ", extremes(parts_));
  if (before_.empty()) {
    log_.warn(text);
    return;
  }
  const Forward now = forward(parts_), then = forward(before_);
  const std::size_t both = std::min(now.largest.size(), then.largest.size());
  for (std::size_t i = 0; i < both; ++i) {
    if (now.largest[i] <= kGrown * then.largest[i]) continue;
    log_.warn(concat(text, "; the first that is larger than of the batch before is ", now.names[i],
                     ": at most ", size_text(now.largest[i]), " after ", size_text(then.largest[i])));
    return;
  }
  log_.warn(concat(
      text, "; the batch of the step before now gives results as large: the parameters leapt, not the data"));
}

std::string NanSearch::extremes(const std::vector<Batch>& parts) const {
  const PlacedModel& placed = run_.placed();
  const Context& host = placed.rank().context.host();
  Communicator& world = run_.world();
  const Channels& channels = run_.data().channels();
  const auto first_channel = [](const Box& box) { return box.begin[box.extent.rank() - 1]; };
  Extreme input, target;
  for (const Batch& part : parts) {
    input.look(channels.inputs,
               by_channel(world, host, part.input, first_channel(placed.input_box(placed.samples())),
                          channels.inputs.size()),
               "input");
    for (const Array& each : part.targets) {
      target.look(
          channels.targets,
          by_channel(world, host, each, first_channel(placed.target_box(run_.loss(), placed.samples())),
                     channels.targets.size()),
          "target");
    }
  }
  return concat("of the batch, in deviations, ", input.name, " reaches ", size_text(input.largest), " and ",
                target.name, " ", size_text(target.largest));
}

std::string NanSearch::first_parameter(bool gradient) const {
  const Context& context = run_.placed().rank().context;
  for (ParameterBlock* block : run_.placed().model().parameters()) {
    for (const auto& group : block->groups()) {
      const Array array = gradient ? group->owned_gradient() : group->owned();
      if (!array.defined()) continue;
      const std::vector<double> values = download_values(context, array);
      for (const Segment& segment : group->owned_segments()) {
        const auto begin = values.begin() + segment.at;
        if (std::any_of(begin, begin + segment.count, [](double value) { return !std::isfinite(value); }))
          return agreed_failure(run_.world(), segment.parameter->name());
      }
    }
  }
  return agreed_failure(run_.world(), "");
}

NanSearch::Forward NanSearch::forward(const std::vector<Batch>& parts) const {
  PlacedModel& placed = run_.placed();
  const Rank& rank = placed.rank();
  Forward result;
  {
    const Watching watching(rank.context, [&](const OutputWatch::Source& source, const ShardedTensor& value) {
      result.names.push_back(to_string(source));
      result.largest.push_back(largest_of(rank.context, value.piece));
    });
    for (const Batch& part : parts) {
      Tape tape(rank, placed.plans(), Tape::Mode::kForward, placed.types().compute);
      placed.forecaster().run(tape, upload(rank.context, part), placed.samples(),
                              [](int, const Variable&) {});
    }
  }
  if (!result.largest.empty()) result.largest = run_.world().all_reduce(result.largest, ReduceOp::kMax);
  return result;
}

}  // namespace jigsaw::inline train
