#include "autograd/operations.h"
#include "autograd/registry.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline autograd {

namespace {

/// Inputs: the two factors.
class Multiply : public Operation {
 public:
  explicit Multiply(std::string letters) : letters_(std::move(letters)) {}

  std::string_view name() const override { return "multiply"; }

  Signature signature(std::span<const Shape> inputs) const override {
    if (!(inputs[0] == inputs[1])) {
      throw ShapeError(concat("multiply ", letters_, " of ", inputs[0], " and ", inputs[1],
                              ": both should have one shape"));
    }
    const Letters all = letters(letters_);
    Signature signature;
    signature.name = concat("multiply ", letters_);
    signature.outputs = {inputs[0]};
    signature.rules = rules_of_letters({all, all}, all);
    signature.rules.push_back(linear_rule({true, false}));
    signature.rules.push_back(linear_rule({false, true}));
    signature.saved = {true, true};
    signature.bilinear = true;
    signature.forward_flops = static_cast<double>(inputs[0].count());
    return signature;
  }

  std::vector<Array> forward(Frame& frame, Operands& inputs) const override {
    const Array x = inputs.redistributed(0), y = inputs.redistributed(1);
    return {product(frame, x, y)};
  }

  void backward(const Frame& frame, Operands& saved, Gradients& gradients) const override {
    const Array dy = gradients.take();
    for (const std::size_t i : {0U, 1U}) {
      if (!gradients.wanted(i)) continue;
      const Array other = saved.redistributed(1 - i);
      gradients.give(i, [&] { return product(frame, dy, other); });
    }
  }

 private:
  static Array product(const Frame& frame, const Array& x, const Array& y) {
    return scale_spread(frame.context(), {1, x.count(), 1}, x, y);
  }

  std::string letters_;
};

}  // namespace

Variable multiply(Tape& tape, std::string_view letters, const Variable& x, const Variable& y) {
  return apply(tape, Multiply(std::string(letters)), {x, y});
}

std::vector<ProofCase> multiply_cases() {
  std::vector<std::vector<Shape>> inputs;
  for (const Shape& x : {Shape{3, 4, 2, 5}, Shape{2, 5, 3, 4}, Shape{4, 1, 5, 2}}) inputs.push_back({x, x});
  return {make_case("bhwc", inputs, [](Tape& tape, const std::vector<Variable>& x) {
    return multiply(tape, "bhwc", x[0], x[1]);
  })};
}

}  // namespace jigsaw::inline autograd
