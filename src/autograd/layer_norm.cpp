#include <array>

#include "autograd/operation.h"
#include "autograd/operations.h"
#include "base/error.h"
#include "kernels/normalization.h"
#include "kernels/row_statistics.h"

namespace jigsaw {

namespace {

Signature signature_of(std::string_view text, const Variable& x, const Variable& gamma,
                       const Variable& beta) {
  const Letters all = letters(text), last = {all.back()};
  Signature signature{Operation::kLayerNorm,
                      "layer_norm " + std::string(text),
                      {x.shape(), gamma.shape(), beta.shape()},
                      x.shape(),
                      {},
                      0,
                      {}};
  signature.saved = {true, false, false};
  signature.forward_flops = 8.0 * static_cast<double>(x.shape().count());
  signature.rows = rows_of_letters({all, last, last}, all);
  for (Row& row : signature.rows) {
    // Cutting the rows themselves: two statistics of each row are exchanged, forward and backward.
    if (row.output == Placement::shard(x.shape().rank() - 1)) row.small_bytes = 8;
  }
  signature.rows.push_back(row_linear_in({false, true, true}));
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
NormStatistics whole_row_statistics(Tape& tape, AxisSet axes, const ShardedTensor& x, double eps) {
  const Moments own = row_moments(tape.context(), x.piece);
  const Array packed = pack_moments(tape.context(), own);
  const int last = x.layout.global.rank() - 1;
  const MeshShape& mesh = tape.rank().mesh.shape();
  std::vector<std::int64_t> lengths, counts;
  for (int i = 0; i < tape.rank().mesh.size(axes); ++i) {
    lengths.push_back(x.layout.box(mesh, tape.rank().mesh.member(axes, i)).extent[last]);
    counts.push_back(packed.count());
  }
  const Array all = tape.rank().mesh.communicator(axes).all_gather(packed, counts);
  return combine_moments(tape.context(), all, lengths, eps);
}

}  // namespace

Variable layer_norm(Tape& tape, std::string_view text, const Variable& x, const Variable& gamma,
                    const Variable& beta, double eps) {
  const Signature signature = signature_of(text, x, gamma, beta);
  if (tape.tracing()) return tape.trace(signature, {x, gamma, beta});
  const Decision& decision = tape.decide(signature);
  const AxisSet cutting = axes_that_cut_rows(tape, decision, x.shape().rank() - 1);
  const ShardedTensor here = tape.bring(x, decision.inputs[0]);
  const auto affine = [&tape, &decision, saved = std::array{gamma.save(), beta.save()}](std::size_t i) {
    return tape.bring(saved[i](), decision.inputs[1 + i]).piece;
  };

  NormStatistics statistics;
  Array normalised;
  if (cutting == 0) {
    normalised = layer_norm_forward(tape.context(), here.piece, affine(0), affine(1), eps, statistics);
  } else {
    statistics = whole_row_statistics(tape, cutting, here, eps);
    normalised = layer_norm_apply(tape.context(), here.piece, affine(0), affine(1), statistics);
  }
  const bool records = tape.records({x, gamma, beta});
  Variable y = tape.keep(std::move(normalised), signature.output, decision, records);
  if (!records) return y;

  const auto saved_x = [&tape, &decision, save = x.save()] {
    return tape.bring(save(), decision.inputs[0]).piece;
  };
  y.set_recipe([&tape, &decision, saved_x, affine, statistics, shape = x.shape()] {
    const Array again = layer_norm_apply(tape.context(), saved_x(), affine(0), affine(1), statistics);
    return tape.bring(ShardedTensor{again, {shape, decision.row_output}}, decision.output);
  });
  tape.record([&tape, &decision, cutting, saved_x, affine, statistics, length = x.shape().back(),
               slot = y.slot(),
               targets = std::array{GradientTarget(x), GradientTarget(gamma), GradientTarget(beta)}] {
    if (!slot->gradient.defined()) return;
    const Array dy = tape.bring(slot->take(), dual(decision.row_output)).piece;
    const Array again = saved_x();
    NormGradients gradients;
    if (cutting == 0) {
      gradients = layer_norm_backward(tape.context(), dy, again, affine(0), statistics);
    } else {
      const Array own = layer_norm_row_sums(tape.context(), dy, again, affine(0), statistics);
      const Array sums = tape.rank().mesh.communicator(cutting).all_reduce(own).reshaped(own.shape());
      gradients = layer_norm_backward_apply(tape.context(), dy, again, affine(0), statistics, sums, length);
    }
    targets[1].give(tape.rank(), tape.gradient_placements(decision, 1), [&] { return gradients.dgamma; });
    targets[2].give(tape.rank(), tape.gradient_placements(decision, 2), [&] { return gradients.dbeta; });
    targets[0].give(tape.rank(), tape.gradient_placements(decision, 0), [&] { return gradients.dx; });
  });
  return y;
}

}  // namespace jigsaw
