#include "kernels/pointwise.h"

#include "base/error.h"
#include "base/text.h"
#include "kernels/front/pointwise_kernels.h"

namespace jigsaw::inline kernels {

namespace {

/// The type in which a kernel with these two arrays is chosen: float64 if one of them is.
DType wider(const Array& a, const Array& b) {
  return a.dtype() == DType::kFloat64 ? a.dtype() : b.dtype();
}

void require_spread(std::string_view kernel, const Spread& spread, const Array& x) {
  if (spread.outer * spread.keep * spread.inner != x.count()) {
    throw ShapeError(concat(kernel, ": the spread ", spread.outer, " x ", spread.keep, " x ", spread.inner,
                            " does not fit the shape ", x.shape()));
  }
}

void require_chain(std::string_view kernel, const PointwiseChain& chain, const Array& x, const Array& bias) {
  if (bias.defined()) {
    require_spread(kernel, chain.spread, x);
    require_count(kernel, "the bias", bias, chain.spread.keep);
  }
  if (!chain.dropout) return;
  const Dropout& dropout = *chain.dropout;
  require(dropout.probability >= 0 && dropout.probability < 1, "a dropout probability lies in [0, 1)");
  require_count(kernel, "x of the dropout's piece", x, dropout.piece.extent.count());
  if (dropout.global.rank() != dropout.piece.extent.rank()) {
    throw ShapeError(
        concat(kernel, ": the dropout's piece ", dropout.piece, " is not part of ", dropout.global));
  }
}

double chain_flops(const PointwiseChain& chain, const Array& x, bool bias, bool residual) {
  const double each =
      (bias ? 1 : 0) + flops_of(chain.activation) + (chain.dropout ? 1 : 0) + (residual ? 1 : 0);
  return each * static_cast<double>(x.count());
}

/// The bias in the type the kernel computes in.
Array widened(Context& context, const Array& bias, const Array& x) {
  return bias.defined() ? cast(context, bias, accumulator_of(x.dtype()), Purpose::kWorkspace) : bias;
}

}  // namespace

double flops_of(Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return 0;
    case Activation::kRelu:
      return 1;
    case Activation::kLeakyRelu:
      return 2;
    default:
      return 12;
  }
}

Array pointwise_forward(Context& context, const PointwiseChain& chain, const Array& x, const Array& bias,
                        const Array& residual) {
  require_chain("pointwise_forward", chain, x, bias);
  if (residual.defined()) {
    require_count("pointwise_forward", "the residual", residual, x.count());
    require_same_type("pointwise_forward", x, residual);
  }
  const Array wide_bias = widened(context, bias, x);
  Array y(context, x.shape(), x.dtype());
  count_work(context, chain_flops(chain, x, bias.defined(), residual.defined()), {&x, &residual, &y});
  launch(context, x.dtype(), &PointwiseKernels::forward, chain, x, wide_bias, residual, y);
  return y;
}

Array pointwise_backward(Context& context, const PointwiseChain& chain, const Array& x, const Array& bias,
                         Array dy) {
  const bool reads_x = chain.activation != Activation::kNone;
  require_chain("pointwise_backward", chain, dy, reads_x ? bias : Array());
  if (reads_x) {
    require_count("pointwise_backward", "x", x, dy.count());
    require_same_type("pointwise_backward", x, dy);
  }
  const Array wide_bias = reads_x ? widened(context, bias, x) : Array();
  const Shape shape = x.defined() ? x.shape() : dy.shape();
  Array dx = dy.unique() ? dy.reshaped(shape) : Array(context, shape, dy.dtype());
  count_work(context, chain_flops(chain, dy, reads_x && bias.defined(), reads_x), {&dy, &dx});
  if (reads_x) count_work(context, 0, {&x});
  launch(context, dy.dtype(), &PointwiseKernels::backward, chain, x, wide_bias, dy, dx);
  return dx;
}

Array sum_spread(Context& context, const Spread& spread, const Array& x) {
  require_spread("sum_spread", spread, x);
  Array sums(context, {spread.keep}, accumulator_of(x.dtype()));
  count_work(context, static_cast<double>(x.count()), {&x, &sums});
  launch(context, x.dtype(), &PointwiseKernels::sum_spread, spread, x, sums);
  return sums;
}

Array scale_spread(Context& context, const Spread& spread, const Array& x, const Array& factor) {
  require_spread("scale_spread", spread, x);
  require_count("scale_spread", "the factor", factor, spread.keep);
  const Array wide_factor = widened(context, factor, x);
  Array y(context, x.shape(), x.dtype());
  count_work(context, static_cast<double>(x.count()), {&x, &y});
  launch(context, x.dtype(), &PointwiseKernels::scale_spread, spread, x, wide_factor, y);
  return y;
}

Array prelu_forward(Context& context, const Spread& spread, const Array& x, const Array& slope) {
  require_spread("prelu_forward", spread, x);
  require_count("prelu_forward", "the slope", slope, spread.keep);
  const Array wide_slope = widened(context, slope, x);
  Array y(context, x.shape(), x.dtype());
  count_work(context, 2 * static_cast<double>(x.count()), {&x, &y});
  launch(context, x.dtype(), &PointwiseKernels::prelu, spread, x, wide_slope, y);
  return y;
}

PreluGradients prelu_backward(Context& context, const Spread& spread, const Array& dy, const Array& x,
                              const Array& slope) {
  require_spread("prelu_backward", spread, x);
  require_count("prelu_backward", "the slope", slope, spread.keep);
  require_count("prelu_backward", "dy", dy, x.count());
  require_same_type("prelu_backward", dy, x);
  const Array wide_slope = widened(context, slope, x);
  Array dx(context, x.shape(), dy.dtype());
  Array terms(context, x.shape(), accumulator_of(x.dtype()), Purpose::kWorkspace);
  count_work(context, 3 * static_cast<double>(x.count()), {&dy, &x, &dx, &terms});
  launch(context, x.dtype(), &PointwiseKernels::prelu_backward, spread, dy, x, wide_slope, dx, terms);
  return {dx, sum_spread(context, spread, terms)};
}

Array add(Context& context, const Array& a, const Array& b) {
  require_same_shape("add", a.shape(), b.shape());
  require_same_type("add", a, b);
  Array y(context, a.shape(), a.dtype());
  count_work(context, static_cast<double>(a.count()), {&a, &b, &y});
  launch(context, a.dtype(), &PointwiseKernels::add, a, b, y);
  return y;
}

void accumulate(Context& context, Array& into, const Array& x) {
  require_same_shape("accumulate", into.shape(), x.shape());
  count_work(context, static_cast<double>(x.count()), {&x, &into, &into});
  launch(context, wider(into, x), &PointwiseKernels::accumulate, into, x);
}

void scale(Context& context, Array& x, double factor) {
  count_work(context, static_cast<double>(x.count()), {&x, &x});
  launch(context, x.dtype(), &PointwiseKernels::scale, x, factor);
}

Array filled(Context& context, const Shape& shape, DType dtype, double value, Purpose purpose) {
  Array y(context, shape, dtype, purpose);
  count_work(context, 0, {&y});
  launch(context, dtype, &PointwiseKernels::fill, y, value);
  return y;
}

Array cast(Context& context, const Array& x, DType dtype, Purpose purpose) {
  if (x.dtype() == dtype) return x;
  Array y(context, x.shape(), dtype, purpose);
  cast_into(context, x, y);
  return y;
}

void cast_into(Context& context, const Array& x, Array& y) {
  require_count("cast", "the result", y, x.count());
  require(x.dtype() != y.dtype(), "cast: the types are equal");
  count_work(context, 0, {&x, &y});
  launch(context, wider(x, y), &PointwiseKernels::cast, x, y);
}

// What a backend lacks.
void PointwiseKernels::forward(Context&, const PointwiseChain&, const Array&, const Array&, const Array&,
                               Array&) const {
  missing_kernel("pointwise_forward");
}
void PointwiseKernels::backward(Context&, const PointwiseChain&, const Array&, const Array&, const Array&,
                                Array&) const {
  missing_kernel("pointwise_backward");
}
void PointwiseKernels::sum_spread(Context&, const Spread&, const Array&, Array&) const {
  missing_kernel("sum_spread");
}
void PointwiseKernels::scale_spread(Context&, const Spread&, const Array&, const Array&, Array&) const {
  missing_kernel("scale_spread");
}
void PointwiseKernels::prelu(Context&, const Spread&, const Array&, const Array&, Array&) const {
  missing_kernel("prelu_forward");
}
void PointwiseKernels::prelu_backward(Context&, const Spread&, const Array&, const Array&, const Array&,
                                      Array&, Array&) const {
  missing_kernel("prelu_backward");
}
void PointwiseKernels::add(Context&, const Array&, const Array&, Array&) const {
  missing_kernel("add");
}
void PointwiseKernels::accumulate(Context&, Array&, const Array&) const {
  missing_kernel("accumulate");
}
void PointwiseKernels::scale(Context&, Array&, double) const {
  missing_kernel("scale");
}
void PointwiseKernels::fill(Context&, Array&, double) const {
  missing_kernel("filled");
}
void PointwiseKernels::cast(Context&, const Array&, Array&) const {
  missing_kernel("cast");
}

}  // namespace jigsaw::inline kernels
