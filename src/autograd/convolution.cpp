#include "kernels/convolution.h"

#include <algorithm>
#include <array>

#include "autograd/neighbourhood.h"
#include "autograd/operation.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/copy.h"
#include "kernels/field_extents.h"
#include "kernels/pointwise.h"

namespace jigsaw {

namespace {

/// Rows and cost of a convolution in either direction.
/// @param weight_in, weight_out  which dim of the weight has the input's, and the output's channels.
Signature signature_of(Operation operation, const Variable& x, const Variable& weight, const Shape& output,
                       std::int64_t groups, int weight_in, const IndexMap& map) {
  const int space = x.shape().rank() - 2, weight_out = 1 - weight_in;
  const std::int64_t in = x.shape().back(), out = output.back();
  Letters kernel = letters("11" + std::string(static_cast<std::size_t>(space), '1'));
  LetterDim input{'c'}, result{'o'};
  if (groups == 1) {
    kernel[static_cast<std::size_t>(weight_in)].letter = 'c';
    kernel[static_cast<std::size_t>(weight_out)].letter = 'o';
  } else {
    // Groups stay whole, and input, weight and output have the same ones.
    input = {'g', in / groups};
    result = {'g', out / groups};
    kernel[0] = weight_in == 0 ? input : result;
  }
  Signature signature{
      operation, concat(name(operation), " ", weight.shape()), {x.shape(), weight.shape()}, {output}, {}, 0,
      {}};
  signature.rows = rows_of_letters({field_dims(space, input), kernel}, field_dims(space, result));
  // Linear in the weight, and in x unless crossing a pole adds something.
  signature.rows.push_back(row_linear_in({false, true}));
  if (map.crossing.offset.empty()) signature.rows.push_back(row_linear_in({true, false}));
  set_halos(signature, map);
  signature.saved = {true, true};
  const Shape& many = weight_in == 0 ? x.shape() : output;
  signature.forward_flops = 2.0 * static_cast<double>(many.count()) *
                            static_cast<double>(weight.shape().count(1, weight.shape().rank()));
  return signature;
}

/// The groups in a piece of so many channels of `all`.
std::int64_t local_groups(std::int64_t groups, std::int64_t channels, std::int64_t all) {
  return groups == 1 ? 1 : channels / (all / groups);
}

/// A piece of a weight as kernels take it: without groups, without channels.
Array kernel_view(const Convolution& convolution, const Array& weight) {
  if (convolution.groups > 0) return weight;
  Shape shape = weight.shape();
  shape[0] = shape[1] = 0;
  return weight.reshaped(shape);
}

/// What forward and backward share.
struct Replay {
  std::shared_ptr<const Exchange> exchange;
  Convolution convolution;  ///< of the piece
  Tile tile;                ///< all of this rank's outputs
  Shape weight;             ///< of the piece
  Array arrived;
};

Replay replay_of(const Rank& rank, const Decision& decision, const IndexMap& map, const ShardedTensor& here,
                 const Shape& weight, const Shape& output, const Window& window, std::int64_t groups) {
  require_cut_alike(decision, 0, 1, here.layout.global.rank() - 2);
  const Layout made{output, decision.row_outputs[0]};
  Replay call;
  call.exchange = Exchange::of(rank, map, here.layout, made);
  call.convolution = {window, local_groups(groups, here.piece.shape().back(), here.layout.global.back())};
  call.tile = {rank.box(made), call.exchange->wanted()};
  call.weight = rank.box({weight, decision.inputs[1]}).extent;
  return call;
}

/// The gradients of x and the weight, given those of the region: the region's gradient travels while that of
/// the weight is formed.
void give_gradients(Tape& tape, const Decision& decision, const Replay& call,
                    const std::array<GradientTarget, 2>& targets,
                    const std::function<Array(DType)>& region_gradient,
                    const std::function<Array(DType)>& weight_gradient,
                    const std::function<void(Array&)>& add_weight_gradient) {
  const Rank& rank = tape.rank();
  const Exchange& exchange = *call.exchange;
  const Placements of_x = tape.gradient_placements(decision, 0);
  Array gradient;
  Pending pending;
  tape.long_work_follows();
  if (targets[0].wanted()) {
    gradient = region_gradient(tape.gradient_type(of_x));
    if (exchange.travels()) pending = exchange.start_adjoint(rank, gradient);
  }
  if (targets[1].wanted()) {
    const Placements of_weight = tape.gradient_placements(decision, 1);
    targets[1].give(
        rank, of_weight, [&] { return weight_gradient(tape.gradient_type(of_weight)); }, add_weight_gradient);
  }
  if (!targets[0].wanted()) return;
  Array dx = exchange.finish_adjoint(rank, gradient, pending.valid() ? pending.wait() : Array());
  targets[0].give(rank, of_x, [&] { return dx; });
}

/// The padding that an exchange brings: zeros the kernels read by themselves.
Padding without_zeros(Padding padding) {
  for (Ends& ends : padding.dims) {
    for (Edge* edge : {&ends.low_edge, &ends.high_edge}) {
      if (*edge == Edge::kZero) *edge = Edge::kNone;
    }
  }
  return padding;
}

/// The convolution of a tile, with the zeros that its outputs read beyond the tile's region.
Convolution of_tile(Convolution convolution, const std::vector<Reads>& reads, const Tile& tile) {
  convolution.low = convolution.high = Shape::filled(static_cast<int>(std::ssize(reads)), 0);
  for (int i = 0; i < convolution.low.rank(); ++i) {
    const Range outputs{tile.outputs.begin[1 + i], tile.outputs.end(1 + i)};
    if (outputs.size() == 0) continue;
    const Range read = reads[static_cast<std::size_t>(i)].of(outputs);
    const bool only_zeros = tile.region.extent[1 + i] == 0;
    convolution.low[i] = only_zeros ? read.size() : tile.region.begin[1 + i] - read.begin;
    convolution.high[i] = only_zeros ? 0 : read.end - tile.region.end(1 + i);
  }
  return convolution;
}

}  // namespace

Variable convolution(Tape& tape, const Variable& x, const Variable& weight, const Window& window,
                     std::int64_t groups, const Padding& padding) {
  const int dims = x.shape().rank() - 2;
  Shape padded = space_of(x.shape());
  std::vector<Reads> reads;
  for (int i = 0; i < dims; ++i) {
    const Ends& ends = padding.dims.at(static_cast<std::size_t>(i));
    padded[i] += ends.low + ends.high;
    reads.push_back(Reads::window(window.extent[i], window.stride[i], window.dilation[i], ends.low));
  }
  const Shape output = field_shape(x.shape()[0], window.places(padded), weight.shape()[0]);
  const IndexMap map = field_map(x.shape(), reads, without_zeros(padding), space_of(output));
  const Signature signature = signature_of(Operation::kConvolution, x, weight, output, groups, 1, map);
  if (tape.tracing()) return tape.trace(signature, {x, weight});
  const Decision& decision = tape.decide(signature);

  const Rank& rank = tape.rank();
  const ShardedTensor here = tape.bring(x, decision.inputs[0]);
  Replay call = replay_of(rank, decision, map, here, weight.shape(), output, window, groups);
  const Array kernel = kernel_view(call.convolution, tape.bring(weight, decision.inputs[1]).piece);
  Array result =
      over_tiles(tape, *call.exchange, call.tile.outputs, here.piece, call.arrived,
                 [&](const Array& region, const Tile& tile) {
                   return convolution_forward(tape.context(), of_tile(call.convolution, reads, tile), region,
                                              kernel, Array(), tape.gradient_type(decision.row_outputs[0]));
                 });
  call.convolution = of_tile(call.convolution, reads, call.tile);
  const bool records = tape.records({x, weight});
  Variable y = tape.keep(std::move(result), output, decision, records);
  if (!records) return y;
  tape.record([&tape, &decision, call, targets = std::array{GradientTarget(x), GradientTarget(weight)},
               saved = std::array{x.save(), weight.save()}, slot = y.slot()] {
    if (!slot->gradient.defined()) return;
    Context& context = tape.context();
    const Array dy = tape.bring(slot->take(), dual(decision.row_outputs[0])).piece;
    // All ranks bring x and the weight here, also those that another one speaks for.
    const auto brought = [&](std::size_t i) { return tape.bring(saved[i](), decision.inputs[i]).piece; };
    const Array weight_piece = targets[0].wanted() ? kernel_view(call.convolution, brought(1)) : Array();
    const Array x_piece = targets[1].wanted() ? brought(0) : Array();
    const auto region = [&] {
      return call.exchange->assemble(tape.rank(), x_piece, call.arrived, call.tile.region);
    };
    give_gradients(
        tape, decision, call, targets,
        [&](DType type) {
          return convolution_backward_data(context, call.convolution, dy, weight_piece,
                                           space_of(call.tile.region).extent, type);
        },
        [&](DType type) {
          return convolution_backward_weight(context, call.convolution, dy, region(), type);
        },
        [&](Array& into) {
          Array view = kernel_view(call.convolution, into);
          convolution_backward_weight_add(context, call.convolution, dy, region(), view);
        });
  });
  return y;
}

namespace {

/// Where a region's own outputs lie among those of the whole transposed convolution.
class TransposedPlace {
 public:
  /// @param padding  points dropped at the low ends of the whole result.
  TransposedPlace(const Window& window, const Shape& padding, const Tile& tile)
      : outputs_(tile.outputs), spread_(tile.outputs) {
    for (int i = 0; i < padding.rank(); ++i) {
      // Input r of the region makes outputs from r · stride − padding on.
      const std::int64_t count = tile.region.extent[1 + i];
      const std::int64_t begin = tile.region.begin[1 + i] * window.stride[i] - padding[i];
      const std::int64_t fits = count == 0 ? 0 : (count - 1) * window.stride[i] + window.reach(i);
      const std::int64_t wanted = std::min(outputs_.end(1 + i) - begin, fits + window.stride[i] - 1);
      spread_.begin[1 + i] = begin;
      spread_.extent[1 + i] = count == 0 ? 0 : std::max(fits, wanted);
    }
  }

  /// What the region's inputs make.
  Shape space() const { return space_of(spread_).extent; }

  /// The tile's outputs of what the region makes; the others are zero.
  Array cut(Context& context, const Array& made) const {
    if (spread_ == outputs_) return made;
    const Box both = intersect(spread_, outputs_);
    if (both == outputs_) return extract_box(context, made, relative_to(both, spread_));
    Array result = filled(context, outputs_.extent, made.dtype(), 0.0);
    if (!both.empty())
      copy_box(context, made, relative_to(both, spread_), result, relative_to(both, outputs_));
    return result;
  }

  /// The adjoint: dy where the region's outputs are.
  Array spread(Context& context, const Array& dy) const {
    if (spread_ == outputs_) return dy;
    const Box both = intersect(spread_, outputs_);
    if (both == spread_) return extract_box(context, dy, relative_to(both, outputs_), Purpose::kWorkspace);
    Array result = filled(context, spread_.extent, dy.dtype(), 0.0, Purpose::kWorkspace);
    if (!both.empty()) copy_box(context, dy, relative_to(both, outputs_), result, relative_to(both, spread_));
    return result;
  }

 private:
  Box outputs_, spread_;
};

}  // namespace

Variable transposed_convolution(Tape& tape, const Variable& x, const Variable& weight, const Window& window,
                                std::int64_t groups, const Shape& padding, const Shape& space) {
  std::vector<Reads> reads;
  for (int i = 0; i < space.rank(); ++i) {
    reads.push_back(Reads::transposed(window.extent[i], window.stride[i], window.dilation[i], padding[i]));
  }
  Padding nothing;
  nothing.dims.assign(static_cast<std::size_t>(space.rank()), {0, 0, Edge::kNone, Edge::kNone});
  const Shape output = field_shape(x.shape()[0], space, weight.shape()[1] * groups);
  const IndexMap map = field_map(x.shape(), reads, nothing, space);
  const Signature signature =
      signature_of(Operation::kTransposedConvolution, x, weight, output, groups, 0, map);
  if (tape.tracing()) return tape.trace(signature, {x, weight});
  const Decision& decision = tape.decide(signature);

  const Rank& rank = tape.rank();
  const ShardedTensor here = tape.bring(x, decision.inputs[0]);
  Replay call = replay_of(rank, decision, map, here, weight.shape(), output, window, groups);
  const Array kernel = kernel_view(call.convolution, tape.bring(weight, decision.inputs[1]).piece);
  Array result = over_tiles(tape, *call.exchange, call.tile.outputs, here.piece, call.arrived,
                            [&](const Array& region, const Tile& tile) {
                              const TransposedPlace place(window, padding, tile);
                              const Array spread = convolution_backward_data(
                                  tape.context(), call.convolution, region, kernel, place.space(),
                                  tape.gradient_type(decision.row_outputs[0]));
                              return place.cut(tape.context(), spread);
                            });
  const bool records = tape.records({x, weight});
  Variable y = tape.keep(std::move(result), output, decision, records);
  if (!records) return y;
  tape.record([&tape, &decision, call, place = TransposedPlace(window, padding, call.tile),
               targets = std::array{GradientTarget(x), GradientTarget(weight)},
               saved = std::array{x.save(), weight.save()}, slot = y.slot()] {
    if (!slot->gradient.defined()) return;
    Context& context = tape.context();
    const Array dy = place.spread(context, tape.bring(slot->take(), dual(decision.row_outputs[0])).piece);
    // All ranks bring x and the weight here, also those that another one speaks for.
    const auto brought = [&](std::size_t i) { return tape.bring(saved[i](), decision.inputs[i]).piece; };
    const Array weight_piece = targets[0].wanted() ? kernel_view(call.convolution, brought(1)) : Array();
    const Array x_piece = targets[1].wanted() ? brought(0) : Array();
    const auto region = [&] {
      return call.exchange->assemble(tape.rank(), x_piece, call.arrived, call.tile.region);
    };
    give_gradients(
        tape, decision, call, targets,
        [&](DType type) {
          return convolution_forward(context, call.convolution, dy, weight_piece, Array(), type);
        },
        [&](DType type) {
          return convolution_backward_weight(context, call.convolution, region(), dy, type);
        },
        [&](Array& into) {
          Array view = kernel_view(call.convolution, into);
          convolution_backward_weight_add(context, call.convolution, region(), dy, view);
        });
  });
  return y;
}

}  // namespace jigsaw
