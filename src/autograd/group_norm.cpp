#include <algorithm>

#include "autograd/operation.h"
#include "autograd/operations.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/backend.h"
#include "kernels/channel_statistics.h"
#include "kernels/field_extents.h"
#include "kernels/group_statistics.h"
#include "kernels/pointwise.h"
#include "kernels/row_statistics.h"

namespace jigsaw {

namespace {

/// What is normalised together: of each sample, or of all of them, the points of `group_size` channels.
struct Grouping {
  bool per_sample = true;
  std::int64_t group_size = 1;
  double elements = 0;  ///< in a group of the whole field
  double eps = 0;

  /// A piece of the field as the kernels see it: [n, points, c].
  Shape view(const Shape& piece) const {
    const std::int64_t points = piece.count(1, piece.rank() - 1);
    return per_sample ? Shape{piece[0], points, piece.back()} : Shape{1, piece[0] * points, piece.back()};
  }
  /// Axes that cut a group apart: they exchange its statistics.
  AxisSet cutting(const Tape& tape, const Decision& decision, int rank) const {
    AxisSet axes = 0;
    for (int axis = 0; axis < tape.rank().mesh.shape().axes; ++axis) {
      const Placement& placement = decision.inputs[0][axis];
      if (!placement.is_shard()) continue;
      if (per_sample ? placement.dim > 0 : placement.dim < rank - 1) axes |= axis_bit(axis);
    }
    return tape.rank().mesh.active(axes);
  }
};

/// Two numbers in f32 for each channel (and sample) forward; two in f64 for each group backward.
TransferCost statistics_traffic(const OwnCall& call, std::span<const double> numbers) {
  const Shape piece = call.piece(0);
  const double groups = numbers[0], samples = numbers[1] > 0 ? static_cast<double>(piece[0]) : 1;
  const double ranks = call.ranks();
  TransferCost cost;
  cost.add(Collective::kAllGather, (ranks - 1) * 8 * samples * static_cast<double>(piece.back()), 1);
  cost.add(Collective::kAllReduce, 2 * (ranks - 1) / ranks * 16 * groups * samples, 1);
  return cost;
}

Signature signature_of(Operation operation, const std::vector<Variable>& operands, const Grouping& grouping) {
  const Shape& x = operands[0].shape();
  if (x.rank() < 3 || x.rank() > 5) {
    throw ShapeError(concat(name(operation), ": the field ", x, " should be [B, space…, C]"));
  }
  const Letters field =
      letters("b" + std::string("dhw").substr(static_cast<std::size_t>(5 - x.rank())) + "c");
  std::vector<Letters> all = {field};
  Signature signature{operation, std::string(name(operation)), {x}, {x}, {}, 0, {true}};
  std::vector<bool> linear = {false};
  for (std::size_t i = 1; i < operands.size(); ++i) {
    require_same_shape(name(operation), operands[i].shape(), {x.back()});
    signature.inputs.push_back(operands[i].shape());
    signature.saved.push_back(false);
    all.push_back({field.back()});
    linear.push_back(i < 3);  // in gamma and beta
  }
  signature.remade = true;
  signature.forward_flops = 8.0 * static_cast<double>(x.count());
  signature.rows = rows_of_letters(all, field);
  for (Row& row : signature.rows) {
    row.communicates = row.label != (grouping.per_sample ? "b" : "c");
  }
  const double groups = static_cast<double>(x.back() / grouping.group_size);
  signature.own = {statistics_traffic, {groups, grouping.per_sample ? 1.0 : 0.0}};
  signature.rows.push_back(row_linear_in(linear));
  return signature;
}

/// Statistics of the whole groups, alike on all ranks that share one.
GroupStatistics whole_statistics(Tape& tape, AxisSet axes, const ShardedTensor& x, const Grouping& grouping) {
  const Shape view = grouping.view(x.piece.shape());
  Array packed = pack_moments(tape.context(), channel_moments(tape.context(), x.piece.reshaped(view)));
  const int last = x.layout.global.rank() - 1;
  std::vector<MomentsPart> parts;
  std::vector<std::int64_t> counts;
  Mesh& mesh = tape.rank().mesh;
  for (int i = 0; i < mesh.size(axes); ++i) {
    const Box box = x.layout.box(mesh.shape(), mesh.member(axes, i));
    const Shape theirs = grouping.view(box.extent);
    parts.push_back({theirs[1], box.begin[last], theirs[2]});
    counts.push_back(2 * view[0] * theirs[2]);
  }
  if (axes != 0) packed = mesh.communicator(axes).all_gather(packed, counts);
  return combine_channel_moments(tape.context(), packed, parts, view[0], x.layout.global.back(),
                                 grouping.group_size);
}

/// The statistics that a piece of the field is normalised with.
struct PieceStatistics {
  GroupStatistics groups;
  ChannelRange channels;  ///< of the piece
  double eps = 0;

  ChannelScales scales(Context& context, const Array& gamma, DType type) const {
    return channel_scales(context, groups, channels, eps, gamma, type);
  }
};

Array normalise(Context& context, const Shape& view, const PieceStatistics& statistics, const Array& x,
                const Array& gamma, const Array& beta) {
  const ChannelScales scales = statistics.scales(context, gamma, accumulator_of(x.dtype()));
  return channel_apply(context, x.reshaped(view), scales.centre, scales.factor, beta).reshaped(x.shape());
}

/// Gradients of a piece; those of gamma and beta are its part of the sums.
NormGradients gradients_of(Tape& tape, AxisSet axes, const Grouping& grouping,
                           const PieceStatistics& statistics, bool given, const Array& dy, const Array& x,
                           const Array& gamma) {
  Context& context = tape.context();
  const Shape view = grouping.view(x.shape());
  const DType type = accumulator_of(x.dtype());
  const auto& [groups, channels, eps] = statistics;
  const ChannelScales scales = statistics.scales(context, gamma, type);
  const Array slopes = dy.reshaped(view), values = x.reshaped(view);
  const GroupSums sums = group_gradient_sums(context, groups, channels, eps, gamma,
                                             channel_gradient_sums(context, slopes, values, scales.centre));
  Array whole = sums.groups;
  // Statistics that were given have no gradient.
  if (given) whole = filled(context, whole.shape(), whole.dtype(), 0.0, Purpose::kWorkspace);
  if (!given && axes != 0)
    whole = tape.rank().mesh.communicator(axes).all_reduce(whole).reshaped(whole.shape());
  const auto [slope, shift] = gradient_shifts(context, groups, channels, eps, whole, grouping.elements, type);
  const Array dx = channel_gradient(context, slopes, values, scales.centre, scales.factor, slope, shift);
  return {dx.reshaped(dy.shape()), sums.dgamma, sums.dbeta};
}

/// Whether this rank is the one that adds what all ranks know alike to a sum over them.
bool speaks(const Rank& rank, const Placements& placements) {
  for (int axis = 0; axis < rank.mesh.shape().axes; ++axis) {
    if (placements[axis].is_partial() && rank.mesh.coordinate(axis) != 0) return false;
  }
  return true;
}

/// operands: x, gamma, beta, and for batch norm the running mean and variance.
Variable channel_norm(Tape& tape, Operation operation, const std::vector<Variable>& operands,
                      const Grouping& grouping) {
  const Signature signature = signature_of(operation, operands, grouping);
  if (tape.tracing()) return tape.trace(signature, operands);
  const Decision& decision = tape.decide(signature);
  const Variable& x = operands[0];
  const AxisSet axes = grouping.cutting(tape, decision, x.shape().rank());
  const ShardedTensor here = tape.bring(x, decision.inputs[0]);
  std::vector<std::function<ShardedTensor()>> saved;
  for (const Variable& operand : operands) saved.push_back(operand.save());
  const auto again = [&tape, &decision, saved](std::size_t i) {
    return tape.bring(saved[i](), decision.inputs[i]).piece;
  };
  const bool given = operands.size() > 3 && !tape.training();
  const Box box = tape.rank().box(here.layout);
  const std::int64_t first = given ? 0 : box.begin[x.shape().rank() - 1];
  const PieceStatistics statistics{given ? given_statistics(tape.context(), again(3), again(4))
                                         : whole_statistics(tape, axes, here, grouping),
                                   {first, here.piece.shape().back()},
                                   grouping.eps};
  const bool records = tape.records(operands);
  const Shape view = grouping.view(here.piece.shape());
  Variable y = tape.result(signature, decision, records, [&] {
    return normalise(tape.context(), view, statistics, here.piece, again(1), again(2));
  });
  if (!records) return y;
  if (decision.remade) {
    y.set_recipe([&tape, &decision, again, statistics, view, shape = x.shape()] {
      const Array normalised = normalise(tape.context(), view, statistics, again(0), again(1), again(2));
      return tape.bring(ShardedTensor{normalised, {shape, decision.row_outputs[0]}}, decision.outputs[0]);
    });
  }
  tape.record([&tape, &decision, axes, grouping, statistics, given, again, slot = y.slot(),
               targets = std::vector<GradientTarget>(operands.begin(), operands.end())] {
    if (!slot->gradient.defined()) return;
    const Array dy = tape.bring(slot->take(), dual(decision.row_outputs[0])).piece;
    const auto placements = [&](std::size_t i) { return tape.gradient_placements(decision, i); };
    // No gradients, but what the optimizer follows, see Parameter::momentum().
    for (std::size_t i = 3; i < targets.size() && !given; ++i) {
      targets[i].give(tape.rank(), placements(i), [&] {
        const double unbiased = grouping.elements / std::max(grouping.elements - 1, 1.0);
        const Array running = again(i);
        if (!speaks(tape.rank(), placements(i)))
          return filled(tape.context(), running.shape(), accumulator_of(running.dtype()), 0.0);
        return i == 3
                   ? way_to_batch(tape.context(), running, statistics.groups.mean, statistics.channels, 1.0)
                   : way_to_batch(tape.context(), running, statistics.groups.variance, statistics.channels,
                                  unbiased);
      });
    }
    const NormGradients gradients =
        gradients_of(tape, axes, grouping, statistics, given, dy, again(0), again(1));
    targets[1].give(tape.rank(), placements(1), [&] { return gradients.dgamma; });
    targets[2].give(tape.rank(), placements(2), [&] { return gradients.dbeta; });
    targets[0].give(tape.rank(), placements(0), [&] { return gradients.dx; });
  });
  return y;
}

}  // namespace

Variable group_norm(Tape& tape, const Variable& x, const Variable& gamma, const Variable& beta,
                    std::int64_t groups, double eps) {
  const Shape& shape = x.shape();
  if (groups < 1 || shape.back() % groups != 0) {
    throw ShapeError(
        concat("group_norm: ", groups, " groups should divide the ", shape.back(), " channels of ", shape));
  }
  const std::int64_t elements = shape.count(1, shape.rank()) / groups;
  const Grouping grouping = {true, shape.back() / groups, static_cast<double>(elements), eps};
  return channel_norm(tape, Operation::kGroupNorm, {x, gamma, beta}, grouping);
}

Variable batch_norm(Tape& tape, const Variable& x, const Variable& gamma, const Variable& beta,
                    const Variable& running_mean, const Variable& running_variance, double eps) {
  const Shape& shape = x.shape();
  const Grouping grouping = {false, 1, static_cast<double>(shape.count(0, shape.rank() - 1)), eps};
  return channel_norm(tape, Operation::kBatchNorm, {x, gamma, beta, running_mean, running_variance},
                      grouping);
}

}  // namespace jigsaw
