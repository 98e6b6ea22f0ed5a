#include "kernels/attention.h"

#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "kernels/front/attention_kernels.h"

namespace jigsaw::inline kernels {

namespace {

constexpr std::int64_t kLargestHead = 256;

/// Multiply-adds a weight takes per element of its head, forward and backward, and other operations per
/// weight.
constexpr double kForwardProducts = 2, kBackwardProducts = 5, kWeightFlops = 8;

void count_row_sums(Context& context, const Array& y, const Array& dy) {
  count_work(context, 2.0 * static_cast<double>(y.count()), {&y, &dy});
}

void require_rows(const char* what, const HeadRows& rows) {
  if (rows.array.rank() != 5 || rows.slot < 0 || rows.slot >= rows.array.shape()[2]) {
    throw ShapeError(concat("attention: ", what, " of shape ", rows.array.shape(), ", slot ", rows.slot,
                            ", is not [B, tokens, slots, heads, d]"));
  }
}

Shape piece_shape(const HeadRows& rows) {
  return {rows.batches(), rows.tokens(), rows.heads(), rows.head_size()};
}

Shape weights_shape(const HeadRows& q, const HeadRows& k) {
  return {q.batches(), q.heads(), q.tokens(), k.tokens()};
}

void require_operands(const HeadRows& q, const HeadRows& k, const HeadRows& v,
                      const AttentionOptions& options) {
  require_rows("q", q);
  require_rows("k", k);
  require_rows("v", v);
  require_same_type("attention", q.array, k.array);
  require_same_type("attention", q.array, v.array);
  Shape like_q = piece_shape(k);
  like_q[1] = q.tokens();
  require_same_shape("attention", piece_shape(q), like_q);
  require_same_shape("attention", piece_shape(k), piece_shape(v));
  if (q.head_size() < 1 || q.head_size() > kLargestHead) {
    throw ShapeError(
        concat("attention: heads of ", q.head_size(), " numbers; 1 to ", kLargestHead, " will do"));
  }
  const DType sums = accumulator_of(q.array.dtype());
  if (options.bias.defined()) {
    require_same_shape("attention bias", options.bias.shape(), {q.heads(), q.tokens(), k.tokens()});
    require(options.bias.dtype() == sums, "attention: the bias is f32, or f64 for f64");
  }
  if (options.mask.defined()) {
    require(options.mask.rank() == 3, "attention: the mask is [groups, queries, keys]");
    require_same_shape("attention mask", options.mask.shape(),
                       {options.mask.shape()[0], q.tokens(), k.tokens()});
    require(options.mask.dtype() == sums, "attention: the mask is f32, or f64 for f64");
  }
  if (options.dropout) {
    const TokenPlaces &queries = options.dropout->queries, &keys = options.dropout->keys;
    require(queries.grid.rank() > 0 && keys.grid.rank() > 0 && queries.groups() == keys.groups() &&
                queries.groups() > 0 && queries.tokens() == q.tokens() && keys.tokens() == k.tokens(),
            "attention: dropout knows where each query and key of each group stands in its grid");
  }
}

double products(double per_weight, const HeadRows& q, const HeadRows& k) {
  const auto weights = static_cast<double>(weights_shape(q, k).count());
  return weights * (2 * per_weight * static_cast<double>(q.head_size()) + kWeightFlops);
}

}  // namespace

AttentionResult attention_forward(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v,
                                  const AttentionOptions& options, DType output) {
  require_operands(q, k, v, options);
  const DType sums = accumulator_of(q.array.dtype());
  AttentionResult result{Array(context, piece_shape(q), output),
                         Array(context, {q.batches(), q.heads(), q.tokens()}, sums)};
  count_work(context, products(kForwardProducts, q, k), {&result.output, &result.log_sum_exp});
  context.tally().bytes += static_cast<double>(size_of(q.array.dtype())) *
                           static_cast<double>(piece_shape(q).count() + 2 * piece_shape(k).count());
  launch(context, q.array.dtype(), &AttentionKernels::forward, q, k, v, options, result);
  return result;
}

void attention_combine(Context& context, AttentionResult& into, const AttentionResult& more) {
  require_same_shape("attention_combine", into.output.shape(), more.output.shape());
  require_same_shape("attention_combine", into.log_sum_exp.shape(), more.log_sum_exp.shape());
  const DType type = into.output.dtype();
  require(type == accumulator_of(type) && more.output.dtype() == type && into.log_sum_exp.dtype() == type,
          "attention_combine: results are f32 or f64");
  count_work(context, 4.0 * static_cast<double>(into.output.count()), {&into.output, &more.output});
  launch(context, type, &AttentionKernels::combine, into, more);
}

Array attention_row_sums(Context& context, const Array& y, const Array& dy) {
  require_same_shape("attention_row_sums", y.shape(), dy.shape());
  require_same_type("attention_row_sums", y, dy);
  require(y.rank() == 4, "attention_row_sums: results are [B, queries, heads, d]");
  Array sums(context, {y.shape()[0], y.shape()[2], y.shape()[1]}, accumulator_of(y.dtype()));
  count_row_sums(context, y, dy);
  launch(context, y.dtype(), &AttentionKernels::row_sums, y, dy, sums);
  return sums;
}

void attention_backward(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v,
                        const Array& y, const Array& dy, const Array& log_sum_exp, const Array& row_sums,
                        const AttentionOptions& options, HeadRows dq, HeadRows dk, HeadRows dv, Array dbias) {
  require_operands(q, k, v, options);
  require_same_shape("attention_backward", y.shape(), piece_shape(q));
  require_same_type("attention_backward", y, q.array);
  require_same_shape("attention_backward", dy.shape(), piece_shape(q));
  require_same_type("attention_backward", dy, q.array);
  require_rows("dq", dq);
  require_rows("dk", dk);
  require_rows("dv", dv);
  require_same_shape("attention_backward", piece_shape(dq), piece_shape(q));
  require_same_shape("attention_backward", piece_shape(dk), piece_shape(k));
  require_same_shape("attention_backward", piece_shape(dv), piece_shape(v));
  const Array sums = row_sums.defined()
                         ? row_sums
                         : Array(context, log_sum_exp.shape(), log_sum_exp.dtype(), Purpose::kWorkspace);
  for (const Array* rows : {&log_sum_exp, &sums}) {
    require_same_shape("attention_backward", rows->shape(), {q.batches(), q.heads(), q.tokens()});
    require(rows->dtype() == accumulator_of(q.array.dtype()), "attention: row sums are f32, or f64 for f64");
  }
  if (dbias.defined()) {
    require(options.bias.defined(), "attention_backward: the gradient of a bias that is not there");
    require_same_shape("attention_backward", dbias.shape(), options.bias.shape());
  }
  count_work(context, products(kBackwardProducts, q, k), {&dy, &log_sum_exp, &sums});
  if (!row_sums.defined()) count_row_sums(context, y, dy);
  context.tally().bytes += static_cast<double>(size_of(q.array.dtype())) * 2 *
                           static_cast<double>(piece_shape(q).count() + 2 * piece_shape(k).count());
  launch(context, q.array.dtype(), &AttentionKernels::backward, q, k, v, y, dy, log_sum_exp, sums,
         row_sums.defined(), options, dq, dk, dv, dbias);
}

Array attention_rotate(Context& context, const Array& x, const Rotation& rotation) {
  const int axes = rotation.space.rank();
  if (x.rank() != 5 || x.shape()[2] < 2 || axes == 0 || x.shape()[1] != rotation.space.count() ||
      x.shape().back() % (2 * axes) != 0) {
    throw ShapeError(concat("attention_rotate: ", x.shape(), " over a space of ", rotation.space,
                            " is not [B, tokens, slots, heads, d] with d a multiple of ", 2 * axes));
  }
  require(static_cast<int>(rotation.origin.size()) == axes, "attention_rotate: an origin along each axis");
  const std::int64_t section = x.shape().back() / axes;
  std::vector<RotationTable> tables;
  for (int axis = 0; axis < axes && context.backend() != Backend::kMeta; ++axis) {
    RotationTable& table = tables.emplace_back();
    table.pairs = section / 2;
    for (std::int64_t point = 0; point < rotation.space[axis]; ++point) {
      const auto at = static_cast<double>(rotation.origin[static_cast<std::size_t>(axis)] + point);
      for (std::int64_t i = 0; i < table.pairs; ++i) {
        const double angle =
            at * std::pow(rotation.base, -2.0 * static_cast<double>(i) / static_cast<double>(section));
        table.cosine.push_back(std::cos(angle));
        table.sine.push_back(rotation.inverse ? -std::sin(angle) : std::sin(angle));
      }
    }
  }
  Array y(context, x.shape(), x.dtype());
  count_work(context, 3.0 * static_cast<double>(x.count()), {&x, &y});
  launch(context, x.dtype(), &AttentionKernels::rotate, x, rotation.space, tables, y);
  return y;
}

// What a backend lacks.
void AttentionKernels::forward(Context&, const HeadRows&, const HeadRows&, const HeadRows&,
                               const AttentionOptions&, AttentionResult&) const {
  missing_kernel("attention_forward");
}
void AttentionKernels::combine(Context&, AttentionResult&, const AttentionResult&) const {
  missing_kernel("attention_combine");
}
void AttentionKernels::row_sums(Context&, const Array&, const Array&, Array&) const {
  missing_kernel("attention_row_sums");
}
void AttentionKernels::backward(Context&, const HeadRows&, const HeadRows&, const HeadRows&, const Array&,
                                const Array&, const Array&, Array, bool, const AttentionOptions&, HeadRows,
                                HeadRows, HeadRows, Array) const {
  missing_kernel("attention_backward");
}
void AttentionKernels::rotate(Context&, const Array&, const Shape&, const std::vector<RotationTable>&,
                              Array&) const {
  missing_kernel("attention_rotate");
}

}  // namespace jigsaw::inline kernels
