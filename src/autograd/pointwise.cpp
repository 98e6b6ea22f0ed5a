#include "kernels/pointwise.h"

#include "autograd/operation.h"
#include "autograd/operations.h"
#include "base/error.h"
#include "base/text.h"

namespace jigsaw {

namespace {

Signature signature_of(const Variable& x, const Pointwise& options) {
  Signature signature{
      Operation::kPointwise, "pointwise " + options.letters, {x.shape()}, {x.shape()}, {}, 0, {}};
  const Letters all = letters(options.letters, options.units);
  std::vector<Letters> operands = {all};
  signature.saved = {options.activation != Activation::kNone};
  if (options.bias.defined()) {
    signature.inputs.push_back(options.bias.shape());
    operands.push_back(letters(options.bias_letters, options.units));
    signature.saved.push_back(false);
  }
  if (options.residual.defined()) {
    signature.inputs.push_back(options.residual.shape());
    operands.push_back(all);
    signature.saved.push_back(false);
  }
  signature.remade = options.activation != Activation::kNone && !options.residual.defined();
  signature.forward_flops = (2.0 + flops_of(options.activation)) * static_cast<double>(x.shape().count());
  signature.rows = rows_of_letters(operands, all);
  // Dropout is linear: the summands of a sum are dropped alike.
  if (options.activation == Activation::kNone) {
    signature.rows.push_back(row_linear_in(std::vector<bool>(operands.size(), true)));
  }
  return signature;
}

/// How the bias spreads over a piece of x.
Spread spread_of(const Pointwise& options, const Shape& piece) {
  Spread spread;
  if (!options.bias.defined()) {
    spread.outer = piece.count();
    return spread;
  }
  const std::size_t first = options.letters.find(options.bias_letters);
  if (first == std::string::npos) {
    throw ShapeError(concat("bias letters ", options.bias_letters, " are not a run of ", options.letters));
  }
  const int begin = static_cast<int>(first), end = begin + static_cast<int>(options.bias_letters.size());
  return {piece.count(0, begin), piece.count(begin, end), piece.count(end, piece.rank())};
}

/// What forward and backward share.
struct Replay {
  PointwiseChain chain;
  std::function<ShardedTensor()> saved_x;
  std::function<ShardedTensor()> saved_bias;

  Array bias(Tape& tape, const Decision& decision) const {
    return saved_bias ? tape.bring(saved_bias(), decision.inputs[1]).piece : Array();
  }
};

}  // namespace

Variable pointwise(Tape& tape, const Variable& x, const Pointwise& options) {
  const Signature signature = signature_of(x, options);
  std::vector<Variable> operands = {x};
  if (options.bias.defined()) operands.push_back(options.bias);
  if (options.residual.defined()) operands.push_back(options.residual);
  if (tape.tracing()) return tape.trace(signature, operands);
  const Decision& decision = tape.decide(signature);

  const Layout layout{x.shape(), decision.inputs[0]};
  const Box piece = tape.rank().box(layout);
  Replay call{{options.activation, {}, spread_of(options, piece.extent)}, nullptr, nullptr};
  if (options.dropout > 0 && tape.training()) {
    call.chain.dropout.emplace(
        Dropout{options.dropout, RandomStream(tape.random().seed, RandomPurpose::kDropout, options.path),
                tape.random().position, x.shape(), piece, options.whole_samples});
  }
  if (options.bias.defined()) call.saved_bias = options.bias.save();
  const bool records = tape.records(operands);
  Variable y = tape.result(signature, decision, records, [&] {
    const Array residual =
        options.residual.defined() ? tape.bring(options.residual, decision.inputs.back()).piece : Array();
    return ShardedTensor{
        pointwise_forward(tape.context(), call.chain, tape.bring(x, decision.inputs[0]).piece,
                          call.bias(tape, decision), residual),
        {signature.outputs[0], decision.row_outputs[0]}};
  });
  if (!records) return y;

  const bool activates = options.activation != Activation::kNone;
  if (activates) call.saved_x = x.save();
  if (decision.remade) {
    y.set_recipe([&tape, &decision, call, shape = x.shape()] {
      const Array again =
          pointwise_forward(tape.context(), call.chain, tape.bring(call.saved_x(), decision.inputs[0]).piece,
                            call.bias(tape, decision), Array());
      return tape.bring(ShardedTensor{again, {shape, decision.row_outputs[0]}}, decision.outputs[0]);
    });
  }
  std::vector<GradientTarget> targets(operands.begin(), operands.end());
  tape.record([&tape, &decision, call, targets, activates, has_bias = options.bias.defined(),
               has_residual = options.residual.defined(), slot = y.slot()] {
    if (!slot->gradient.defined()) return;
    Array dy = tape.bring(slot->take(), dual(decision.row_outputs[0])).piece;
    if (has_residual) {
      targets.back().give(tape.rank(), tape.gradient_placements(decision, targets.size() - 1),
                          [&] { return dy; });
    }
    Array dx = std::move(dy);
    if (!call.chain.linear()) {
      const Array x_again = activates ? tape.bring(call.saved_x(), decision.inputs[0]).piece : Array();
      dx = pointwise_backward(tape.context(), call.chain, x_again, call.bias(tape, decision), std::move(dx));
    }
    if (has_bias) {
      targets[1].give(tape.rank(), tape.gradient_placements(decision, 1),
                      [&] { return sum_spread(tape.context(), call.chain.spread, dx); });
    }
    targets[0].give(tape.rank(), tape.gradient_placements(decision, 0), [&] { return dx; });
  });
  return y;
}

}  // namespace jigsaw
