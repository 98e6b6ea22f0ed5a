// Gradients of operations on neighbourhoods: against central differences, and on every rule against one rank.
#include <gtest/gtest.h>

#include "autograd/field_operations.h"
#include "autograd/gradient_case.h"
#include "base/text.h"

namespace jigsaw {
namespace {

using testing::check_gradients;
using testing::GradientCase;
using Variables = GradientCase::Variables;

Padding all_around(int dims, std::int64_t points, Edge edge = Edge::kZero) {
  return {std::vector<Ends>(static_cast<std::size_t>(dims), {points, points, edge, edge})};
}

Window window(const Shape& extent, std::int64_t stride = 1, std::int64_t dilation = 1) {
  return {extent, Shape::filled(extent.rank(), stride), Shape::filled(extent.rank(), dilation)};
}

GradientCase convolved(const std::string& name, const Shape& x, const Shape& weight, const Window& window,
                       std::int64_t groups, const Padding& padding, bool bias = false) {
  GradientCase all{concat("convolution ", name),
                   {x},
                   {weight},
                   [=](Tape& tape, const Variables& inputs, const Variables& parameters) {
                     return convolution(tape, inputs[0], parameters[0], bias ? parameters[1] : Variable(),
                                        window, groups, padding);
                   }};
  if (bias) all.parameters.push_back({weight[0]});
  return all;
}

TEST(FieldGradient, Convolution) {
  check_gradients(convolved("3x3", {2, 5, 4, 3}, {4, 3, 3, 3}, window({3, 3}), 1, all_around(2, 1)));
  check_gradients(convolved("unpadded", {1, 7, 5, 2}, {3, 2, 3, 2}, window({3, 2}), 1, all_around(2, 0)));
  check_gradients(convolved("stride 2", {1, 7, 6, 2}, {3, 2, 3, 3}, window({3, 3}, 2), 1, all_around(2, 1)));
  check_gradients(
      convolved("dilation 2", {1, 6, 7, 2}, {2, 2, 3, 3}, window({3, 3}, 1, 2), 1, all_around(2, 2)));
  check_gradients(convolved("1-D", {2, 9, 2}, {3, 2, 5}, window({5}, 2), 1, all_around(1, 2)));
  check_gradients(convolved("3-D", {1, 4, 3, 3, 2}, {2, 2, 3, 3, 1}, window({3, 3, 1}), 1, all_around(3, 1)));
}

TEST(FieldGradient, ConvolutionWithABias) {
  check_gradients(convolved("3x3", {2, 5, 4, 3}, {4, 3, 3, 3}, window({3, 3}), 1, all_around(2, 1), true));
  check_gradients(
      convolved("far into zeros", {1, 3, 2, 2}, {3, 2, 1, 1}, window({1, 1}, 2), 1, all_around(2, 2), true));
  check_gradients(
      convolved("2 groups", {1, 4, 4, 6}, {4, 3, 3, 3}, window({3, 3}), 2, all_around(2, 1), true));
}

TEST(FieldGradient, ConvolutionInGroups) {
  check_gradients(convolved("2 groups", {1, 4, 4, 6}, {4, 3, 3, 3}, window({3, 3}), 2, all_around(2, 1)));
  check_gradients(convolved("depthwise", {2, 4, 3, 3}, {6, 1, 3, 3}, window({3, 3}), 3, all_around(2, 1)));
}

TEST(FieldGradient, ConvolutionWithEveryEdge) {
  for (const Edge edge : {Edge::kReflect, Edge::kReplicate, Edge::kPeriodic}) {
    check_gradients(convolved("edges", {1, 4, 5, 2}, {2, 2, 5, 3}, window({5, 3}), 1,
                              {{{2, 2, edge, edge}, {1, 1, edge, edge}}}));
  }
  for (const Edge pole : {Edge::kPolePoint, Edge::kPoleCell}) {
    const Padding globe{{{1, 1, pole, pole}, {1, 1, Edge::kPeriodic, Edge::kPeriodic}}, {{1, -1}, {0, 0.5}}};
    check_gradients(convolved("globe", {1, 5, 6, 2}, {2, 2, 3, 3}, window({3, 3}), 1, globe));
  }
}

TEST(FieldGradient, TransposedConvolution) {
  const auto transposed = [](const std::string& name, const Shape& x, const Shape& weight,
                             const Window& window, std::int64_t groups, const Shape& padding,
                             const Shape& space) {
    return GradientCase{concat("transposed convolution ", name),
                        {x},
                        {weight},
                        [=](Tape& tape, const Variables& inputs, const Variables& parameters) {
                          return transposed_convolution(tape, inputs[0], parameters[0], window, groups,
                                                        padding, space);
                        }};
  };
  check_gradients(transposed("2 by 2", {2, 3, 4, 3}, {3, 2, 2, 2}, window({2, 2}, 2), 1, {0, 0}, {6, 8}));
  check_gradients(transposed("cropped", {1, 3, 4, 2}, {2, 3, 2, 2}, window({2, 2}, 2), 1, {0, 0}, {5, 7}));
  check_gradients(
      transposed("overlapping", {1, 4, 3, 2}, {2, 3, 3, 3}, window({3, 3}, 2), 1, {1, 1}, {8, 5}));
  check_gradients(transposed("stride 1", {1, 5, 4, 2}, {2, 2, 3, 3}, window({3, 3}), 1, {1, 1}, {5, 4}));
  check_gradients(transposed("gaps", {1, 3, 3, 2}, {2, 2, 2, 2}, window({2, 2}, 3), 1, {0, 0}, {9, 8}));
  check_gradients(transposed("groups", {1, 3, 2, 4}, {4, 3, 2, 2}, window({2, 2}, 2), 2, {0, 0}, {6, 4}));
  check_gradients(
      transposed("3-D", {1, 2, 3, 2, 2}, {2, 2, 2, 2, 2}, window({2, 2, 2}, 2), 1, {0, 0, 0}, {4, 5, 4}));
}

GradientCase pooled(PoolingKind kind, const Shape& x, const Window& window, const Padding& padding,
                    const Shape& space, bool count_padding) {
  return {concat(kind == PoolingKind::kMax ? "max" : "average", " pooling of ", x),
          {x},
          {},
          [=](Tape& tape, const Variables& inputs, const Variables&) {
            return pooling(tape, inputs[0], kind, window, padding, space, count_padding);
          }};
}

TEST(FieldGradient, Pooling) {
  for (const PoolingKind kind : {PoolingKind::kMax, PoolingKind::kAverage}) {
    check_gradients(pooled(kind, {2, 6, 4, 3}, window({2, 2}, 2), all_around(2, 0), {3, 2}, false));
    // The last windows reach beyond the field (ceil_mode).
    check_gradients(pooled(kind, {1, 7, 5, 2}, window({2, 2}, 2), all_around(2, 0), {4, 3}, false));
    check_gradients(pooled(kind, {1, 7, 6, 2}, window({3, 3}, 2), all_around(2, 1), {4, 3}, true));
    check_gradients(
        pooled(kind, {1, 5, 6, 2}, window({3, 3}), all_around(2, 1, Edge::kPeriodic), {5, 6}, false));
    check_gradients(pooled(kind, {1, 3, 4, 3, 2}, window({2, 2, 2}, 2), all_around(3, 0), {2, 2, 2}, false));
  }
}

TEST(FieldGradient, GlobalAverage) {
  for (const Shape& shape : {Shape{2, 5, 4, 3}, Shape{1, 2, 3, 2, 2}}) {
    check_gradients({concat("global average of ", shape),
                     {shape},
                     {},
                     [](Tape& tape, const Variables& inputs, const Variables&) {
                       return global_average(tape, inputs[0]);
                     }});
  }
}

TEST(FieldGradient, Resampling) {
  const auto resampled = [](const Shape& x, Interpolation interpolation, const Shape& grid,
                            const Shape& space, Edge edge) {
    return GradientCase{concat("resampling of ", x, " to ", grid),
                        {x},
                        {},
                        [=](Tape& tape, const Variables& inputs, const Variables&) {
                          return resample(tape, inputs[0], interpolation, grid, space,
                                          all_around(space.rank(), 0, edge));
                        }};
  };
  for (const Interpolation interpolation :
       {Interpolation::kNearest, Interpolation::kNearestExact, Interpolation::kLinear}) {
    check_gradients(resampled({2, 3, 4, 2}, interpolation, {6, 8}, {6, 8}, Edge::kReplicate));
    check_gradients(resampled({1, 3, 4, 2}, interpolation, {6, 8}, {5, 7}, Edge::kReplicate));
    check_gradients(resampled({1, 5, 7, 2}, interpolation, {8, 4}, {8, 4}, Edge::kReplicate));
    check_gradients(resampled({1, 3, 4, 2}, interpolation, {6, 8}, {5, 8}, Edge::kPeriodic));
    check_gradients(resampled({1, 2, 3, 2, 2}, interpolation, {4, 6, 4}, {3, 5, 4}, Edge::kReplicate));
  }
}

TEST(FieldGradient, PaddingAndCropping) {
  const auto padded = [](const Shape& x, const Padding& padding) {
    return GradientCase{
        concat("padding of ", x), {x}, {}, [=](Tape& tape, const Variables& inputs, const Variables&) {
          return pad(tape, inputs[0], padding);
        }};
  };
  check_gradients(padded({1, 4, 5, 2}, {{{2, 1}, {0, 3}}}));
  check_gradients(padded({2, 6, 5, 2}, {{{0, -1}, {-2, -1}}}));
  check_gradients(padded({1, 5, 4, 2}, all_around(2, 3, Edge::kReflect)));
}

TEST(FieldGradient, Concatenation) {
  const auto joined = [](const Shape& x, const Shape& y) {
    return GradientCase{
        concat(x, " beside ", y), {x, y}, {}, [](Tape& tape, const Variables& inputs, const Variables&) {
          return concatenate(tape, inputs[0], inputs[1]);
        }};
  };
  check_gradients(joined({2, 3, 4, 5}, {2, 3, 4, 3}));
  check_gradients(joined({1, 4, 3, 1}, {1, 4, 3, 7}));
  check_gradients(joined({1, 4, 3, 4}, {1, 4, 3, 1}));
  check_gradients(joined({1, 2, 2, 3, 2}, {1, 2, 2, 3, 2}));
}

TEST(FieldGradient, Split) {
  /// One part alone: nobody used the others, whose gradients are zero.
  const auto part = [](const Shape& x, int dim, const std::vector<std::int64_t>& extents, std::size_t which) {
    return GradientCase{concat("part ", which, " of dim ", dim, " of ", x),
                        {x},
                        {},
                        [=](Tape& tape, const Variables& inputs, const Variables&) {
                          return split(tape, inputs[0], dim, extents)[which];
                        }};
  };
  check_gradients(part({2, 3, 4, 5}, 3, {2, 3}, 0));
  check_gradients(part({1, 5, 3, 2}, 1, {1, 3, 1}, 1));
  check_gradients(part({1, 2, 2, 3, 4}, 4, {3, 1}, 1));
}

/// Both parts are used, one of them twice, once in the layout of the other.
TEST(FieldGradient, PartsThatMeetAgain) {
  check_gradients({"parts",
                   {{1, 4, 5, 6}},
                   {{3, 2}},
                   [](Tape& tape, const Variables& inputs, const Variables& p) {
                     const Variables parts = split(tape, inputs[0], 3, {2, 4});
                     const Variable bent = pointwise(tape, parts[0], {"bhwc", {}, "", {}, Activation::kGelu});
                     const Variable joined = concatenate(tape, parts[1], bent);
                     return concatenate(tape, joined, contract(tape, "bhwk,nk->bhwn", parts[0], p[0]));
                   }},
                  false);
}

/// A block with two heads, of another number of channels each, and a third that nobody reads; kept and
/// recomputed.
TEST(FieldGradient, BlockOfSeveralOutputs) {
  for (const bool recompute : {false, true}) {
    GradientCase heads{concat("heads, recomputed ", recompute), {{2, 4, 5, 6}}, {{3, 6}, {4, 6}, {2, 6}}};
    heads.recompute = recompute;
    heads.heads = [](Tape& tape, const Variables& inputs, const Variables& p) {
      const Variable bent = pointwise(tape, inputs[0], {"bhwc", {}, "", {}, Activation::kGelu});
      Variables outputs;
      for (const Variable& weight : p) outputs.push_back(contract(tape, "bhwk,nk->bhwn", bent, weight));
      return outputs;
    };
    heads.run = [](Tape& tape, const Variables& outputs, const Variables&) {
      return concatenate(tape, outputs[1],
                         pointwise(tape, outputs[0], {"bhwc", {}, "", {}, Activation::kTanh}));
    };
    check_gradients(heads, false);
  }
}

/// Results that only a product keeps, of operations that form them again from halos; kept and recomputed.
TEST(FieldGradient, FieldsThatAreFormedAgain) {
  for (const bool recompute : {false, true}) {
    const auto product_of = [&](const std::string& name,
                                const std::function<Variable(Tape&, const Variable&)>& f) {
      GradientCase what{concat(name, ", recomputed ", recompute),
                        {{2, 6, 5, 3}},
                        {{4, 3}},
                        [f](Tape& tape, const Variables& inputs, const Variables& p) {
                          return contract(tape, "bhwk,nk->bhwn", f(tape, inputs[0]), p[0]);
                        }};
      what.recompute = recompute;
      return what;
    };
    check_gradients(
        product_of("resampled",
                   [](Tape& tape, const Variable& x) {
                     return resample(tape, x, Interpolation::kLinear, {12, 10}, {11, 10}, all_around(2, 0));
                   }),
        false);
    check_gradients(product_of("padded",
                               [](Tape& tape, const Variable& x) {
                                 return pad(tape, x, all_around(2, 1, Edge::kPeriodic));
                               }),
                    false);
    check_gradients(product_of("joined",
                               [](Tape& tape, const Variable& x) {
                                 const Variable up = resample(tape, x, Interpolation::kNearest, {12, 10},
                                                              {12, 10}, all_around(2, 0));
                                 return pad(tape, up, {{{-3, -3}, {-2, -3}}, {}});
                               }),
                    false);
  }
}

/// A level of a U-Net: down, convolved, up, beside what was there, with odd extents.
TEST(FieldGradient, ChainOfALevel) {
  check_gradients({"level",
                   {{1, 5, 7, 3}},
                   {{4, 3, 3, 3}, {4, 3, 2, 2}, {2, 6, 1, 1}, {4}},
                   [](Tape& tape, const Variables& inputs, const Variables& p) {
                     Variable x = pooling(tape, inputs[0], PoolingKind::kMax, window({2, 2}, 2),
                                          all_around(2, 0), {3, 4}, false);
                     x = convolution(tape, x, p[0], p[3], window({3, 3}), 1, all_around(2, 1));
                     x = pointwise(tape, x, {"bhwc", {}, "", {}, Activation::kGelu});
                     x = transposed_convolution(tape, x, p[1], window({2, 2}, 2), 1, {0, 0}, {5, 7});
                     return convolution(tape, concatenate(tape, inputs[0], x), p[2], {}, window({1, 1}), 1,
                                        all_around(2, 0));
                   }},
                  false);
}

}  // namespace
}  // namespace jigsaw
