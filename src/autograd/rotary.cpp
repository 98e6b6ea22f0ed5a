#include "autograd/operations.h"
#include "autograd/registry.h"
#include "kernels/attention.h"

namespace jigsaw::inline autograd {

namespace {

class Rotary : public Operation {
 public:
  Rotary(std::int64_t head_size, double base) : head_size_(head_size), base_(base) {}

  std::string_view name() const override { return "rotary"; }

  Signature signature(std::span<const Shape> inputs) const override {
    const Shape& qkv = inputs[0];
    const auto space = static_cast<std::size_t>(qkv.rank() - 3);
    const Letters all = letters("b" + std::string("dhw").substr(3 - space) + "1c", {{'c', head_size_}});
    Signature signature;
    signature.name = "rotary";
    signature.outputs = {qkv};
    signature.rules = rules_of_letters({all}, all);
    signature.rules.push_back(linear_rule({true}));
    signature.forward_flops = 3.0 * static_cast<double>(qkv.count());
    signature.saved = {false};
    return signature;
  }

  std::vector<Array> forward(Frame& frame, Operands& inputs) const override {
    return {rotate(frame, inputs.redistributed(0), false)};
  }

  void backward(const Frame& frame, Operands&, Gradients& gradients) const override {
    const Array dy = gradients.take();
    gradients.give(0, [&] { return rotate(frame, dy, true); });
  }

 private:
  Array rotate(const Frame& frame, const Array& x, bool inverse) const {
    const Box box = frame.input_box(0);
    const int space = box.extent.rank() - 3;
    Rotation rotation{{}, {}, base_, inverse};
    for (int dim = 1; dim <= space; ++dim) {
      rotation.space.append(box.extent[dim]);
      rotation.origin.push_back(box.begin[dim]);
    }
    const Shape heads{box.extent[0], rotation.space.count(), 3, box.extent.back() / head_size_, head_size_};
    return attention_rotate(frame.context(), x.reshaped(heads), rotation).reshaped(box.extent);
  }

  std::int64_t head_size_;
  double base_;
};

}  // namespace

Variable rotary(Tape& tape, const Variable& qkv, std::int64_t head_size, double base) {
  return apply(tape, Rotary(head_size, base), {qkv});
}

std::vector<ProofCase> rotary_cases() {
  const auto one = [](std::string name, std::int64_t head_size,
                      const std::vector<std::vector<Shape>>& shapes) {
    return make_case(std::move(name), shapes, [head_size](Tape& tape, const std::vector<Variable>& x) {
      return rotary(tape, x[0], head_size, 100.0);
    });
  };
  return {one("bwc", 2, {{{3, 4, 3, 10}}, {{2, 7, 3, 4}}, {{4, 2, 3, 6}}}),
          one("bhwc", 4, {{{3, 2, 5, 3, 12}}, {{2, 4, 3, 3, 20}}, {{4, 5, 2, 3, 8}}})};
}

}  // namespace jigsaw::inline autograd
