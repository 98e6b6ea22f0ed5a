#include <array>

#include "autograd/operation.h"
#include "autograd/operations.h"
#include "base/text.h"
#include "kernels/normalization.h"
#include "kernels/row_statistics.h"

namespace jigsaw {

namespace {

/// x, gamma and, for LayerNorm, beta.
using Operands = std::vector<Variable>;

/// Two numbers in f32 for each row, forward and backward.
TransferCost statistics_traffic(const OwnCall& call, std::span<const double>) {
  const Shape piece = call.piece(0);
  const double ranks = call.ranks(), bytes = 8 * static_cast<double>(piece.count(0, piece.rank() - 1));
  TransferCost cost;
  cost.add(Collective::kAllGather, (ranks - 1) * bytes, 1);
  cost.add(Collective::kAllReduce, 2 * (ranks - 1) / ranks * bytes, 1);
  return cost;
}

Signature signature_of(Operation operation, std::string_view text, const Operands& operands) {
  const Letters all = letters(text), last = {all.back()};
  const Shape& x = operands[0].shape();
  Signature signature{operation, concat(name(operation), " ", text), {}, {x}, {}, 0, {}};
  std::vector<Letters> inputs;
  std::vector<bool> linear;
  for (const Variable& operand : operands) {
    const bool first = inputs.empty();
    signature.inputs.push_back(operand.shape());
    signature.saved.push_back(first);
    inputs.push_back(first ? all : last);
    linear.push_back(!first);
  }
  signature.remade = true;
  signature.forward_flops = 8.0 * static_cast<double>(x.count());
  signature.rows = rows_of_letters(inputs, all);
  for (Row& row : signature.rows) {
    // Cutting the rows themselves: their statistics are exchanged.
    row.communicates = row.outputs[0] == Placement::shard(x.rank() - 1);
  }
  signature.own = {statistics_traffic};
  signature.rows.push_back(row_linear_in(linear));
  return signature;
}

AxisSet axes_that_cut_rows(const Tape& tape, const Decision& decision, int last) {
  AxisSet axes = 0;
  for (int axis = 0; axis < tape.rank().mesh.shape().axes; ++axis) {
    const Placement& placement = decision.inputs[0][axis];
    if (placement.is_shard() && placement.dim == last) axes |= axis_bit(axis);
  }
  return tape.rank().mesh.active(axes);
}

/// Statistics of whole rows from those of their parts, in rank order; parts' lengths come from the layout.
NormStatistics whole_row_statistics(Tape& tape, AxisSet axes, const ShardedTensor& x, double eps,
                                    Centre centre) {
  Array packed = pack_moments(tape.context(), row_moments(tape.context(), x.piece));
  const int last = x.layout.global.rank() - 1;
  Mesh& mesh = tape.rank().mesh;
  std::vector<std::int64_t> lengths, counts;
  for (int i = 0; i < mesh.size(axes); ++i) {
    lengths.push_back(x.layout.box(mesh.shape(), mesh.member(axes, i)).extent[last]);
    counts.push_back(packed.count());
  }
  packed = mesh.communicator(axes).all_gather(packed, counts);
  return combine_moments(tape.context(), packed, lengths, eps, centre);
}

/// How the rows of one call are normalised.
struct RowNorm {
  Centre centre = Centre::kMean;
  double eps = 0;
  AxisSet cutting = 0;
  std::int64_t length = 0;  ///< of a whole row

  Array forward(Tape& tape, const ShardedTensor& x, const Array& gamma, const Array& beta,
                NormStatistics& statistics) const {
    if (cutting != 0) {
      statistics = whole_row_statistics(tape, cutting, x, eps, centre);
      return layer_norm_apply(tape.context(), x.piece, gamma, beta, statistics);
    }
    return centre == Centre::kMean ? layer_norm_forward(tape.context(), x.piece, gamma, beta, eps, statistics)
                                   : rms_norm_forward(tape.context(), x.piece, gamma, eps, statistics);
  }

  NormGradients backward(Tape& tape, const Array& dy, const Array& x, const Array& gamma,
                         const NormStatistics& statistics) const {
    if (cutting == 0) {
      return centre == Centre::kMean ? layer_norm_backward(tape.context(), dy, x, gamma, statistics)
                                     : rms_norm_backward(tape.context(), dy, x, gamma, statistics);
    }
    Array sums = layer_norm_row_sums(tape.context(), dy, x, gamma, statistics);
    sums = tape.rank().mesh.communicator(cutting).all_reduce(sums).reshaped(sums.shape());
    if (centre == Centre::kZero) drop_mean_part(tape.context(), sums);
    return layer_norm_backward_apply(tape.context(), dy, x, gamma, statistics, sums, length);
  }
};

Variable row_norm(Tape& tape, Operation operation, std::string_view text, const Operands& operands,
                  Centre centre, double eps) {
  const Signature signature = signature_of(operation, text, operands);
  if (tape.tracing()) return tape.trace(signature, operands);
  const Decision& decision = tape.decide(signature);
  const Variable& x = operands[0];
  const RowNorm norm = {centre, eps, axes_that_cut_rows(tape, decision, x.shape().rank() - 1),
                        x.shape().back()};
  const ShardedTensor here = tape.bring(x, decision.inputs[0]);
  std::vector<std::function<ShardedTensor()>> saved;
  for (const Variable& operand : operands) saved.push_back(operand.save());
  const auto again = [&tape, &decision, saved](std::size_t i) {
    return i < saved.size() ? tape.bring(saved[i](), decision.inputs[i]).piece : Array();
  };

  NormStatistics statistics;
  Array normalised = norm.forward(tape, here, again(1), again(2), statistics);
  const bool records = tape.records(operands);
  Variable y = tape.keep(std::move(normalised), signature.outputs[0], decision, records);
  if (!records) return y;

  if (decision.remade) {
    y.set_recipe([&tape, &decision, again, statistics, shape = x.shape()] {
      const Array normalised_again =
          layer_norm_apply(tape.context(), again(0), again(1), again(2), statistics);
      return tape.bring(ShardedTensor{normalised_again, {shape, decision.row_outputs[0]}},
                        decision.outputs[0]);
    });
  }
  tape.record([&tape, &decision, norm, again, statistics, slot = y.slot(),
               targets = std::vector<GradientTarget>(operands.begin(), operands.end())] {
    if (!slot->gradient.defined()) return;
    const Array dy = tape.bring(slot->take(), dual(decision.row_outputs[0])).piece;
    const NormGradients gradients = norm.backward(tape, dy, again(0), again(1), statistics);
    const std::array all = {gradients.dx, gradients.dgamma, gradients.dbeta};
    for (std::size_t i = targets.size(); i-- > 0;) {
      targets[i].give(tape.rank(), tape.gradient_placements(decision, i), [&] { return all[i]; });
    }
  });
  return y;
}

}  // namespace

Variable layer_norm(Tape& tape, std::string_view text, const Variable& x, const Variable& gamma,
                    const Variable& beta, double eps) {
  return row_norm(tape, Operation::kLayerNorm, text, {x, gamma, beta}, Centre::kMean, eps);
}

Variable rms_norm(Tape& tape, std::string_view text, const Variable& x, const Variable& gamma, double eps) {
  return row_norm(tape, Operation::kRmsNorm, text, {x, gamma}, Centre::kZero, eps);
}

}  // namespace jigsaw
