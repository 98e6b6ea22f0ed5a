#include "kernels/pointwise.h"

#include "autograd/operations.h"
#include "autograd/registry.h"
#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline autograd {

namespace {

/// Inputs: x, the bias and the residual, where there are such.
class PointwiseOperation : public Operation {
 public:
  explicit PointwiseOperation(const Pointwise& options)
      : options_(options), has_bias_(options.bias.defined()), has_residual_(options.residual.defined()) {
    options_.bias = options_.residual = Variable();
  }

  std::string_view name() const override { return "pointwise"; }

  Signature signature(std::span<const Shape> inputs) const override {
    Signature signature;
    signature.name = "pointwise " + options_.letters;
    signature.outputs = {inputs[0]};
    const Letters all = letters(options_.letters, options_.units);
    std::vector<Letters> operands = {all};
    if (has_bias_) operands.push_back(letters(options_.bias_letters, options_.units));
    if (has_residual_) operands.push_back(all);
    signature.saved.assign(operands.size(), activates());
    if (has_residual_) signature.saved.back() = false;
    signature.rematerialised = activates() && !has_residual_;
    signature.forward_flops = (2.0 + flops_of(options_.activation)) * static_cast<double>(inputs[0].count());
    signature.rules = rules_of_letters(operands, all);
    // Dropout is linear: the summands of a sum are dropped alike.
    if (!activates()) signature.rules.push_back(linear_rule(std::vector<bool>(operands.size(), true)));
    return signature;
  }

  std::vector<Array> forward(Frame& frame, Operands& inputs) const override {
    const Array residual = has_residual_ ? inputs.redistributed(has_bias_ ? 2 : 1) : Array();
    const Array x = inputs.redistributed(0), bias = has_bias_ ? inputs.redistributed(1) : Array();
    return {pointwise_forward(frame.context(), chain(frame), x, bias, residual)};
  }

  void backward(const Frame& frame, Operands& saved, Gradients& gradients) const override {
    const PointwiseChain same = chain(frame);
    Array dx = gradients.take();
    if (has_residual_) gradients.give(has_bias_ ? 2 : 1, dx);
    if (!same.linear()) {
      const Array x = activates() ? saved.redistributed(0) : Array();
      const Array bias = activates() && has_bias_ ? saved.redistributed(1) : Array();
      dx = pointwise_backward(frame.context(), same, x, bias, std::move(dx));
    }
    if (has_bias_) gradients.give(1, [&] { return sum_spread(frame.context(), same.spread, dx); });
    gradients.give(0, dx);
  }

 private:
  bool activates() const { return options_.activation != Activation::kNone; }

  PointwiseChain chain(const Frame& frame) const {
    const Box piece = frame.input_box(0);
    PointwiseChain chain{options_.activation, {}, spread(piece.extent)};
    if (options_.dropout > 0 && frame.training()) {
      chain.dropout.emplace(
          Dropout{options_.dropout, RandomStream(frame.random().seed, RandomPurpose::kDropout, options_.path),
                  frame.random().position, frame.signature().inputs[0], piece, options_.whole_samples});
    }
    return chain;
  }

  /// How the bias spreads over a piece of x.
  Spread spread(const Shape& piece) const {
    if (!has_bias_) return {piece.count(), 1, 1};
    const std::size_t first = options_.letters.find(options_.bias_letters);
    if (first == std::string::npos) {
      throw ShapeError(
          concat("bias letters ", options_.bias_letters, " are not a run of ", options_.letters));
    }
    const int begin = static_cast<int>(first), end = begin + static_cast<int>(options_.bias_letters.size());
    return {piece.count(0, begin), piece.count(begin, end), piece.count(end, piece.rank())};
  }

  Pointwise options_;  ///< without its operands
  bool has_bias_, has_residual_;
};

}  // namespace

Variable pointwise(Tape& tape, const Variable& x, const Pointwise& options) {
  std::vector<Variable> inputs = {x};
  if (options.bias.defined()) inputs.push_back(options.bias);
  if (options.residual.defined()) inputs.push_back(options.residual);
  return apply(tape, PointwiseOperation(options), inputs);
}

// ---- Proof

namespace {

struct CaseOptions {
  std::string bias;  ///< letters of "bhwc"
  bool residual = false;
  Activation activation = Activation::kNone;
  double dropout = 0;
};

std::string name_of(const CaseOptions& options) {
  std::string name = "bhwc";
  if (!options.bias.empty()) name += " + bias " + options.bias;
  if (options.activation == Activation::kGelu) name += ", gelu";
  if (options.dropout > 0) name += ", dropout";
  if (options.residual) name += ", residual";
  return name;
}

ProofCase pointwise_case(const CaseOptions& options) {
  const std::string letters = "bhwc";
  std::vector<std::vector<Shape>> inputs;
  for (const Shape& x : {Shape{3, 4, 2, 5}, Shape{2, 5, 3, 4}, Shape{4, 1, 5, 2}}) {
    std::vector<Shape>& shapes = inputs.emplace_back(1, x);
    if (!options.bias.empty()) {
      Shape bias;
      for (const char letter : options.bias) bias.append(x[static_cast<int>(letters.find(letter))]);
      shapes.push_back(bias);
    }
    if (options.residual) shapes.push_back(x);
  }
  return make_case(name_of(options), inputs, [=](Tape& tape, const std::vector<Variable>& x) {
    const Variable bias = options.bias.empty() ? Variable() : x[1];
    const Variable residual = options.residual ? x.back() : Variable();
    return pointwise(tape, x[0],
                     {letters, bias, options.bias, residual, options.activation, options.dropout, "path"});
  });
}

}  // namespace

std::vector<ProofCase> pointwise_cases() {
  std::vector<ProofCase> cases;
  const Activation none = Activation::kNone, gelu = Activation::kGelu;
  for (const CaseOptions& options : {CaseOptions{"", false, gelu},
                                     {"", false, none, 0.3},
                                     {"", true},
                                     {"", true, none, 0.3},
                                     {"", true, gelu, 0.3},
                                     {"c"},
                                     {"h"},
                                     {"c", false, gelu, 0.3},
                                     {"hw", false, none, 0.3},
                                     {"c", true},
                                     {"hw", true, gelu},
                                     {"hwc", true, gelu, 0.3}}) {
    cases.push_back(pointwise_case(options));
  }
  return cases;
}

}  // namespace jigsaw::inline autograd
