#include "optim/owned_parameters.h"

#include <array>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "kernels/contraction.h"
#include "kernels/copy.h"
#include "kernels/optimizer.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline optim {

namespace {

/// What the first matching group says, or else the optimizer.
OwnedSegment resolved(const OptimizerOptions& options, const Segment& segment) {
  OwnedSegment result{segment, segment.parameter->momentum() > 0 ? Change::kFollows : Change::kTrained,
                      options.learning_rate, options.weight_decay};
  for (const ParameterGroupOptions& group : options.groups) {
    if (!matches_pattern(segment.parameter->name(), group.match)) continue;
    if (group.frozen) result.change = Change::kNone;
    result.learning_rate = group.learning_rate.value_or(options.learning_rate);
    result.weight_decay = group.weight_decay.value_or(options.weight_decay);
    break;
  }
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

}  // namespace

OwnedParameters::OwnedParameters(const Rank& rank, const std::vector<ParameterBlock*>& blocks,
                                 const OptimizerOptions& options)
    : rank_(rank) {
  require_matches(options, blocks);
  for (ParameterBlock* block : blocks) {
    for (const auto& group : block->groups()) {
      Part part{group.get(), {}};
      for (const Segment& segment : group->owned_segments())
        part.segments.push_back(resolved(options, segment));
      parts_.push_back(std::move(part));
    }
  }
}

void OwnedParameters::zero_gradients() {
  for (Part& part : parts_) part.group->zero_gradients();
}

void OwnedParameters::synchronise_gradients() {
  for (Part& part : parts_) part.group->synchronise_gradients();
}

void OwnedParameters::share() {
  forget_packed_weights(rank_.context);
  for (Part& part : parts_) part.group->share_parameters();
}

std::int64_t OwnedParameters::bytes() const {
  std::int64_t bytes = 0;
  for (const Part& part : parts_) bytes += part.group->stored().bytes();
  return bytes;
}

Array gradient_squares(const OwnedParameters& owned) {
  const Rank& rank = owned.rank();
  Array squares = filled(rank.context, {1}, DType::kFloat64, 0.0, Purpose::kWorkspace);
  AxisSet axes = 0;
  for (const OwnedParameters::Part& part : owned.parts()) {
    axes = part.group->owning_axes();
    const Array gradient = part.group->owned_gradient();
    for (const OwnedSegment& each : part.segments) {
      if (each.change == Change::kTrained) add_sum_of_squares(rank.context, each.of(gradient), squares);
    }
  }
  Communicator& group = rank.mesh.communicator(axes);
  return group.size() == 1 ? squares : group.all_reduce(squares);
}

double gradient_norm(double squares, double scale) {
  return std::sqrt(squares) * scale;
}

double clip_factor(double norm, double clip_norm) {
  return clip_norm > 0 && norm > clip_norm ? clip_norm / (norm + 1e-6) : 1.0;
}

void follow_statistics(OwnedParameters& owned, std::int64_t forwards) {
  Context& context = owned.rank().context;
  for (const OwnedParameters::Part& part : owned.parts()) {
    const Array values = part.group->owned(), gradient = part.group->owned_gradient();
    for (const OwnedSegment& each : part.segments) {
      if (each.change != Change::kFollows) continue;
      const Array way = each.of(gradient);
      Array step = extract_box(context, way, Box::whole(way.shape()), Purpose::kWorkspace);
      scale(context, step, -each.segment.parameter->momentum() / static_cast<double>(forwards));
      Array statistic = each.of(values);
      accumulate(context, statistic, step);
    }
  }
}

}  // namespace jigsaw::inline optim
