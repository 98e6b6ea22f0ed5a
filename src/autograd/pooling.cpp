#include "kernels/pooling.h"

#include <algorithm>

#include "autograd/field_cases.h"
#include "autograd/neighbourhood.h"
#include "base/text.h"
#include "kernels/field_extents.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline autograd {

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

class PoolingOperation : public Neighbourhood {
 public:
  PoolingOperation(const Shape& input, const Shape& output, IndexMap map, PoolingKind kind,
                   const Window& window, bool count_padding)
      : Neighbourhood(input, output, std::move(map)),
        window_(window),
        maximum_(kind == PoolingKind::kMax),
        count_padding_(count_padding) {}

  std::string_view name() const override { return "pooling"; }

  Signature signature(std::span<const Shape>) const override {
    Signature signature = field_signature(!maximum_);
    signature.name += maximum_ ? " max" : " average";
    signature.forward_flops = static_cast<double>(output_.count() * window_.extent.count());
    signature.keeps_findings = maximum_;
    return signature;
  }

 protected:
  Array forward_tile(Context& context, const Array& region, const Tile& tile, const Array& into,
                     Array& noted) const override {
    Array y = into.defined() ? into : Array(context, tile.outputs.extent, region.dtype());
    if (maximum_) {
      if (!noted.defined()) noted = Array(context, y.shape(), *noted_type());
      max_pool_forward_into(context, pooling_of(tile), region, noted, y);
    } else {
      average_pool_forward_into(context, pooling_of(tile), region, y);
    }
    return y;
  }
  /// Which points won is all that backward needs.
  std::optional<DType> noted_type() const override {
    return maximum_ ? std::optional(winner_type(window_)) : std::nullopt;
  }
  Array backward_tile(Context& context, const Array& dy, const Tile& tile,
                      const Array& noted) const override {
    const Shape region = space_of(tile.region).extent;
    return maximum_ ? max_pool_backward(context, pooling_of(tile), dy, noted, region)
                    : average_pool_backward(context, pooling_of(tile), dy, region);
  }

 private:
  Pooling pooling_of(const Tile& tile) const {
    return {window_, valid_points(tile, map_, input_), count_padding_};
  }

  Window window_;
  bool maximum_, count_padding_;
};

class GlobalAverage : public Operation {
 public:
  std::string_view name() const override { return "global_average"; }

  Signature signature(std::span<const Shape> inputs) const override {
    const Shape& x = inputs[0];
    const int dims = x.rank() - 2;
    Letters input = field_dims(dims, {'c'}), result = input;
    for (int i = 0; i < dims; ++i) result[static_cast<std::size_t>(1 + i)].letter = '1';
    Signature signature;
    signature.name = "global_average";
    signature.outputs = {field_shape(x[0], Shape::filled(dims, 1), x.back())};
    signature.rules = rules_of_letters({input}, result);
    signature.rules.push_back(linear_rule({true}));
    signature.forward_flops = static_cast<double>(x.count());
    signature.saved = {false};
    return signature;
  }

  std::vector<Array> forward(Frame& frame, Operands& inputs) const override {
    const Part part(frame);
    const Array here = inputs.redistributed(0);
    const DType type = frame.output_type();
    if (part.share == 0) return {filled(frame.context(), frame.output_box().extent, type, 0)};
    Array mean = cast(frame.context(), average_pool_forward(frame.context(), part.whole, here), type);
    if (part.share < 1) scale(frame.context(), mean, part.share);
    return {mean};
  }

  void backward(const Frame& frame, Operands&, Gradients& gradients) const override {
    const Part part(frame);
    const Array dy = gradients.take();
    gradients.give(0, [&] {
      if (part.share == 0) return filled(frame.context(), part.field, dy.dtype(), 0.0);
      Array dx = average_pool_backward(frame.context(), part.whole, dy, part.space);
      if (part.share < 1) scale(frame.context(), dx, part.share);
      return dx;
    });
  }

 private:
  /// The points here, and their share of all points.
  struct Part {
    explicit Part(const Frame& frame)
        : field(frame.input_box(0).extent),
          space(space_of(field)),
          whole{{space, {}, {}}, Box::whole(space), false} {
      whole.window.stride = whole.window.dilation = Shape::filled(space.rank(), 1);
      share = static_cast<double>(space.count()) /
              static_cast<double>(space_of(frame.signature().inputs[0]).count());
    }
    Shape field, space;
    Pooling whole;
    double share = 0;
  };
};

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
  return apply(tape, PoolingOperation(x.shape(), output, map, kind, window, count_padding), {x});
}

Variable global_average(Tape& tape, const Variable& x) {
  return apply(tape, GlobalAverage(), {x});
}

// ---- Proof

namespace {

Shape points_of(const Shape& field) {
  return Shape(std::span(field.begin() + 1, static_cast<std::size_t>(field.rank() - 2)));
}

}  // namespace

std::vector<ProofCase> pooling_cases() {
  std::vector<ProofCase> cases;
  for (const PoolingKind kind : {PoolingKind::kMax, PoolingKind::kAverage}) {
    for (const bool overlapping : {false, true}) {
      ProofCase& one = cases.emplace_back(ProofCase{concat(kind == PoolingKind::kMax ? "max" : "average",
                                                           overlapping ? " 3 x 3" : " 2 x 2, to the end"),
                                                    {}});
      for (const Shape& field : proof_fields()) {
        const Shape space = overlapping ? points_of(field) : Shape{(field[1] + 1) / 2, (field[2] + 1) / 2};
        const Window window = overlapping ? square_window({3, 3}) : square_window({2, 2}, 2);
        add_instance(one, {field}, [=](Tape& tape, const std::vector<Variable>& x) {
          return pooling(tape, x[0], kind, window, all_around(2, overlapping ? 1 : 0), space, overlapping);
        });
      }
    }
  }
  return cases;
}

std::vector<ProofCase> global_average_cases() {
  const auto run = [](Tape& tape, const std::vector<Variable>& x) { return global_average(tape, x[0]); };
  return {make_case("fields", alone(proof_fields()), run), make_case("volumes", alone(proof_volumes()), run)};
}

}  // namespace jigsaw::inline autograd
