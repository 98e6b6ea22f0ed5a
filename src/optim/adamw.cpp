#include "optim/adamw.h"

#include <array>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "kernels/contraction.h"
#include "kernels/copy.h"
#include "kernels/optimizer.h"
#include "kernels/pointwise.h"

namespace jigsaw {

namespace {

/// What the first matching group says, or else the optimizer.
ParameterGroupOptions resolved(const OptimizerOptions& options, const std::string& name) {
  ParameterGroupOptions result;
  for (const ParameterGroupOptions& group : options.groups) {
    if (!matches_pattern(name, group.match)) continue;
    result = group;
    break;
  }
  if (!result.learning_rate) result.learning_rate = options.learning_rate;
  if (!result.weight_decay) result.weight_decay = options.weight_decay;
  return result;
}

void require_matches(const OptimizerOptions& options, const std::vector<ParameterBlock*>& blocks) {
  for (std::size_t i = 0; i < options.groups.size(); ++i) {
    bool found = false;
    std::vector<std::string> names;
    for (const ParameterBlock* block : blocks) {
      for (const auto& parameter : block->parameters()) {
        names.push_back(parameter->name());
        found = found || matches_pattern(parameter->name(), options.groups[i].match);
      }
    }
    if (!found) {
      throw ConfigError(concat("optimizer.groups[", i, "].match \"", options.groups[i].match,
                               "\" matches no parameter; their names begin with \"", names.front(),
                               "\" and end with \"", names.back(), "\""));
    }
  }
}

/// A running statistic goes a part of its way to the batch's.
void follow(Context& context, double momentum, Array statistic, const Array& way) {
  Array step = extract_box(context, way, Box::whole(way.shape()), Purpose::kWorkspace);
  scale(context, step, -momentum);
  accumulate(context, statistic, step);
}

}  // namespace

AdamW::AdamW(const Rank& rank, std::vector<ParameterBlock*> blocks, const OptimizerOptions& options)
    : rank_(rank), options_(options) {
  require_matches(options, blocks);
  for (ParameterBlock* block : blocks) {
    for (const auto& group : block->groups()) {
      Part part{group.get(), group->owned_segments(), {}, {}, {}, {}};
      for (const Segment& segment : part.segments)
        part.options.push_back(resolved(options, segment.parameter->name()));
      const Array owned = group->owned();
      part.moment1 = filled(rank.context, owned.shape(), owned.dtype(), 0.0, Purpose::kOptimizer);
      part.moment2 = filled(rank.context, owned.shape(), owned.dtype(), 0.0, Purpose::kOptimizer);
      if (options.ema_decay > 0) {
        part.average = Array(rank.context, owned.shape(), owned.dtype(), Purpose::kOptimizer);
        part.begin_average(rank.context);
      }
      parts_.push_back(std::move(part));
    }
  }
}

void AdamW::Part::begin_average(Context& context) {
  const Array owned = group->owned();
  const Box all = Box::whole(owned.shape());
  copy_box(context, owned, all, average, all);
}

void AdamW::zero_gradients() {
  for (Part& part : parts_) part.group->zero_gradients();
}

double AdamW::finish_gradients(double scale) {
  double squares = 0;
  AxisSet axes = 0;
  for (Part& part : parts_) {
    part.group->synchronise_gradients();
    axes = part.group->owning_axes();
    const Array gradient = part.group->owned_gradient();
    for (std::size_t i = 0; i < part.segments.size(); ++i) {
      const Segment& segment = part.segments[i];
      if (part.options[i].frozen || segment.parameter->momentum() > 0) continue;
      squares += sum_of_squares(rank_.context, gradient.slice(segment.at, {segment.count}));
    }
  }
  const double total = rank_.mesh.communicator(axes).all_reduce(std::array{squares}, ReduceOp::kSum)[0];
  return std::sqrt(total) * scale;
}

void AdamW::step(double rate_factor, double scale, double norm) {
  ++steps_;
  double gradient_scale = scale;
  if (options_.clip_norm > 0 && norm > options_.clip_norm)
    gradient_scale *= options_.clip_norm / (norm + 1e-6);
  for (Part& part : parts_) {
    const Array owned = part.group->owned(), gradient = part.group->owned_gradient();
    for (std::size_t i = 0; i < part.segments.size(); ++i) {
      if (part.options[i].frozen) continue;
      const Segment& segment = part.segments[i];
      const auto slice = [&](const Array& array) { return array.slice(segment.at, {segment.count}); };
      if (segment.parameter->momentum() > 0) {
        follow(rank_.context, segment.parameter->momentum(), slice(owned), slice(gradient));
        continue;
      }
      Array parameter = slice(owned), moment1 = slice(part.moment1), moment2 = slice(part.moment2);
      const AdamwStep update{*part.options[i].learning_rate * rate_factor,
                             options_.betas[0],
                             options_.betas[1],
                             options_.eps,
                             *part.options[i].weight_decay,
                             steps_,
                             gradient_scale};
      adamw(rank_.context, update, parameter, slice(gradient), moment1, moment2);
    }
    if (part.average.defined()) exponential_average(rank_.context, options_.ema_decay, part.average, owned);
  }
  parameters_changed();
}

void AdamW::parameters_changed() {
  forget_packed_weights(rank_.context);
  for (Part& part : parts_) part.group->share_parameters();
}

void AdamW::swap_average() {
  for (Part& part : parts_) {
    if (!part.average.defined()) return;
    Array owned = part.group->owned();
    const Box all = Box::whole(owned.shape());
    const Array other = extract_box(rank_.context, owned, all, Purpose::kWorkspace);
    copy_box(rank_.context, part.average, all, owned, all);
    copy_box(rank_.context, other, all, part.average, all);
  }
  parameters_changed();
}

AdamW::Averaged::Averaged(AdamW& optimizer) : optimizer_(optimizer) {
  optimizer_.swap_average();
}
AdamW::Averaged::~Averaged() {
  optimizer_.swap_average();
}

std::int64_t AdamW::parameter_bytes() const {
  std::int64_t bytes = 0;
  for (const Part& part : parts_) bytes += part.group->stored().bytes();
  return bytes;
}

std::int64_t AdamW::optimizer_bytes() const {
  std::int64_t bytes = 0;
  for (const Part& part : parts_) {
    bytes +=
        part.moment1.bytes() + part.moment2.bytes() + (part.average.defined() ? part.average.bytes() : 0);
  }
  return bytes;
}

std::vector<AdamW::State> AdamW::state(Share share) const {
  std::vector<State> result;
  // `array` holds the elements of `range` of the group's flat buffer.
  const auto add = [&](const char* kind, const ParameterGroup& group, const Array& array,
                       const Range& range) {
    const Range wanted = share == Share::kSaved ? group.saved_range() : range;
    for (Segment segment : group.segments(wanted)) {
      const std::int64_t at = wanted.begin - range.begin + std::exchange(segment.at, 0);
      result.push_back({kind, segment, array.slice(at, {segment.count})});
    }
  };
  for (const Part& part : parts_) {
    const ParameterGroup& group = *part.group;
    add("parameters", group, group.stored(), group.stored_range());
    add("adamw.moment1", group, part.moment1, group.owned_range());
    add("adamw.moment2", group, part.moment2, group.owned_range());
    if (part.average.defined()) add("average", group, part.average, group.owned_range());
  }
  return result;
}

void AdamW::restore(std::int64_t steps_done) {
  steps_ = steps_done;
  parameters_changed();
}

void AdamW::restart() {
  for (Part& part : parts_) {
    if (part.average.defined()) part.begin_average(rank_.context);
  }
  restore(0);
}

}  // namespace jigsaw
