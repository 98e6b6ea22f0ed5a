#include <array>
#include <utility>

#include "autograd/contract_streamed.h"
#include "autograd/operation.h"
#include "autograd/operations.h"
#include "base/error.h"
#include "base/text.h"

namespace jigsaw {

namespace {

std::int64_t extent_of(char letter, const ContractionSpec& spec, const Shape& a, const Shape& b) {
  const std::size_t in_a = spec.a.find(letter);
  return in_a != std::string::npos ? a[static_cast<int>(in_a)] : b[static_cast<int>(spec.b.find(letter))];
}

Signature signature_of(const ContractionSpec& spec, const Shape& a, const Shape& b, const Letters& units) {
  if (static_cast<int>(spec.a.size()) != a.rank() || static_cast<int>(spec.b.size()) != b.rank()) {
    throw ShapeError(concat("contraction ", spec.to_string(), " of ", a, " and ", b));
  }
  Signature signature{Operation::kContract, "contract " + spec.to_string(), {a, b}, {{}}, {}, 2.0,
                      {true, true}};
  for (const char letter : spec.c) signature.outputs[0].append(extent_of(letter, spec, a, b));
  std::string all = spec.a;
  for (const char letter : spec.b)
    all += spec.a.find(letter) == std::string::npos ? std::string(1, letter) : "";
  for (const char letter : all) signature.forward_flops *= static_cast<double>(extent_of(letter, spec, a, b));
  signature.rows = rows_of_letters({letters(spec.a, units), letters(spec.b, units)}, letters(spec.c, units));
  signature.rows.push_back(row_linear_in({true, false}));
  signature.rows.push_back(row_linear_in({false, true}));
  return signature;
}

/// One contraction in the forward or backward of a row: operands where they are, and where the row wants them
/// and the result. Transfers that are worth it are streamed.
class RowContraction {
 public:
  RowContraction(Tape& tape, const Decision& decision, const ContractionSpec& spec, double flops)
      : tape_(tape), decision_(decision), spec_(spec), flops_(flops / tape.rank().mesh.shape().ranks()) {}

  /// @param row  layout in which the products come.
  /// @param to   layout in which the result is wanted.
  /// @return     the result in `to` if its transfer was streamed, else in `row`.
  ShardedTensor run(const std::array<ShardedTensor, 2>& operands, const std::array<Placements, 2>& wanted,
                    const Layout& row, const Layout& to) const {
    for (std::size_t i = 0; i < 2; ++i) {
      const std::optional<StreamedStep> step = arrival(operands[i], wanted[i], 1);
      if (step) return {streamed(operands, wanted, i, *step, row), row};
    }
    const ShardedTensor a = tape_.bring(operands[0], wanted[0]), b = tape_.bring(operands[1], wanted[1]);
    tape_.long_work_follows();
    const std::optional<StreamedStep> step = streamed_step(tape_.rank(), row, to, flops_, tape_.cost_model());
    const DType out = tape_.gradient_type(row.placements);
    if (step && step->step.kind != Collective::kAllGather) {
      return {contract_sending(tape_.rank(), lettered(spec_.a, a), lettered(spec_.b, b), spec_.c, row, *step,
                               out),
              to};
    }
    return {contract(tape_.context(), spec_, a.piece, b.piece, out), row};
  }

  /// The transfer of an operand that `uses` contractions read, if it is worth streaming. Ranks that would
  /// hold copies of the result must add in the same order, so that none is streamed along an axis that the
  /// row does not cut.
  std::optional<StreamedStep> arrival(const ShardedTensor& operand, const Placements& wanted,
                                      int uses) const {
    const std::optional<StreamedStep> step = streamed_step(
        tape_.rank(), operand.layout, {operand.layout.global, wanted}, uses * flops_, tape_.cost_model());
    const bool streams =
        step && step->step.kind != Collective::kReduceScatter && (step->step.axes & ~decision_.cut) == 0;
    return streams ? step : std::nullopt;
  }

  /// The product that takes the parts of a streamed first operand.
  StreamedProduct product(const ShardedTensor& other, const Layout& row) const {
    return {tape_.context(), spec_.a, lettered(spec_.b, other), {spec_.c, {}, tape_.rank().box(row)}};
  }

 private:
  LetteredPiece lettered(const std::string& letters, const ShardedTensor& x) const {
    return {letters, x.piece, tape_.rank().box(x.layout)};
  }

  Array streamed(const std::array<ShardedTensor, 2>& operands, const std::array<Placements, 2>& wanted,
                 std::size_t i, const StreamedStep& step, const Layout& row) const {
    ReceiveStream stream(tape_.rank(), operands[i], step.step, step.runs);
    const ShardedTensor other = tape_.bring(operands[1 - i], wanted[1 - i]);
    tape_.long_work_follows();
    const ContractionSpec swapped{spec_.b, spec_.a, spec_.c};
    StreamedProduct product =
        RowContraction(tape_, decision_, i == 0 ? spec_ : swapped, flops_).product(other, row);
    while (!stream.done()) product.add(stream.next());
    return product.result();
  }

  Tape& tape_;
  const Decision& decision_;
  ContractionSpec spec_;
  double flops_;
};

/// The gradients of both operands.
class ContractionBackward {
 public:
  ContractionBackward(Tape& tape, const Decision& decision, const ContractionSpec& spec, double flops,
                      const Variable& a, const Variable& b)
      : tape_(tape),
        decision_(decision),
        // dy · b and dy · a
        specs_{ContractionSpec{spec.c, spec.b, spec.a}, ContractionSpec{spec.c, spec.a, spec.b}},
        flops_(flops),
        globals_{a.shape(), b.shape()},
        targets_{GradientTarget(a), GradientTarget(b)},
        saved_{b.wants_gradient() ? a.save() : nullptr, a.wants_gradient() ? b.save() : nullptr} {}

  void run(const ShardedTensor& dy) {
    const Placements wanted = dual(decision_.row_outputs[0]);
    const int uses = static_cast<int>(targets_[0].wanted()) + static_cast<int>(targets_[1].wanted());
    if (const std::optional<StreamedStep> step = of(0).arrival(dy, wanted, uses))
      return run_streamed(dy, *step);
    const ShardedTensor here = tape_.bring(dy, wanted);
    // The weight's gradient first: what it alone reads, a as saved or computed again, goes before da comes.
    for (const std::size_t i : {1, 0}) {
      if (!targets_[i].wanted()) continue;
      const ShardedTensor other = std::exchange(saved_[1 - i], nullptr)();
      targets_[i].is_parameter() ? add(i, here, other) : give(i, here, other);
    }
  }

 private:
  RowContraction of(std::size_t i) const { return {tape_, decision_, specs_[i], flops_}; }
  Layout row_layout(std::size_t i) const { return {globals_[i], tape_.gradient_placements(decision_, i)}; }

  void give(std::size_t i, const ShardedTensor& dy, const ShardedTensor& other) const {
    const ShardedTensor gradient = of(i).run({dy, other}, {dy.layout.placements, decision_.inputs[1 - i]},
                                             row_layout(i), targets_[i].layout());
    targets_[i].give(tape_.rank(), gradient.layout.placements, [&] { return gradient.piece; });
  }

  /// To a parameter's gradient in place.
  void add(std::size_t i, const ShardedTensor& dy, const ShardedTensor& other) const {
    const Layout row = row_layout(i);
    if (of(i).arrival(other, decision_.inputs[1 - i], 1)) {
      Array gradient =
          of(i).run({dy, other}, {dy.layout.placements, decision_.inputs[1 - i]}, row, row).piece;
      return targets_[i].give(tape_.rank(), row.placements, [&] { return gradient; });
    }
    const Array here = tape_.bring(other, decision_.inputs[1 - i]).piece;
    tape_.long_work_follows();
    Context& context = tape_.context();
    targets_[i].give(
        tape_.rank(), row.placements,
        [&] { return contract(context, specs_[i], dy.piece, here, tape_.gradient_type(row.placements)); },
        [&](Array& into) { contract_add(context, specs_[i], dy.piece, here, into); });
  }

  /// Both from the parts of dy as they arrive.
  void run_streamed(const ShardedTensor& dy, const StreamedStep& step) {
    ReceiveStream stream(tape_.rank(), dy, step.step, step.runs);
    std::array<std::optional<StreamedProduct>, 2> products;
    for (std::size_t i = 0; i < 2; ++i) {
      if (targets_[i].wanted())
        products[i].emplace(
            of(i).product(tape_.bring(saved_[1 - i](), decision_.inputs[1 - i]), row_layout(i)));
    }
    tape_.long_work_follows();
    while (!stream.done()) {
      const ReceiveStream::Part part = stream.next();
      for (auto& product : products) {
        if (product) product->add(part);
      }
    }
    for (std::size_t i = 0; i < 2; ++i) {
      if (products[i])
        targets_[i].give(tape_.rank(), row_layout(i).placements, [&] { return products[i]->result(); });
    }
  }

  Tape& tape_;
  const Decision& decision_;
  std::array<ContractionSpec, 2> specs_;
  double flops_;
  std::array<Shape, 2> globals_;
  std::array<GradientTarget, 2> targets_;
  std::array<std::function<ShardedTensor()>, 2> saved_;
};

}  // namespace

Variable contract(Tape& tape, std::string_view text, const Variable& a, const Variable& b,
                  const Letters& units) {
  const ContractionSpec spec = ContractionSpec::parse(text);
  const Signature signature = signature_of(spec, a.shape(), b.shape(), units);
  if (tape.tracing()) return tape.trace(signature, {a, b});
  const Decision& decision = tape.decide(signature);
  const bool records = tape.records({a, b});
  Variable y = tape.result(signature, decision, records, [&] {
    return RowContraction(tape, decision, spec, signature.forward_flops)
        .run({tape.operand(a), tape.operand(b)}, {decision.inputs[0], decision.inputs[1]},
             {signature.outputs[0], decision.row_outputs[0]}, {signature.outputs[0], decision.outputs[0]});
  });
  if (!records) return y;
  tape.record([backward = ContractionBackward(tape, decision, spec, signature.forward_flops, a, b),
               slot = y.slot()]() mutable {
    if (slot->gradient.defined()) backward.run(slot->take());
  });
  return y;
}

}  // namespace jigsaw
