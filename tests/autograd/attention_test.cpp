// Gradients of attention in float64: against central differences on one rank, and against one rank on meshes
// that cut samples, heads and tokens, along one axis and along several.
#include <gtest/gtest.h>

#include "autograd/gradient_case.h"
#include "base/text.h"

namespace jigsaw {
namespace {

using testing::check_gradients;
using testing::GradientCase;
using testing::Tensors;
using Variables = GradientCase::Variables;

GradientCase self(const Shape& qkv, std::int64_t head_size, double dropout = 0) {
  return {concat("attention ", qkv, ", heads of ", head_size, dropout > 0 ? ", dropout" : ""),
          {qkv},
          {},
          [=](Tape& tape, const Variables& inputs, const Variables&) {
            return attention(tape, inputs[0], {head_size, dropout, "path"});
          }};
}

GradientCase cross(const Shape& q, const Shape& kv, std::int64_t head_size, double dropout = 0) {
  return {concat("attention of ", q, " to ", kv, ", heads of ", head_size),
          {q, kv},
          {},
          [=](Tape& tape, const Variables& inputs, const Variables&) {
            return cross_attention(tape, inputs[0], inputs[1], {head_size, dropout, "path"});
          }};
}

TEST(AttentionGradient, OfOneGrid) {
  check_gradients(self({2, 3, 4, 3, 6}, 2));
  check_gradients(self({1, 5, 3, 4}, 2));
  check_gradients(self({1, 2, 3, 2, 3, 3}, 1));
  check_gradients(self({3, 2, 3, 3, 5}, 5, 0.3));
  check_gradients(self({2, 7, 3, 6}, 3, 0.2));
}

TEST(AttentionGradient, OfTwoGrids) {
  check_gradients(cross({2, 3, 4, 6}, {2, 2, 5, 2, 6}, 2));
  check_gradients(cross({1, 3, 2, 4}, {1, 5, 2, 4}, 2, 0.3));
  check_gradients(cross({2, 5, 4}, {2, 2, 3, 2, 4}, 4));
}

GradientCase windows(const Shape& qkv, const Shape& table, const Shape& window, const Shape& wrapped,
                     double dropout) {
  GradientCase one{
      concat("window_attention ", qkv, " by ", window, dropout > 0 ? ", dropout" : ""),
      {qkv},
      {table},
      [=](Tape& tape, const Variables& inputs, const Variables& parameters) {
        return window_attention(tape, inputs[0], parameters[0], {2, window, wrapped, dropout, "path"});
      }};
  one.units = {window.begin(), window.end()};
  return one;
}

/// Every combination of axes; a head that cannot be cut leaves only the ring over one or two domain axes.
TEST(AttentionGradient, OnMeshesOfSeveralAxes) {
  for (const GradientCase& what :
       {self({1, 5, 7, 3, 4}, 4), self({1, 5, 7, 3, 4}, 4, 0.3), self({2, 3, 5, 3, 6}, 2),
        self({1, 3, 4, 3, 10}, 2), cross({1, 5, 4, 3}, {1, 4, 3, 2, 3}, 3)}) {
    const Tensors one = testing::gradients_on_mesh({1, 1}, 1, what);
    for (const auto& [h, w, tensor] : std::vector<std::array<int, 3>>{
             {2, 1, 1}, {2, 2, 1}, {3, 2, 1}, {1, 4, 1}, {2, 1, 2}, {2, 2, 2}, {1, 2, 3}, {8, 1, 1}}) {
      SCOPED_TRACE(concat(what.name, " on domain ", h, " × ", w, ", tensor ", tensor));
      const Tensors many = testing::gradients_on_mesh({h, w}, tensor, what);
      ASSERT_EQ(one.size(), many.size());
      for (const auto& [name, values] : one) {
        EXPECT_LE(testing::relative_difference(many.at(name), values), 1e-12) << name;
      }
    }
  }
}

TEST(AttentionGradient, RotaryPositions) {
  const auto rotated = [](const Shape& qkv, std::int64_t head_size) {
    return GradientCase{
        concat("rotary ", qkv), {qkv}, {}, [=](Tape& tape, const Variables& inputs, const Variables&) {
          return rotary(tape, inputs[0], head_size, 100.0);
        }};
  };
  check_gradients(rotated({2, 3, 4, 3, 8}, 4));
  check_gradients(rotated({1, 5, 3, 6}, 6));
  check_gradients(rotated({1, 2, 3, 2, 3, 12}, 12));
}

TEST(AttentionGradient, InsideWindows) {
  check_gradients(windows({2, 4, 6, 3, 6}, {15, 3}, {2, 3}, {1, 0}, 0));
  check_gradients(windows({2, 4, 6, 3, 6}, {15, 3}, {2, 3}, {1, 0}, 0.3));
  check_gradients(windows({1, 6, 3, 4}, {5, 2}, {3}, {2}, 0.2));
}

/// Masks change from step to step of a rollout, and backward comes after the last: its masks are those of
/// each step's forward pass.
TEST(AttentionGradient, DropoutOfARollout) {
  const auto in_two_steps = [](const GradientCase& one) {
    GradientCase two = one;
    two.run = [once = one.run](Tape& tape, const Variables& inputs, const Variables& parameters) {
      tape.random().position.rollout = 0;
      const Variable first = once(tape, inputs, parameters);
      tape.random().position.rollout = 1;
      const Variable second = once(tape, inputs, parameters);
      return pointwise(tape, first, {.letters = "bwc", .residual = second});
    };
    return two;
  };
  check_gradients(in_two_steps(self({2, 6, 3, 4}, 2, 0.4)), false);
  check_gradients(in_two_steps(windows({2, 6, 3, 4}, {5, 2}, {3}, {1}, 0.4)), false);
}

TEST(AttentionGradient, HeadsMustFillTheChannels) {
  EXPECT_THROW(testing::gradients_on_mesh({1, 1}, 1, self({1, 2, 2, 3, 5}, 2)), ShapeError);
  EXPECT_THROW(testing::gradients_on_mesh({1, 1}, 1, self({1, 2, 2, 2, 4}, 2)), ShapeError);
}

}  // namespace
}  // namespace jigsaw
