#include "autograd/operations.h"
#include "autograd/registry.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline autograd {

namespace {

/// Inputs: x, and the slope over one of its letters.
class Prelu : public Operation {
 public:
  Prelu(std::string letters, char slope) : letters_(std::move(letters)), slope_(slope) {}

  std::string_view name() const override { return "prelu"; }

  Signature signature(std::span<const Shape> inputs) const override {
    const std::size_t dim = letters_.find(slope_);
    if (dim == std::string::npos || inputs[1].rank() != 1 ||
        inputs[1][0] != inputs[0][static_cast<int>(dim)]) {
      throw ShapeError(concat("prelu ", letters_, " of ", inputs[0], ": the slope ", inputs[1],
                              " should have a number for each value of ", slope_));
    }
    const Letters all = letters(letters_);
    Signature signature;
    signature.name = concat("prelu ", letters_, ",", slope_);
    signature.outputs = {inputs[0]};
    signature.rules = rules_of_letters({all, {{slope_}}}, all);
    signature.saved = {true, true};
    signature.rematerialised = true;
    signature.forward_flops = 2.0 * static_cast<double>(inputs[0].count());
    return signature;
  }

  std::vector<Array> forward(Frame& frame, Operands& inputs) const override {
    const Array x = inputs.redistributed(0), slope = inputs.redistributed(1);
    return {prelu_forward(frame.context(), spread(x.shape()), x, slope)};
  }

  void backward(const Frame& frame, Operands& saved, Gradients& gradients) const override {
    const Array dy = gradients.take(), x = saved.redistributed(0), slope = saved.redistributed(1);
    const PreluGradients found = prelu_backward(frame.context(), spread(x.shape()), dy, x, slope);
    gradients.give(1, found.dslope);
    gradients.give(0, found.dx);
  }

 private:
  Spread spread(const Shape& piece) const {
    const auto dim = static_cast<int>(letters_.find(slope_));
    return {piece.count(0, dim), piece[dim], piece.count(dim + 1, piece.rank())};
  }

  std::string letters_;
  char slope_;
};

}  // namespace

Variable prelu(Tape& tape, std::string_view letters, const Variable& x, const Variable& slope,
               char slope_letter) {
  return apply(tape, Prelu(std::string(letters), slope_letter), {x, slope});
}

std::vector<ProofCase> prelu_cases() {
  std::vector<ProofCase> cases;
  for (const char letter : {'c', 'h'}) {
    std::vector<std::vector<Shape>> inputs;
    for (const Shape& x : {Shape{3, 4, 2, 5}, Shape{2, 5, 3, 4}, Shape{4, 1, 5, 2}})
      inputs.push_back({x, {letter == 'c' ? x.back() : x[1]}});
    cases.push_back(
        make_case(concat("bhwc,", letter), inputs, [letter](Tape& tape, const std::vector<Variable>& x) {
          return prelu(tape, "bhwc", x[0], x[1], letter);
        }));
  }
  return cases;
}

}  // namespace jigsaw::inline autograd
