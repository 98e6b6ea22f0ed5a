#include "layers/activation.h"

#include "base/error.h"

namespace jigsaw::inline layers {

namespace {

Activation function_of(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::kNone:
    case ActivationKind::kPrelu:
      return Activation::kNone;
    case ActivationKind::kGelu:
      return Activation::kGelu;
    case ActivationKind::kRelu:
      return Activation::kRelu;
    case ActivationKind::kSilu:
      return Activation::kSilu;
    case ActivationKind::kTanh:
      return Activation::kTanh;
    case ActivationKind::kSigmoid:
      return Activation::kSigmoid;
    case ActivationKind::kMish:
      return Activation::kMish;
    case ActivationKind::kLeakyRelu:
      return Activation::kLeakyRelu;
  }
  fail("an activation without a name");
}

bool does_nothing(const Pointwise& pass) {
  return !pass.bias.defined() && !pass.residual.defined() && pass.activation == Activation::kNone &&
         pass.dropout == 0;
}

}  // namespace

std::vector<ChoiceForm<ActivationKind>::Entry> activation_choices() {
  return {{"none", ActivationKind::kNone, "Nothing."},
          {"gelu", ActivationKind::kGelu, "x·Φ(x)."},
          {"relu", ActivationKind::kRelu, "max(x, 0)."},
          {"silu", ActivationKind::kSilu, "x·σ(x)."},
          {"tanh", ActivationKind::kTanh, "The hyperbolic tangent."},
          {"sigmoid", ActivationKind::kSigmoid, "σ(x) = 1/(1 + e^(−x))."},
          {"mish", ActivationKind::kMish, "x·tanh(ln(1 + e^x))."},
          {"leaky_relu", ActivationKind::kLeakyRelu, "x where it is positive, elsewhere 0.01·x."},
          {"prelu", ActivationKind::kPrelu, "x where it is positive, elsewhere x times a learned slope."}};
}

InnerActivation::InnerActivation(const LayerSite& site, ActivationKind kind, std::int64_t channels)
    : kind_(kind) {
  if (kind == ActivationKind::kPrelu) slope_ = site.parameter("slope", {channels}, Initial::constant(0.25));
}

Variable InnerActivation::run(Tape& tape, const Variable& x, Pointwise rest, char channel) const {
  Variable y = x;
  if (slope_.defined()) {
    if (rest.bias.defined()) y = pointwise(tape, y, {rest.letters, rest.bias, rest.bias_letters});
    y = prelu(tape, rest.letters, y, slope_, channel);
    rest.bias = Variable();
    rest.bias_letters.clear();
  }
  rest.activation = function_of(kind_);
  return does_nothing(rest) ? y : pointwise(tape, y, rest);
}

Variable InnerActivation::run(Tape& tape, const Variable& x, const Variable& residual) const {
  return run(tape, x, {field_letters(x.shape().rank() - 2, 'c'), {}, "", residual}, 'c');
}

Activation InnerActivation::function() const {
  return function_of(kind_);
}

Variable InnerActivation::run_behind(Tape& tape, const Variable& x, const Variable& residual) const {
  return slope_.defined() ? run(tape, x, residual) : add_residual(tape, x, residual);
}

}  // namespace jigsaw::inline layers
