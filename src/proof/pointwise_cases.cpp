#include "autograd/operations.h"
#include "base/text.h"
#include "proof/operation_cases.h"

namespace jigsaw {

namespace {

struct Options {
  std::string bias;  ///< letters of "bhwc"
  bool residual = false;
  Activation activation = Activation::kNone;
  double dropout = 0;
};

std::string name_of(const Options& options) {
  std::string name = "bhwc";
  if (!options.bias.empty()) name += " + bias " + options.bias;
  if (options.activation == Activation::kGelu) name += ", gelu";
  if (options.dropout > 0) name += ", dropout";
  if (options.residual) name += ", residual";
  return name;
}

OperationCase pointwise_case(const Options& options) {
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

std::vector<OperationCase> pointwise_cases() {
  std::vector<OperationCase> cases;
  const Activation none = Activation::kNone, gelu = Activation::kGelu;
  for (const Options& options : {Options{"", false, gelu},
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

}  // namespace jigsaw
