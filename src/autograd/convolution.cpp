#include "kernels/convolution.h"

#include <algorithm>

#include "autograd/field_cases.h"
#include "autograd/neighbourhood.h"
#include "base/text.h"
#include "kernels/backend.h"
#include "kernels/copy.h"
#include "kernels/field_extents.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline autograd {

namespace {

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

/// A convolution of x and a weight in either direction; a third input is a bias of the output's channels.
/// Where the output is a sum over ranks, one of them adds it. Findings: the halos that came.
class WeightedNeighbourhood : public Operation {
 public:
  /// @param weight_in  which dim of the weight has the input's channels; the other has the output's.
  WeightedNeighbourhood(const Shape& output, IndexMap map, const Window& window, std::int64_t groups,
                        int weight_in)
      : output_(output), map_(std::move(map)), window_(window), groups_(groups), weight_in_(weight_in) {}

  Signature signature(std::span<const Shape> inputs) const override {
    const Shape &x = inputs[0], &weight = inputs[1];
    const bool bias = inputs.size() > kBias;
    if (bias) require_same_shape(name(), inputs[kBias], {output_.back()});
    const int space = x.rank() - 2;
    LetterDim input{'c'}, result{'o'};
    Letters kernel = letters("11" + std::string(static_cast<std::size_t>(space), '1'));
    if (groups_ == 1) {
      kernel[static_cast<std::size_t>(weight_in_)].letter = 'c';
      kernel[static_cast<std::size_t>(1 - weight_in_)].letter = 'o';
    } else {
      // Groups stay whole, and input, weight and output have the same ones.
      input = {'g', x.back() / groups_};
      result = {'g', output_.back() / groups_};
      kernel[0] = weight_in_ == 0 ? input : result;
    }
    Signature signature;
    signature.name = concat(name(), " ", weight);
    signature.inputs.assign(inputs.begin(), inputs.end());
    signature.outputs = {output_};
    std::vector<Letters> operands = {field_dims(space, input), kernel};
    std::vector<bool> of_x = {true, false}, of_weight = {false, true};
    signature.saved = {true, true};
    if (bias) {
      operands.push_back({result});
      for (std::vector<bool>* each : {&of_x, &of_weight, &signature.saved}) each->push_back(false);
    }
    signature.rules = rules_of_letters(operands, field_dims(space, result));
    // Linear in the weight, and in x unless crossing a pole adds something.
    signature.rules.push_back(linear_rule(of_weight));
    if (map_.crossing.offset.empty()) signature.rules.push_back(linear_rule(of_x));
    set_halos(signature, map_);
    signature.bilinear = true;
    signature.keeps_findings = true;
    const Shape& many = weight_in_ == 0 ? x : output_;
    signature.forward_flops =
        2.0 * static_cast<double>(many.count()) * static_cast<double>(weight.count(1, weight.rank()));
    return signature;
  }

  std::vector<Array> forward(Frame& frame, Operands& inputs) const override {
    const auto exchange = this->exchange(frame);
    const Convolution here = convolution_of(frame);
    const Array x = inputs.redistributed(0), weight = kernel_view(here, inputs.redistributed(1)),
                bias = has_bias(frame) ? inputs.redistributed(kBias) : Array();
    const bool adds_bias = frame.first_along(frame.output().placements.partial_axes());
    Array arrived;
    const Array result = over_tiles(
        frame.rank(), [&] { frame.long_work_follows(); }, *exchange, frame.output_box(), x,
        frame.output_type(), arrived,
        [&](const Array& region, const Tile& tile, const Array& into) {
          return make_tile(frame.context(), on_tile(here, tile), tile, region,
                           {weight, adds_bias ? bias : Array()}, frame.output_type(), into);
        });
    frame.keep_findings(arrived);
    return {result};
  }

  /// The region's gradient travels while that of the weight is formed.
  void backward(const Frame& frame, Operands& saved, Gradients& gradients) const override {
    Context& context = frame.context();
    const auto exchange = this->exchange(frame);
    const Tile tile{frame.output_box(), exchange->wanted()};
    const Convolution here = on_tile(convolution_of(frame), tile);
    const Array whole = gradients.take(), dy = upstream(context, tile, whole);
    // All ranks redistribute x and the weight, also those whose copy of the gradient is not the one that
    // counts.
    const Array weight = gradients.wanted(0) ? kernel_view(here, saved.redistributed(1)) : Array();
    const Array x = gradients.wanted(1) ? saved.redistributed(0) : Array();
    Array gradient;
    Pending pending;
    frame.long_work_follows();
    if (gradients.wanted(0)) {
      gradient = region_gradient(context, here, tile, dy, weight, frame.gradient_type(0));
      if (exchange->travels()) pending = exchange->start_adjoint(frame.rank(), gradient);
    }
    const auto region = [&] {
      return exchange->assemble(frame.rank(), x, frame.findings<Array>(), tile.region);
    };
    gradients.give(
        1, [&] { return weight_gradient(context, here, dy, region(), frame.gradient_type(1)); },
        [&](Array& into) {
          Array view = kernel_view(here, into);
          add_weight_gradient(context, here, dy, region(), view);
        });
    if (has_bias(frame)) gradients.give(kBias, [&] { return bias_gradient(frame, whole); });
    if (!gradients.wanted(0)) return;
    gradients.give(
        0, exchange->finish_adjoint(frame.rank(), gradient, pending.valid() ? pending.wait() : Array()));
  }

 protected:
  struct Parameters {
    Array weight, bias;  ///< the bias may be undefined
  };
  /// What the kernel of a tile is told beside the window and the groups.
  virtual Convolution on_tile(Convolution convolution, const Tile&) const { return convolution; }
  virtual Array make_tile(Context& context, const Convolution& convolution, const Tile& tile,
                          const Array& region, const Parameters& parameters, DType type,
                          Array into) const = 0;
  /// dy as the kernels take it.
  virtual Array upstream(Context&, const Tile&, const Array& dy) const { return dy; }
  virtual Array region_gradient(Context& context, const Convolution& convolution, const Tile& tile,
                                const Array& dy, const Array& weight, DType type) const = 0;
  virtual Array weight_gradient(Context& context, const Convolution& convolution, const Array& dy,
                                const Array& region, DType type) const = 0;
  virtual void add_weight_gradient(Context& context, const Convolution& convolution, const Array& dy,
                                   const Array& region, Array& into) const = 0;

  const Window& window() const { return window_; }

 private:
  static constexpr std::size_t kBias = 2;

  static bool has_bias(const Frame& frame) { return frame.signature().inputs.size() > kBias; }
  /// This rank's part of Σ dy over samples and places. All ranks that make summands of an output have its
  /// gradient; where the bias's is a sum over them, one gives it.
  static Array bias_gradient(const Frame& frame, const Array& dy) {
    const std::int64_t channels = dy.shape().back();
    const AxisSet alike =
        frame.output().placements.partial_axes() & frame.gradient(kBias).placements.partial_axes();
    if (!frame.first_along(alike)) return filled(frame.context(), {channels}, frame.wide_type(), 0.0);
    return sum_spread(frame.context(), {dy.shape().count(0, dy.rank() - 1), channels, 1}, dy);
  }
  std::shared_ptr<const Exchange> exchange(const Frame& frame) const {
    require_cut_alike(frame.input(0), frame.output(), 1, output_.rank() - 2);
    return Exchange::of(frame.rank(), map_, frame.input(0), frame.output());
  }
  Convolution convolution_of(const Frame& frame) const {
    const std::int64_t all = frame.signature().inputs[0].back();
    return {window_, local_groups(groups_, frame.input_box(0).extent.back(), all)};
  }

  Shape output_;
  IndexMap map_;
  Window window_;
  std::int64_t groups_;
  int weight_in_;
};

class ConvolutionOperation : public WeightedNeighbourhood {
 public:
  ConvolutionOperation(const Shape& output, IndexMap map, const Window& window, std::int64_t groups,
                       std::vector<Reads> reads)
      : WeightedNeighbourhood(output, std::move(map), window, groups, 1), reads_(std::move(reads)) {}

  std::string_view name() const override { return "convolution"; }

 protected:
  Convolution on_tile(Convolution convolution, const Tile& tile) const override {
    return of_tile(std::move(convolution), reads_, tile);
  }
  Array make_tile(Context& context, const Convolution& convolution, const Tile&, const Array& region,
                  const Parameters& parameters, DType type, Array into) const override {
    const auto& [weight, bias] = parameters;
    if (!into.defined()) return convolution_forward(context, convolution, region, weight, bias, type);
    convolution_forward_into(context, convolution, region, weight, bias, into);
    return into;
  }
  Array region_gradient(Context& context, const Convolution& convolution, const Tile& tile, const Array& dy,
                        const Array& weight, DType type) const override {
    return convolution_backward_data(context, convolution, dy, weight, space_of(tile.region).extent, type);
  }
  Array weight_gradient(Context& context, const Convolution& convolution, const Array& dy,
                        const Array& region, DType type) const override {
    return convolution_backward_weight(context, convolution, dy, region, type);
  }
  void add_weight_gradient(Context& context, const Convolution& convolution, const Array& dy,
                           const Array& region, Array& into) const override {
    convolution_backward_weight_add(context, convolution, dy, region, into);
  }

 private:
  std::vector<Reads> reads_;
};

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

/// The adjoint of a convolution: x takes the part of its result's gradient.
class TransposedConvolution : public WeightedNeighbourhood {
 public:
  TransposedConvolution(const Shape& output, IndexMap map, const Window& window, std::int64_t groups,
                        const Shape& padding)
      : WeightedNeighbourhood(output, std::move(map), window, groups, 0), padding_(padding) {}

  std::string_view name() const override { return "transposed_convolution"; }

 protected:
  Array make_tile(Context& context, const Convolution& convolution, const Tile& tile, const Array& region,
                  const Parameters& parameters, DType type, Array /*into*/) const override {
    const TransposedPlace place(window(), padding_, tile);
    return place.cut(context, convolution_backward_data(context, convolution, region, parameters.weight,
                                                        place.space(), type));
  }
  Array upstream(Context& context, const Tile& tile, const Array& dy) const override {
    return TransposedPlace(window(), padding_, tile).spread(context, dy);
  }
  Array region_gradient(Context& context, const Convolution& convolution, const Tile&, const Array& dy,
                        const Array& weight, DType type) const override {
    return convolution_forward(context, convolution, dy, weight, Array(), type);
  }
  Array weight_gradient(Context& context, const Convolution& convolution, const Array& dy,
                        const Array& region, DType type) const override {
    return convolution_backward_weight(context, convolution, region, dy, type);
  }
  void add_weight_gradient(Context& context, const Convolution& convolution, const Array& dy,
                           const Array& region, Array& into) const override {
    convolution_backward_weight_add(context, convolution, region, dy, into);
  }

 private:
  Shape padding_;
};

}  // namespace

Variable convolution(Tape& tape, const Variable& x, const Variable& weight, const Variable& bias,
                     const Window& window, std::int64_t groups, const Padding& padding) {
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
  std::vector<Variable> inputs = {x, weight};
  if (bias.defined()) inputs.push_back(bias);
  return apply(tape, ConvolutionOperation(output, map, window, groups, reads), inputs);
}

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
  return apply(tape, TransposedConvolution(output, map, window, groups, padding), {x, weight});
}

// ---- Proof

namespace {

/// Longitude around the circle, cell-centred poles with a vector component among the channels.
Padding globe() {
  return {{{1, 1, Edge::kPoleCell, Edge::kPoleCell}, {1, 1, Edge::kPeriodic, Edge::kPeriodic}},
          {{1, -1, 1, 1, -1}, {0, 0.5, 0, 0, 0}}};
}

/// Shapes of a field and its weight, with `out` channels made and the kernel's extents.
std::vector<std::vector<Shape>> weighted(const std::vector<Shape>& fields, const Shape& kernel,
                                         bool transposed = false) {
  std::vector<std::vector<Shape>> inputs;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::int64_t in = fields[i].back(), out = 4 - static_cast<std::int64_t>(i % 2);
    Shape weight{transposed ? in : out, transposed ? out : in};
    for (const std::int64_t extent : kernel) weight.append(extent);
    inputs.push_back({fields[i], weight});
  }
  return inputs;
}

/// The same with a bias.
std::vector<std::vector<Shape>> biased(std::vector<std::vector<Shape>> inputs) {
  for (std::vector<Shape>& each : inputs) each.push_back({each[1][0]});
  return inputs;
}

ProofCase convolved(const std::string& name, const std::vector<std::vector<Shape>>& inputs,
                    const Window& kernel, std::int64_t groups, const Padding& padding) {
  return make_case(name, inputs, [=](Tape& tape, const std::vector<Variable>& x) {
    return convolution(tape, x[0], x[1], x.size() > 2 ? x[2] : Variable(), kernel, groups, padding);
  });
}

}  // namespace

std::vector<ProofCase> convolution_cases() {
  const std::vector<Shape> even = {{3, 5, 4, 2}, {2, 4, 2, 3}, {4, 2, 8, 5}};
  return {
      convolved("3 x 3, zeros", weighted(proof_fields(), {3, 3}), square_window({3, 3}), 1, all_around(2, 1)),
      convolved("3 x 3, zeros, bias", biased(weighted(proof_fields(), {3, 3})), square_window({3, 3}), 1,
                all_around(2, 1)),
      convolved("3 x 3, far into zeros", weighted(proof_fields(), {3, 3}), square_window({3, 3}), 1,
                all_around(2, 4)),
      convolved("3 x 2, stride 2, replicated", weighted(proof_fields(), {3, 2}), square_window({3, 2}, 2), 1,
                all_around(2, 1, Edge::kReplicate)),
      convolved("3 x 3, globe", weighted(even, {3, 3}), square_window({3, 3}), 1, globe()),
      convolved("2 groups", {{{2, 4, 3, 4}, {6, 2, 3, 3}}, {{3, 3, 5, 4}, {6, 2, 3, 3}}},
                square_window({3, 3}), 2, all_around(2, 1)),
      convolved("2 groups, bias", biased({{{2, 4, 3, 4}, {6, 2, 3, 3}}, {{3, 3, 5, 4}, {6, 2, 3, 3}}}),
                square_window({3, 3}), 2, all_around(2, 1)),
      convolved("volumes", weighted(proof_volumes(), {3, 1, 2}), square_window({3, 1, 2}), 1,
                all_around(3, 1))};
}

std::vector<ProofCase> transposed_convolution_cases() {
  std::vector<ProofCase> cases;
  for (const std::int64_t extent : {2, 3}) {
    ProofCase& one = cases.emplace_back(ProofCase{concat(extent, " x ", extent, ", stride 2, cropped"), {}});
    for (const std::vector<Shape>& inputs : weighted(proof_fields(), {extent, extent}, true)) {
      const Shape space{2 * inputs[0][1] - 1, 2 * inputs[0][2]};
      add_instance(one, inputs, [space, extent](Tape& tape, const std::vector<Variable>& x) {
        return transposed_convolution(tape, x[0], x[1], square_window({extent, extent}, 2), 1,
                                      Shape::filled(2, extent - 2), space);
      });
    }
  }
  // Between what the kernel reaches lie outputs that read nothing.
  ProofCase& gaps = cases.emplace_back(ProofCase{"1 x 2, stride 3", {}});
  for (const std::vector<Shape>& inputs : weighted(proof_fields(), {1, 2}, true)) {
    const Shape space{3 * inputs[0][1] - 1, 3 * inputs[0][2]};
    add_instance(gaps, inputs, [space](Tape& tape, const std::vector<Variable>& x) {
      return transposed_convolution(tape, x[0], x[1], square_window({1, 2}, 3), 1, {0, 0}, space);
    });
  }
  return cases;
}

}  // namespace jigsaw::inline autograd
