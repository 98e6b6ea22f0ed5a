// Gradients of every operation in float64: against central differences on one rank, and against one rank on
// meshes that cut each of its letters.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "autograd/field_operations.h"
#include "autograd/gradient_case.h"
#include "base/text.h"
#include "support/test_ranks.h"

namespace jigsaw {
namespace {

using testing::check_gradients;
using testing::GradientCase;
using testing::Tensors;
using Variables = GradientCase::Variables;

/// A contraction of an input with a parameter.
GradientCase weighted(const std::string& spec, const Shape& x, const Shape& weight) {
  return {spec, {x}, {weight}, [spec](Tape& tape, const Variables& inputs, const Variables& parameters) {
            return contract(tape, spec, inputs[0], parameters[0]);
          }};
}

/// A contraction of two inputs.
GradientCase product(const std::string& spec, const Shape& a, const Shape& b) {
  return {spec, {a, b}, {}, [spec](Tape& tape, const Variables& inputs, const Variables&) {
            return contract(tape, spec, inputs[0], inputs[1]);
          }};
}

TEST(Gradient, Linear) {
  check_gradients(weighted("bhwk,nk->bhwn", {2, 3, 4, 5}, {7, 5}));
  check_gradients(weighted("bhwcp,ncp->bhwn", {2, 2, 3, 2, 4}, {5, 2, 4}));
  check_gradients(weighted("bhwn,cpn->bhwcp", {2, 3, 2, 5}, {2, 4, 5}));
  check_gradients(weighted("bk,nk->bn", {4, 3}, {5, 3}));
}

TEST(Gradient, TokenMixing) {
  check_gradients(weighted("bhwc,thw->btc", {2, 3, 4, 3}, {5, 3, 4}));
  check_gradients(weighted("btc,hwt->bhwc", {2, 5, 3}, {3, 4, 5}));
  check_gradients(weighted("bdhwc,tdhw->btc", {1, 2, 3, 2, 2}, {3, 2, 3, 2}));
}

TEST(Gradient, ContractionsWithBatchLetters) {
  check_gradients(product("bqhd,bkhd->bhqk", {2, 4, 2, 3}, {2, 5, 2, 3}));
  check_gradients(product("bhqk,bkhd->bqhd", {2, 2, 4, 5}, {2, 5, 2, 3}));
}

TEST(Gradient, Pointwise) {
  const Shape shape{2, 3, 4, 5};
  const std::map<std::string, Shape> biases = {
      {"", {}}, {"c", {5}}, {"hw", {3, 4}}, {"h", {3}}, {"hwc", {3, 4, 5}}};
  for (const auto& [letters, bias_shape] : biases) {
    for (const Activation activation : {Activation::kNone, Activation::kGelu}) {
      for (const double dropout : {0.0, 0.3}) {
        for (const bool residual : {false, true}) {
          GradientCase one{concat("bias \"", letters, "\"", activation == Activation::kGelu ? ", gelu" : "",
                                  dropout > 0 ? ", dropout" : "", residual ? ", residual" : "")};
          one.inputs.assign(residual ? 2 : 1, shape);
          if (!letters.empty()) one.parameters = {bias_shape};
          one.run = [=, text = letters](Tape& tape, const Variables& inputs, const Variables& parameters) {
            const Variable bias = text.empty() ? Variable() : parameters[0];
            const Variable added = residual ? inputs[1] : Variable();
            return pointwise(tape, inputs[0], {"bhwc", bias, text, added, activation, dropout, "path"});
          };
          check_gradients(one);
        }
      }
    }
  }
}

TEST(Gradient, Prelu) {
  for (const char letter : {'b', 'h', 'c'}) {
    const std::int64_t slopes = letter == 'b' ? 2 : letter == 'h' ? 3 : 5;
    check_gradients({concat("prelu, a slope for each ", letter),
                     {{2, 3, 2, 5}},
                     {{slopes}},
                     [letter](Tape& tape, const Variables& inputs, const Variables& parameters) {
                       return prelu(tape, "bhwc", inputs[0], parameters[0], letter);
                     }});
  }
}

TEST(Gradient, Multiply) {
  check_gradients({"multiply",
                   {{2, 3, 2, 5}, {2, 3, 2, 5}},
                   {},
                   [](Tape& tape, const Variables& inputs, const Variables&) {
                     return multiply(tape, "bhwc", inputs[0], inputs[1]);
                   }});
}

TEST(Gradient, ContractionWithAFixedFactor) {
  const auto values = [](const Box& box) {
    std::vector<double> result;
    for (std::int64_t i = box.begin[0]; i < box.end(0); ++i) {
      for (std::int64_t j = box.begin[1]; j < box.end(1); ++j) {
        for (std::int64_t k = box.begin[2]; k < box.end(2); ++k)
          result.push_back(std::sin(1.0 + static_cast<double>(i * i + 3 * j + 7 * k)));
      }
    }
    return result;
  };
  const auto factor = std::make_shared<const FixedFactor>(FixedFactor{"test", {2, 3, 4}, values});
  check_gradients(
      {"contract_fixed", {{2, 5, 3, 2}}, {}, [factor](Tape& tape, const Variables& inputs, const Variables&) {
         return contract_fixed(tape, "bhwc,rwm->brhmc", inputs[0], factor);
       }});
}

TEST(Gradient, Activations) {
  for (const Activation activation : {Activation::kRelu, Activation::kSilu, Activation::kTanh,
                                      Activation::kSigmoid, Activation::kMish, Activation::kLeakyRelu}) {
    check_gradients({concat("activation ", static_cast<int>(activation)),
                     {{2, 3, 2, 5}},
                     {{5}},
                     [activation](Tape& tape, const Variables& inputs, const Variables& parameters) {
                       return pointwise(tape, inputs[0], {"bhwc", parameters[0], "c", {}, activation});
                     }});
  }
}

TEST(Gradient, DropPath) {
  check_gradients(
      {"drop path", {{5, 3, 4}, {5, 3, 4}}, {}, [](Tape& tape, const Variables& inputs, const Variables&) {
         Pointwise drop{"bwc", {}, "", inputs[1], Activation::kNone, 0.5, "path"};
         drop.whole_samples = true;
         return pointwise(tape, inputs[0], drop);
       }});
}

TEST(Gradient, DropoutDropsAShareAndScalesTheRest) {
  const GradientCase dropout{
      "dropout", {{4, 40, 40}}, {}, [](Tape& tape, const Variables& inputs, const Variables&) {
        return pointwise(tape, inputs[0], {"bwc", {}, "", {}, Activation::kNone, 0.25, "path"});
      }};
  const Tensors gradients = testing::gradients_on(2, false, dropout, {});
  const Tensors values = dropout.values({4, 40, 40});
  double kept = 0;
  for (std::size_t i = 0; i < 6400; ++i) {
    const double x = values.at("input.0")[i], y = gradients.at("output")[i];
    EXPECT_TRUE(y == 0 || std::abs(y - x / 0.75) < 1e-12);
    kept += y != 0 ? 1 : 0;
  }
  EXPECT_NEAR(kept / 6400, 0.75, 0.03);
}

GradientCase norm(const std::string& letters, const Shape& shape, double eps) {
  return {concat("layer_norm ", letters, " ", shape),
          {shape},
          {{shape.back()}, {shape.back()}},
          [=](Tape& tape, const Variables& inputs, const Variables& parameters) {
            return layer_norm(tape, letters, inputs[0], parameters[0], parameters[1], eps);
          }};
}

TEST(Gradient, LayerNorm) {
  check_gradients(norm("bhwc", {2, 3, 2, 5}, 1e-5));
  check_gradients(norm("bwc", {3, 4, 7}, 1e-5));
  check_gradients(norm("bc", {4, 6}, 1e-5));
  // A third rank has no channel; a large eps keeps rows of two from being signs.
  check_gradients(norm("bwc", {3, 2, 2}, 1.0));
}

TEST(Gradient, RmsNorm) {
  for (const auto& [letters, shape] :
       {std::pair<std::string, Shape>("bhwc", {2, 3, 2, 5}), {"bwc", {3, 2, 2}}}) {
    check_gradients({concat("rms_norm ", letters),
                     {shape},
                     {{shape.back()}},
                     [text = letters](Tape& tape, const Variables& inputs, const Variables& parameters) {
                       return rms_norm(tape, text, inputs[0], parameters[0], 1e-3);
                     }});
  }
}

TEST(Gradient, GroupNorm) {
  // Groups of the whole, of several channels that a cut parts, and of one; a third rank may have no channel.
  for (const auto& [groups, shape] : {std::pair<std::int64_t, Shape>(1, {2, 3, 2, 5}),
                                      {2, {2, 3, 4}},
                                      {4, {1, 2, 3, 2, 4}},
                                      {2, {3, 1, 2, 2}},
                                      {2, {2, 2, 2, 6}}}) {
    check_gradients({concat("group_norm ", groups, " of ", shape),
                     {shape},
                     {{shape.back()}, {shape.back()}},
                     [n = groups](Tape& tape, const Variables& inputs, const Variables& parameters) {
                       return group_norm(tape, inputs[0], parameters[0], parameters[1], n, 0.1);
                     }});
  }
  for (const auto& [activation, name] : {std::pair(Activation::kGelu, "gelu"), {Activation::kTanh, "tanh"}}) {
    const Shape shape{2, 3, 2, 4};
    check_gradients({concat("group_norm 2 of ", shape, ", ", name),
                     {shape},
                     {{shape.back()}, {shape.back()}},
                     [as = activation](Tape& tape, const Variables& inputs, const Variables& parameters) {
                       return group_norm(tape, inputs[0], parameters[0], parameters[1], 2, 0.1, as);
                     }});
  }
}

/// A vector that is the same on all ranks and has no gradient.
Variable constant(Tape& tape, std::int64_t count, double value) {
  const Layout layout{{count}, {}};
  if (tape.tracing()) return Variable::traced(layout, -1);
  return Variable({filled(tape.context(), {count}, DType::kFloat64, value), layout}, false);
}

TEST(Gradient, BatchNorm) {
  for (const bool training : {true, false}) {
    for (const Shape& shape : {Shape{3, 2, 2, 3}, Shape{2, 3, 4}, Shape{1, 2, 3, 2, 2}}) {
      check_gradients({concat(training ? "batch_norm " : "batch_norm in evaluation ", shape),
                       {shape},
                       {{shape.back()}, {shape.back()}},
                       [=](Tape& tape, const Variables& inputs, const Variables& parameters) {
                         tape.set_training(training);
                         const Variable mean = constant(tape, shape.back(), 0.3),
                                        variance = constant(tape, shape.back(), 2.0);
                         return batch_norm(tape, inputs[0], parameters[0], parameters[1], mean, variance, 0.1,
                                           shape.rank() == 4 ? Activation::kSilu : Activation::kNone);
                       }});
    }
  }
}

GradientCase patches(const Shape& field, const Shape& patch) {
  return {concat("patchify ", field, " by ", patch),
          {field},
          {},
          [patch](Tape& tape, const Variables& inputs, const Variables&) {
            return patchify(tape, inputs[0], patch);
          }};
}

GradientCase fields(const Shape& patched, const Shape& patch, const Shape& space) {
  GradientCase one{concat("unpatchify ", space, " by ", patch),
                   {patched},
                   {},
                   [=](Tape& tape, const Variables& inputs, const Variables&) {
                     return unpatchify(tape, inputs[0], patch, space);
                   }};
  one.units = {patch.begin(), patch.end()};
  return one;
}

TEST(Gradient, Patches) {
  check_gradients(patches({2, 7, 10, 3}, {3, 4}));
  check_gradients(patches({1, 6, 8, 2}, {3, 4}));
  check_gradients(patches({2, 9, 2}, {4}));
  check_gradients(patches({1, 5, 4, 3, 2}, {2, 3, 2}));
  check_gradients(fields({2, 3, 3, 3, 12}, {3, 4}, {7, 10}));
  check_gradients(fields({1, 2, 2, 2, 12}, {3, 4}, {6, 8}));
  check_gradients(fields({2, 3, 2, 4}, {4}, {9}));
  check_gradients(fields({1, 3, 2, 2, 2, 12}, {2, 3, 2}, {5, 4, 3}));
}

/// norm, linear, GELU, linear, residual: as in a transformer.
Variable half_block(Tape& tape, const Variables& inputs, const Variables& p) {
  const Variable x = layer_norm(tape, "bwc", inputs[0], p[0], p[1], 1e-5);
  const Variable hidden = pointwise(tape, contract(tape, "bwc,nc->bwn", x, p[2]),
                                    {"bwn", p[3], "n", {}, Activation::kGelu, 0.2, "hidden"});
  return pointwise(tape, contract(tape, "bwn,cn->bwc", hidden, p[4]), {"bwc", {}, "", inputs[0]});
}

GradientCase half_block_case() {
  return {"half block", {{2, 4, 5}}, {{5}, {5}, {7, 5}, {7}, {5, 7}}, half_block};
}

TEST(Gradient, ChainWithAResidual) {
  check_gradients(half_block_case(), false);
}

TEST(Gradient, BlockUsedThreeTimesAddsUp) {
  GradientCase rollout = half_block_case();
  rollout.name = "rollout";
  rollout.times = 3;
  check_gradients(rollout, false);
  rollout.recompute = true;
  check_gradients(rollout, false);
}

TEST(Gradient, ParameterAndValueUsedTwiceInABlock) {
  check_gradients({"twice",
                   {{2, 4, 5}},
                   {{5, 5}},
                   [](Tape& tape, const Variables& inputs, const Variables& p) {
                     const Variable once = contract(tape, "bwk,nk->bwn", inputs[0], p[0]);
                     const Variable twice = contract(tape, "bwk,nk->bwn", once, p[0]);
                     return pointwise(tape, twice, {"bwc", {}, "", once, Activation::kGelu});
                   }},
                  false);
}

TEST(Gradient, RecomputedBlocksGiveTheSameBits) {
  for (const int ranks : {1, 2, 3}) {
    GradientCase what = half_block_case();
    what.times = 2;
    const Tensors kept = testing::gradients_on(ranks, true, what, {});
    what.recompute = true;
    EXPECT_EQ(testing::gradients_on(ranks, true, what, {}), kept);
  }
}

/// A step of a block on one rank: its gradients, and how many FLOPs the kernels counted; without gradients,
/// too.
struct Work {
  Tensors gradients;
  double step = 0, forward = 0;
};

Work work_of(const GradientCase& what, bool recompute) {
  Work work;
  testing::run_test_ranks(1, [&](Communicator& world) {
    Mesh mesh(world, 1, {1, 1}, 1);
    GradientCase on = what;
    on.recompute = recompute;
    testing::GradientRun run(Rank{world.context(), mesh}, on);
    const Tensors values = on.values(run.output());
    const Tally& tally = world.context().tally();
    const double before = tally.flops;
    work.gradients = run.gradients(values);
    work.step = tally.flops - before;
    run.weighted_sum(values);
    work.forward = tally.flops - before - work.step;
  });
  return work;
}

/// FLOPs of a recomputed step beyond those of one that keeps all.
double computed_again(const GradientCase& what) {
  const Work kept = work_of(what, false), recomputed = work_of(what, true);
  EXPECT_EQ(recomputed.gradients, kept.gradients);
  return recomputed.step - kept.step;
}

Variable gelu(Tape& tape, const Variable& x) {
  return pointwise(tape, x, {"bhwn", {}, "", {}, Activation::kGelu});
}
Variable linear(Tape& tape, const Variable& x, const Variable& weight) {
  return contract(tape, "bhwk,nk->bhwn", x, weight);
}

constexpr std::int64_t kPoints = 2 * 3 * 4;
/// A linear layer's, of so many channels to so many.
double linear_flops(std::int64_t from, std::int64_t to) {
  return 2.0 * kPoints * static_cast<double>(from * to);
}

/// Of three linear layers with a GELU between them a recomputed block runs two again, and the GELU that the
/// second reads: that which only the last one's backward reads is formed there, as where all is kept, and the
/// last one's result is read by nobody.
TEST(RecomputedBlock, RunsNothingAgainThatBackwardFormsByItself) {
  const GradientCase three{"three linear layers",
                           {{2, 3, 4, 5}},
                           {{7, 5}, {7, 7}, {3, 7}},
                           [](Tape& tape, const Variables& inputs, const Variables& p) {
                             const Variable first = gelu(tape, linear(tape, inputs[0], p[0]));
                             const Variable second = gelu(tape, linear(tape, first, p[1]));
                             return linear(tape, second, p[2]);
                           }};
  const double layers = linear_flops(5, 7) + linear_flops(7, 7);
  const double each_gelu = (work_of(three, false).forward - layers - linear_flops(7, 3)) / 2;
  ASSERT_GT(each_gelu, 0);
  EXPECT_EQ(computed_again(three), layers + each_gelu);
}

/// What is joined is not kept, but formed again of its parts, of which one is a result: that runs again.
TEST(RecomputedBlock, RunsWhatIsReadToFormAResultAgain) {
  EXPECT_EQ(computed_again({"joined",
                            {{2, 3, 4, 5}},
                            {{6, 5}, {3, 11}},
                            [](Tape& tape, const Variables& inputs, const Variables& p) {
                              const Variable part = linear(tape, inputs[0], p[0]);
                              return linear(tape, concatenate(tape, inputs[0], part), p[1]);
                            }}),
            linear_flops(5, 6));
}

/// Of a norm whose result backward forms again its statistics are found again, for that and for gradients.
TEST(RecomputedBlock, FindsTheStatisticsOfANormAndDoesNotApplyThem) {
  const GradientCase norm{"norm",
                          {{2, 3, 4, 5}},
                          {{6, 5}, {6}, {6}, {3, 6}},
                          [](Tape& tape, const Variables& inputs, const Variables& p) {
                            const Variable x = linear(tape, inputs[0], p[0]);
                            return linear(tape, group_norm(tape, x, p[1], p[2], 2, 0.1), p[3]);
                          }};
  const double again = computed_again(norm);
  EXPECT_GT(again, linear_flops(5, 6));
  EXPECT_LT(again, work_of(norm, false).forward - linear_flops(6, 3));
}

}  // namespace
}  // namespace jigsaw
