#include "autograd/operations.h"
#include "proof/operation_cases.h"

namespace jigsaw {

namespace {

// A large eps keeps groups of two from being signs.
constexpr double kEps = 0.1;

/// Fields whose dims are cut evenly, unevenly and with pieces left empty.
const std::vector<Shape> kFields = {{3, 4, 2, 6}, {2, 5, 3, 4}, {4, 1, 5, 2}};

/// Each field with `vectors` operands over its channels.
std::vector<std::vector<Shape>> with_vectors(const std::vector<Shape>& fields, std::size_t vectors) {
  std::vector<std::vector<Shape>> inputs;
  for (const Shape& field : fields) {
    inputs.emplace_back(1 + vectors, Shape{field.back()});
    inputs.back()[0] = field;
  }
  return inputs;
}

}  // namespace

std::vector<OperationCase> rms_norm_cases() {
  const auto norm = [](const std::string& letters, const std::vector<Shape>& fields) {
    return make_case(letters, with_vectors(fields, 1), [letters](Tape& tape, const std::vector<Variable>& x) {
      return rms_norm(tape, letters, x[0], x[1], kEps);
    });
  };
  return {norm("bhwc", {{3, 4, 2, 5}, {2, 5, 3, 4}, {4, 1, 5, 2}}), norm("bc", {{5, 4}, {2, 7}, {3, 2}})};
}

std::vector<OperationCase> group_norm_cases() {
  std::vector<OperationCase> cases;
  for (const bool instance : {false, true}) {
    cases.push_back(make_case(instance ? "a group for each channel" : "two groups", with_vectors(kFields, 2),
                              [instance](Tape& tape, const std::vector<Variable>& x) {
                                const std::int64_t groups = instance ? x[0].shape().back() : 2;
                                return group_norm(tape, x[0], x[1], x[2], groups, kEps);
                              }));
  }
  return cases;
}

std::vector<OperationCase> batch_norm_cases() {
  return {
      make_case("batch statistics", with_vectors(kFields, 4), [](Tape& tape, const std::vector<Variable>& x) {
        return batch_norm(tape, x[0], x[1], x[2], x[3], x[4], kEps);
      })};
}

}  // namespace jigsaw
