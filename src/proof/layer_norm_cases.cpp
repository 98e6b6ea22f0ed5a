#include "autograd/operations.h"
#include "proof/operation_cases.h"

namespace jigsaw {

namespace {

OperationCase layer_norm_case(const std::string& letters, const std::vector<Shape>& shapes) {
  std::vector<std::vector<Shape>> inputs;
  for (const Shape& x : shapes) inputs.push_back({x, {x.back()}, {x.back()}});
  // A large eps keeps rows of two from being signs.
  return make_case(letters, inputs, [letters](Tape& tape, const std::vector<Variable>& x) {
    return layer_norm(tape, letters, x[0], x[1], x[2], 0.1);
  });
}

}  // namespace

std::vector<OperationCase> layer_norm_cases() {
  return {layer_norm_case("bhwc", {{3, 4, 2, 5}, {2, 5, 3, 4}, {4, 1, 5, 2}}),
          layer_norm_case("bc", {{5, 4}, {2, 7}, {3, 2}})};
}

}  // namespace jigsaw
