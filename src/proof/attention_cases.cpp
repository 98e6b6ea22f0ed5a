#include "autograd/operations.h"
#include "proof/operation_cases.h"

namespace jigsaw {

namespace {

/// Weights are dropped by global number, so that a row that numbers them wrongly is seen.
constexpr double kDropout = 0.25;

OperationCase self_case(std::string name, std::int64_t head_size,
                        const std::vector<std::vector<Shape>>& shapes) {
  return make_case(std::move(name), shapes, [head_size](Tape& tape, const std::vector<Variable>& x) {
    return attention(tape, x[0], {head_size, kDropout, "path"});
  });
}

OperationCase cross_case(std::string name, std::int64_t head_size,
                         const std::vector<std::vector<Shape>>& shapes) {
  return make_case(std::move(name), shapes, [head_size](Tape& tape, const std::vector<Variable>& x) {
    return cross_attention(tape, x[0], x[1], {head_size, kDropout, "path"});
  });
}

}  // namespace

std::vector<OperationCase> attention_cases() {
  return {self_case("bwc", 2, {{{3, 4, 3, 10}}, {{2, 7, 3, 4}}, {{4, 2, 3, 6}}}),
          self_case("bhwc", 2, {{{3, 2, 5, 3, 6}}, {{2, 4, 3, 3, 8}}, {{4, 5, 2, 3, 4}}}),
          self_case("bdhwc", 1, {{{3, 2, 3, 2, 3, 5}}, {{2, 3, 2, 4, 3, 2}}, {{4, 4, 5, 3, 3, 3}}})};
}

std::vector<OperationCase> cross_attention_cases() {
  return {
      cross_case("bwc of bwc", 2,
                 {{{3, 4, 10}, {3, 5, 2, 10}}, {{2, 7, 4}, {2, 3, 2, 4}}, {{4, 2, 6}, {4, 4, 2, 6}}}),
      cross_case("bhwc of bhwc", 2,
                 {{{3, 2, 5, 6}, {3, 4, 3, 2, 6}},
                  {{2, 4, 3, 8}, {2, 2, 5, 2, 8}},
                  {{4, 5, 2, 4}, {4, 3, 4, 2, 4}}}),
      cross_case("bhwc of bwc", 1,
                 {{{3, 2, 5, 3}, {3, 4, 2, 3}}, {{2, 4, 3, 5}, {2, 5, 2, 5}}, {{4, 5, 2, 4}, {4, 3, 2, 4}}})};
}

std::vector<OperationCase> window_attention_cases() {
  const auto one = [](std::string name, const Shape& window, const Shape& wrapped,
                      const std::vector<std::vector<Shape>>& shapes) {
    return make_case(std::move(name), shapes, [=](Tape& tape, const std::vector<Variable>& x) {
      return window_attention(tape, x[0], x[1], {2, window, wrapped, kDropout, "path"});
    });
  };
  return {one("bwc", {3}, {1}, {{{3, 12, 3, 10}, {5, 5}}, {{2, 9, 3, 4}, {5, 2}}, {{4, 15, 3, 6}, {5, 3}}}),
          one("bhwc", {2, 3}, {1, 0},
              {{{3, 4, 9, 3, 6}, {15, 3}}, {{2, 8, 6, 3, 4}, {15, 2}}, {{4, 6, 12, 3, 8}, {15, 4}}})};
}

std::vector<OperationCase> rotary_cases() {
  const auto one = [](std::string name, std::int64_t head_size,
                      const std::vector<std::vector<Shape>>& shapes) {
    return make_case(std::move(name), shapes, [head_size](Tape& tape, const std::vector<Variable>& x) {
      return rotary(tape, x[0], head_size, 100.0);
    });
  };
  return {one("bwc", 2, {{{3, 4, 3, 10}}, {{2, 7, 3, 4}}, {{4, 2, 3, 6}}}),
          one("bhwc", 4, {{{3, 2, 5, 3, 12}}, {{2, 4, 3, 3, 20}}, {{4, 5, 2, 3, 8}}})};
}

}  // namespace jigsaw
