#include "kernels/pooling.h"

#include <algorithm>
#include <array>

#include "autograd/neighbourhood.h"
#include "autograd/operation.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/field_extents.h"
#include "kernels/pointwise.h"

namespace jigsaw {

namespace {

/// The part of a tile's region that holds points, relative to the region.
Box valid_points(const Tile& tile, const IndexMap& map, const Shape& x) {
  const Box region = space_of(tile.region);
  Box valid = Box::whole(region.extent);
  for (const DimMap& dim : map.dims) {
    const int i = dim.dim - 1;
    std::int64_t begin = region.begin[i], end = region.end(i);
    if (dim.low == Edge::kZero) begin = std::max<std::int64_t>(begin, 0);
    if (dim.high == Edge::kZero) end = std::min(end, x[dim.dim]);
    valid.begin[i] = std::min(begin - region.begin[i], region.extent[i]);
    valid.extent[i] = std::max<std::int64_t>(end - begin, 0);
  }
  return valid;
}

Signature field_signature(Operation operation, const std::string& what, const Variable& x,
                          const Shape& output, const IndexMap& map) {
  Signature signature{operation, concat(name(operation), what), {x.shape()}, {output}, {}, 0, {false}};
  const Letters dims = field_dims(x.shape().rank() - 2, {'c'});
  signature.rows = rows_of_letters({dims}, dims);
  set_halos(signature, map);
  return signature;
}

}  // namespace

Variable pooling(Tape& tape, const Variable& x, PoolingKind kind, const Window& window,
                 const Padding& padding, const Shape& space, bool count_padding) {
  std::vector<Reads> reads;
  for (int i = 0; i < space.rank(); ++i) {
    reads.push_back(Reads::window(window.extent[i], window.stride[i], window.dilation[i],
                                  padding.dims.at(static_cast<std::size_t>(i)).low));
  }
  const Shape output = field_shape(x.shape()[0], space, x.shape().back());
  const IndexMap map = field_map(x.shape(), reads, padding, space);
  const bool maximum = kind == PoolingKind::kMax;
  Signature signature = field_signature(Operation::kPooling, maximum ? " max" : " average", x, output, map);
  if (!maximum && map.crossing.offset.empty()) signature.rows.push_back(row_linear_in({true}));
  signature.forward_flops = static_cast<double>(output.count() * window.extent.count());
  const auto pooling_of = [window, count_padding, map, field = x.shape()](const Tile& tile) {
    return Pooling{window, valid_points(tile, map, field), count_padding};
  };
  signature.keeps_findings = maximum;
  NeighbourhoodKernels kernels;
  if (maximum) {
    // Which points won is all that backward needs.
    const auto winners = std::make_shared<Array>();
    kernels.forward = [&tape, pooling_of, winners](const Array& region, const Tile& tile) {
      return max_pool_forward(tape.context(), pooling_of(tile), region, *winners);
    };
    kernels.backward = [&tape, pooling_of, winners](const Array& dy, const Tile& tile) {
      return max_pool_backward(tape.context(), pooling_of(tile), dy, *winners, space_of(tile.region).extent);
    };
  } else {
    kernels.forward = [&tape, pooling_of](const Array& region, const Tile& tile) {
      return average_pool_forward(tape.context(), pooling_of(tile), region);
    };
    kernels.backward = [&tape, pooling_of](const Array& dy, const Tile& tile) {
      return average_pool_backward(tape.context(), pooling_of(tile), dy, space_of(tile.region).extent);
    };
  }
  return neighbourhood(tape, x, signature, map, kernels);
}

Variable global_average(Tape& tape, const Variable& x) {
  const int dims = x.shape().rank() - 2;
  const Shape space = space_of(x.shape()), point = Shape::filled(dims, 1);
  Letters input = field_dims(dims, {'c'}), result = input;
  for (int i = 0; i < dims; ++i) result[static_cast<std::size_t>(1 + i)].letter = '1';
  Signature signature{Operation::kGlobalAverage,
                      "global_average",
                      {x.shape()},
                      {field_shape(x.shape()[0], point, x.shape().back())},
                      rows_of_letters({input}, result),
                      static_cast<double>(x.shape().count()),
                      {false}};
  signature.rows.push_back(row_linear_in({true}));
  if (tape.tracing()) return tape.trace(signature, {x});
  const Decision& decision = tape.decide(signature);
  Context& context = tape.context();
  const Shape field = tape.rank().box({x.shape(), decision.inputs[0]}).extent, piece = space_of(field);
  // The mean of the points here, and their share of all points.
  const double share = static_cast<double>(piece.count()) / static_cast<double>(space.count());
  const Pooling whole{{piece, point, point}, Box::whole(piece), false};
  const DType type = tape.gradient_type(decision.row_outputs[0]);
  const bool records = tape.records({x});
  Variable y = tape.result(signature, decision, records, [&] {
    const Array here = tape.bring(x, decision.inputs[0]).piece;
    if (share == 0) return filled(context, field_shape(field[0], point, field.back()), type, 0);
    Array mean = cast(context, average_pool_forward(context, whole, here), type);
    if (share < 1) scale(context, mean, share);
    return mean;
  });
  if (!records) return y;
  tape.record([&tape, &decision, whole, piece, field, share, target = GradientTarget(x), slot = y.slot()] {
    if (!slot->gradient.defined()) return;
    const Array dy = tape.bring(slot->take(), dual(decision.row_outputs[0])).piece;
    target.give(tape.rank(), tape.gradient_placements(decision, 0), [&] {
      if (share == 0) return filled(tape.context(), field, dy.dtype(), 0.0);
      Array dx = average_pool_backward(tape.context(), whole, dy, piece);
      if (share < 1) scale(tape.context(), dx, share);
      return dx;
    });
  });
  return y;
}

Variable resample(Tape& tape, const Variable& x, Interpolation interpolation, const Shape& grid,
                  const Shape& space, const Padding& edges) {
  Resampling resampling;
  resampling.interpolation = interpolation;
  resampling.input = space_of(x.shape());
  resampling.output = grid;
  Padding beyond = edges;
  std::vector<Reads> reads;
  for (int i = 0; i < space.rank(); ++i) {
    const auto s = static_cast<std::size_t>(i);
    Ends& ends = beyond.dims.at(s);
    resampling.clamped[s] = ends.low_edge == Edge::kReplicate && ends.high_edge == Edge::kReplicate;
    if (resampling.clamped[s]) ends.low_edge = ends.high_edge = Edge::kNone;
    const std::int64_t in = resampling.input[i], out = grid[i];
    reads.push_back(interpolation == Interpolation::kNearest ? Reads{in, out, 0, 0}
                                                             : Reads{2 * in, 2 * out, in - out, in + out});
  }
  const Shape output = field_shape(x.shape()[0], space, x.shape().back());
  const IndexMap map = field_map(x.shape(), reads, beyond, space);
  Signature signature = field_signature(Operation::kResample, concat(" to ", grid), x, output, map);
  if (map.crossing.offset.empty()) signature.rows.push_back(row_linear_in({true}));
  signature.remade = true;
  signature.forward_flops = interpolation == Interpolation::kNearest
                                ? 0.0
                                : static_cast<double>(output.count()) *
                                      static_cast<double>(2U << static_cast<unsigned>(space.rank()));
  const auto resampling_of = [resampling](const Tile& tile) {
    Resampling here = resampling;
    const Box source = space_of(tile.region);
    here.source_extent = source.extent;
    for (int i = 0; i < source.begin.rank(); ++i) {
      here.source_begin[static_cast<std::size_t>(i)] = source.begin[i];
    }
    here.target = space_of(tile.outputs);
    return here;
  };
  return neighbourhood(tape, x, signature, map,
                       {[&tape, resampling_of](const Array& region, const Tile& tile) {
                          return resample_forward(tape.context(), resampling_of(tile), region);
                        },
                        [&tape, resampling_of](const Array& dy, const Tile& tile) {
                          return resample_backward(tape.context(), resampling_of(tile), dy);
                        }});
}

Variable pad(Tape& tape, const Variable& x, const Padding& padding) {
  std::vector<Reads> reads;
  Shape space = space_of(x.shape());
  for (int i = 0; i < space.rank(); ++i) {
    const Ends& ends = padding.dims.at(static_cast<std::size_t>(i));
    reads.push_back(Reads::shifted(-ends.low));
    space[i] += ends.low + ends.high;
    require(space[i] >= 0, "cropping leaves nothing");
  }
  const Shape output = field_shape(x.shape()[0], space, x.shape().back());
  const IndexMap map = field_map(x.shape(), reads, padding, space);
  const auto same = [](const Array& array, const Tile&) { return array; };
  Signature signature = field_signature(Operation::kPad, "", x, output, map);
  if (map.crossing.offset.empty()) signature.rows.push_back(row_linear_in({true}));
  signature.remade = true;
  return neighbourhood(tape, x, signature, map, {same, same});
}

}  // namespace jigsaw
