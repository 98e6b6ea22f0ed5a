#include "optim/owned_parameters.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "kernels/contraction.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline optim {

namespace {

/// The number of the first group that matches, of as many as there are where none does.
std::size_t group_of(const OptimizerOptions& options, const std::string& name) {
  const auto found = std::ranges::find_if(
      options.groups, [&](const ParameterGroupOptions& group) { return matches_pattern(name, group.match); });
  return static_cast<std::size_t>(found - options.groups.begin());
}

/// What trains the parameters of a group, or those of none.
GroupShare share_of(const OptimizerOptions& options, std::size_t group) {
  if (group == options.groups.size()) return {"", false, options.learning_rate, options.weight_decay};
  const ParameterGroupOptions& own = options.groups[group];
  return {own.match, own.frozen, own.learning_rate.value_or(options.learning_rate),
          own.weight_decay.value_or(options.weight_decay)};
}

/// Puts a segment where it belongs.
void add(const OptimizerOptions& options, const Segment& segment, OwnedParameters::Part& part) {
  const GroupShare share = share_of(options, group_of(options, segment.parameter->name()));
  if (share.frozen) return;
  if (segment.parameter->momentum() > 0) {
    part.followed.push_back({segment.at, segment.count, segment.parameter->momentum(), 0});
  } else {
    part.trained.push_back({segment.at, segment.count, share.learning_rate, share.weight_decay});
  }
}

/// Every group is the first that matches some parameter, and some parameter is trained.
void require_matches(const OptimizerOptions& options, const std::vector<ParameterBlock*>& blocks) {
  for (std::size_t i = 0; i < options.groups.size(); ++i) {
    bool found = false, counts = false;
    std::vector<std::string> names;
    for (const ParameterBlock* block : blocks) {
      for (const auto& parameter : block->parameters()) {
        names.push_back(parameter->name());
        found = found || matches_pattern(parameter->name(), options.groups[i].match);
        counts = counts || group_of(options, parameter->name()) == i;
      }
    }
    if (!found) {
      throw ConfigError(concat("optimizer.groups[", i, "].match \"", options.groups[i].match,
                               "\" matches no parameter; their names begin with \"", names.front(),
                               "\" and end with \"", names.back(), "\""));
    }
    if (!counts) {
      throw ConfigError(
          concat("optimizer.groups[", i, "].match \"", options.groups[i].match,
                 "\" has no effect: groups before it match all of its parameters, and the first "
                 "that matches counts; put it before them"));
    }
  }
  const auto frozen = [&](const auto& parameter) {
    if (parameter->momentum() > 0) return true;  // statistics, which follow and are not trained
    return share_of(options, group_of(options, parameter->name())).frozen;
  };
  const bool all_frozen = std::ranges::all_of(
      blocks, [&](const ParameterBlock* block) { return std::ranges::all_of(block->parameters(), frozen); });
  if (!options.groups.empty() && all_frozen)
    throw ConfigError(
        "optimizer.groups: every parameter of the model is frozen, so that nothing would be trained");
}

}  // namespace

std::vector<GroupShare> group_shares(const std::vector<ParameterBlock*>& blocks,
                                     const OptimizerOptions& options) {
  std::vector<GroupShare> shares;
  for (std::size_t group = 0; group <= options.groups.size(); ++group)
    shares.push_back(share_of(options, group));
  for (const ParameterBlock* block : blocks) {
    for (const auto& parameter : block->parameters()) {
      GroupShare& share = shares[group_of(options, parameter->name())];
      const std::int64_t count = parameter->shape().count();
      ++share.tensors;
      (parameter->momentum() > 0 ? share.statistics : share.parameters) += count;
    }
  }
  return shares;
}

OwnedParameters::OwnedParameters(const Rank& rank, const std::vector<ParameterBlock*>& blocks,
                                 const OptimizerOptions& options)
    : rank_(rank) {
  require_matches(options, blocks);
  for (ParameterBlock* block : blocks) {
    for (const auto& group : block->groups()) {
      Part& part = parts_.emplace_back(Part{group.get(), {}, {}});
      for (const Segment& segment : group->owned_segments()) add(options, segment, part);
    }
  }
}

void OwnedParameters::zero_gradients() {
  for (Part& part : parts_) part.group->zero_gradients();
}

void OwnedParameters::synchronise_gradients() {
  for (Part& part : parts_) part.group->synchronise_gradients();
}

void OwnedParameters::share(bool copied) {
  forget_packed_weights(rank_.context);
  for (Part& part : parts_) part.group->share_parameters(copied);
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
    add_squares_of_runs(rank.context, part.trained, part.group->owned_gradient(), squares);
  }
  Communicator& group = rank.mesh.communicator(axes);
  return group.size() == 1 ? squares : group.all_reduce(squares);
}

void follow_statistics(OwnedParameters& owned, const Array& numbers, std::int64_t forwards) {
  for (const OwnedParameters::Part& part : owned.parts()) {
    std::vector<TrainedRun> runs = part.followed;
    for (TrainedRun& run : runs) run.learning_rate /= static_cast<double>(forwards);
    Array values = part.group->owned();
    follow(owned.rank().context, runs, numbers, values, part.group->owned_gradient(),
           part.group->owned_copy());
  }
}

}  // namespace jigsaw::inline optim
