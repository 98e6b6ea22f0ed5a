#include <cmath>

#include "autograd/operation.h"
#include "autograd/operations.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/attention.h"
#include "kernels/copy.h"
#include "kernels/relative_bias.h"

namespace jigsaw {

namespace {

void require_operands(const Shape& qkv, const Shape& table, const WindowAttention& options) {
  const int space = options.window.rank();
  bool fits = qkv.rank() == space + 3 && qkv[space + 1] == 3 && options.head_size > 0 &&
              qkv.back() % options.head_size == 0 && table.rank() == 2 &&
              table[1] * options.head_size == qkv.back() && options.wrapped.rank() == space;
  for (int dim = 0; fits && dim < space; ++dim) fits = qkv[1 + dim] % options.window[dim] == 0;
  if (!fits) {
    throw ShapeError(concat("window_attention of ", qkv, " in windows of ", options.window, ", table ", table,
                            ": should be [B, space…, 3, C] of whole windows, and [positions, heads]"));
  }
}

Signature signature_of(const Variable& qkv, const Variable& table, const WindowAttention& options) {
  const Shape& shape = qkv.shape();
  const int space = options.window.rank();
  Shape output{shape[0]};
  Letters packed = {{'b'}}, field = {{'b'}};
  for (int dim = 0; dim < space; ++dim) {
    output.append(shape[1 + dim]);
    packed.push_back({"dhw"[3 - space + dim], options.window[dim]});
    field.push_back(packed.back());
  }
  output.append(shape.back());
  packed.push_back({'1'});
  packed.push_back({'c', options.head_size});
  field.push_back(packed.back());
  const Letters by_head = {{'1'}, {'c'}};
  Signature signature{
      Operation::kWindowAttention, "window_attention", {shape, table.shape()}, {output}, {}, 0, {}};
  signature.rows = rows_of_letters({packed, by_head}, field);
  signature.saved = {true, true};
  signature.forward_flops =
      4.0 * static_cast<double>(output.count()) * static_cast<double>(options.window.count());
  return signature;
}

/// A piece [B, space…, …] with windows apart, [B, n₀, w₀, n₁, w₁, …, rest].
Shape split_shape(const Shape& piece, const Shape& window) {
  Shape shape{piece[0]};
  for (int dim = 0; dim < window.rank(); ++dim) {
    shape.append(piece[1 + dim] / window[dim]);
    shape.append(window[dim]);
  }
  shape.append(piece.count(1 + window.rank(), piece.rank()));
  return shape;
}

/// Windows before the points in them: B, n₀, n₁, …, w₀, w₁, …, rest.
std::vector<int> window_order(int space) {
  std::vector<int> order = {0};
  for (int dim = 0; dim < space; ++dim) order.push_back(1 + 2 * dim);
  for (int dim = 0; dim < space; ++dim) order.push_back(2 + 2 * dim);
  order.push_back(1 + 2 * space);
  return order;
}

/// [B · windows, points of a window, rest].
Array to_windows(Context& context, const Array& piece, const Shape& window) {
  const Array split = piece.reshaped(split_shape(piece.shape(), window));
  const std::int64_t rest = split.shape().back(), points = window.count();
  const std::int64_t windows = piece.shape().count(0, 1 + window.rank()) / points;
  return permute(context, split, window_order(window.rank())).reshaped({windows, points, rest});
}

Array from_windows(Context& context, const Array& windows, const Shape& window, const Shape& piece) {
  const Shape split = split_shape(piece, window);
  const std::vector<int> order = window_order(window.rank());
  Shape permuted;
  std::vector<int> inverse(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    permuted.append(split[order[i]]);
    inverse[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  }
  return permute(context, windows.reshaped(permuted), inverse).reshaped(piece);
}

/// Numbers in the whole grid of the points of each window of a piece, window after window.
std::vector<std::int64_t> point_numbers(const Shape& global, const Box& piece, const Shape& window) {
  const int space = window.rank();
  std::vector<std::int64_t> numbers;
  std::int64_t windows = 1;
  for (int dim = 0; dim < space; ++dim) windows *= piece.extent[1 + dim] / window[dim];
  for (std::int64_t i = 0; i < windows * window.count(); ++i) {
    std::int64_t n = i / window.count(), p = i % window.count(), number = 0, stride = 1;
    for (int dim = space - 1; dim >= 0; --dim) {
      const std::int64_t count = piece.extent[1 + dim] / window[dim];
      number += stride * (piece.begin[1 + dim] + n % count * window[dim] + p % window[dim]);
      n /= count, p /= window[dim], stride *= global[1 + dim];
    }
    numbers.push_back(number);
  }
  return numbers;
}

/// Which weights of the windows of a piece are dropped.
AttentionDropout dropout_of(const RandomState& random, const Shape& global, const Box& piece,
                            const WindowAttention& options) {
  AttentionDropout dropout{options.dropout, RandomStream(random.seed, RandomPurpose::kDropout, options.path),
                           random.position};
  dropout.position.sample += static_cast<std::uint64_t>(piece.begin[0]);
  dropout.first_head = piece.begin[piece.begin.rank() - 1] / options.head_size;
  dropout.queries = dropout.keys = point_numbers(global, piece, options.window);
  dropout.total_queries = dropout.total_keys = global.count(1, 1 + options.window.rank());
  dropout.groups = std::ssize(dropout.queries) / options.window.count();
  return dropout;
}

/// The windows of a piece [B, space…, …].
WrappedWindows windows_of(const Shape& global, const Box& piece, const WindowAttention& options) {
  WrappedWindows windows{options.window, options.wrapped, {}, {}};
  for (int dim = 0; dim < options.window.rank(); ++dim) {
    windows.space.append(global[1 + dim]);
    windows.piece.begin.append(piece.begin[1 + dim]);
    windows.piece.extent.append(piece.extent[1 + dim]);
  }
  return windows;
}

}  // namespace

Variable window_attention(Tape& tape, const Variable& qkv, const Variable& table,
                          const WindowAttention& options) {
  require_operands(qkv.shape(), table.shape(), options);
  const Signature signature = signature_of(qkv, table, options);
  if (tape.tracing()) return tape.trace(signature, {qkv, table});
  const Decision& decision = tape.decide(signature);
  const Box piece = tape.rank().box({signature.outputs[0], decision.row_outputs[0]});
  const std::int64_t size = options.head_size, heads = piece.extent.back() / size;
  const DType sums = tape.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;

  const auto packed = [&tape, window = options.window, heads, size](const Array& qkv_piece) {
    const Array rows = to_windows(tape.context(), qkv_piece, window);
    return rows.reshaped({rows.shape()[0], rows.shape()[1], 3, heads, size});
  };
  const bool drops = tape.training() && options.dropout > 0 && piece.extent.count() > 0;
  const auto with_bias = [&tape, options, global = signature.outputs[0], piece, sums, drops,
                          random = tape.random()](const Array& table_piece) {
    AttentionOptions result{.scale = 1 / std::sqrt(static_cast<double>(options.head_size))};
    result.bias = relative_bias(tape.context(), table_piece, options.window);
    bool wraps = false;
    for (const std::int64_t wrapped : options.wrapped) wraps = wraps || wrapped > 0;
    if (wraps && piece.extent.count() > 0)
      result.mask = wrap_mask(tape.context(), windows_of(global, piece, options), sums);
    if (drops) result.dropout = dropout_of(random, global, piece, options);
    return result;
  };
  const bool records = tape.records({qkv, table});
  const Array brought = tape.bring(qkv, decision.inputs[0]).piece,
              biases = tape.bring(table, decision.inputs[1]).piece;
  tape.long_work_follows();
  const Array rows = packed(brought);
  const AttentionResult result =
      attention_forward(tape.context(), {rows, 0}, {rows, 1}, {rows, 2}, with_bias(biases), tape.dtype());
  Variable y = tape.keep(from_windows(tape.context(), result.output, options.window, piece.extent),
                         signature.outputs[0], decision, records);
  if (!records) return y;

  tape.record([&tape, &decision, packed, with_bias, result, window = options.window, saved_qkv = qkv.save(),
               saved_table = table.save(), of_qkv = GradientTarget(qkv), of_table = GradientTarget(table),
               slot = y.slot()] {
    if (!slot->gradient.defined()) return;
    Context& context = tape.context();
    const Array dy =
        to_windows(context, tape.bring(slot->take(), dual(decision.row_outputs[0])).piece, window)
            .reshaped(result.output.shape());
    const ShardedTensor here = tape.bring(saved_qkv(), decision.inputs[0]);
    const Array again = packed(here.piece);
    const AttentionOptions options_again = with_bias(tape.bring(saved_table(), decision.inputs[1]).piece);
    tape.long_work_follows();
    const Array dqkv(context, again.shape(), again.dtype());
    const Array dbias(context, options_again.bias.shape(), options_again.bias.dtype());
    attention_backward(context, {again, 0}, {again, 1}, {again, 2}, dy, result.log_sum_exp,
                       attention_row_sums(context, result.output, dy), options_again, {dqkv, 0}, {dqkv, 1},
                       {dqkv, 2}, dbias);
    of_table.give(tape.rank(), tape.gradient_placements(decision, 1),
                  [&] { return relative_bias_backward(context, dbias, window); });
    of_qkv.give(tape.rank(), tape.gradient_placements(decision, 0),
                [&] { return from_windows(context, dqkv, window, here.piece.shape()); });
  });
  return y;
}

}  // namespace jigsaw
