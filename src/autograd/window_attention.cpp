#include <cmath>

#include "autograd/operations.h"
#include "autograd/registry.h"
#include "autograd/split_shape.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/attention.h"
#include "kernels/copy.h"
#include "kernels/relative_bias.h"

namespace jigsaw::inline autograd {

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

/// Which weights of the windows of a piece are dropped.
AttentionDropout dropout_of(const RandomState& random, const Shape& global, const Box& piece,
                            const WindowAttention& options) {
  AttentionDropout dropout{options.dropout, RandomStream(random.seed, RandomPurpose::kDropout, options.path),
                           random.position};
  dropout.position.sample += static_cast<std::uint64_t>(piece.begin[0]);
  dropout.first_head = piece.begin[piece.begin.rank() - 1] / options.head_size;
  const WrappedWindows windows = windows_of(global, piece, options);
  dropout.queries = dropout.keys = {windows.space, windows.piece, windows.window};
  return dropout;
}

/// Findings: the result in windows, and what backward reads of the weights.
class WindowAttentionOperation : public Operation {
 public:
  explicit WindowAttentionOperation(WindowAttention options) : options_(std::move(options)) {}

  std::string_view name() const override { return "window_attention"; }

  Signature signature(std::span<const Shape> inputs) const override {
    const Shape& qkv = inputs[0];
    require_operands(qkv, inputs[1], options_);
    const int space = options_.window.rank();
    Shape output{qkv[0]};
    Letters packed = {{'b'}}, field = {{'b'}};
    for (int dim = 0; dim < space; ++dim) {
      output.append(qkv[1 + dim]);
      packed.push_back({"dhw"[3 - space + dim], options_.window[dim]});
      field.push_back(packed.back());
    }
    output.append(qkv.back());
    packed.push_back({'1'});
    packed.push_back({'c', options_.head_size});
    field.push_back(packed.back());
    const Letters by_head = {{'1'}, {'c'}};
    Signature signature;
    signature.name = "window_attention";
    signature.outputs = {output};
    signature.rules = rules_of_letters({packed, by_head}, field);
    signature.saved = {true, true};
    signature.keeps_findings = true;
    signature.forward_flops =
        4.0 * static_cast<double>(output.count()) * static_cast<double>(options_.window.count());
    return signature;
  }

  std::vector<Array> forward(Frame& frame, Operands& inputs) const override {
    const Array qkv = inputs.redistributed(0), table = inputs.redistributed(1);
    frame.long_work_follows();
    const Array rows = head_rows(frame, qkv);
    const AttentionResult result = attention_forward(frame.context(), {rows, 0}, {rows, 1}, {rows, 2},
                                                     options_of(frame, table), frame.dtype());
    frame.keep_findings(result);
    return {from_windows(frame.context(), result.output, options_.window, frame.output_box().extent)};
  }

  void backward(const Frame& frame, Operands& saved, Gradients& gradients) const override {
    Context& context = frame.context();
    const auto& result = frame.findings<AttentionResult>();
    const Array dy = to_windows(context, gradients.take(), options_.window).reshaped(result.output.shape());
    const Array qkv = saved.redistributed(0), rows = head_rows(frame, qkv);
    const AttentionOptions options = options_of(frame, saved.redistributed(1));
    frame.long_work_follows();
    const Array dqkv(context, rows.shape(), rows.dtype());
    const Array dbias(context, options.bias.shape(), options.bias.dtype());
    attention_backward(context, {rows, 0}, {rows, 1}, {rows, 2}, result.output, dy, result.log_sum_exp, {},
                       options, {dqkv, 0}, {dqkv, 1}, {dqkv, 2}, dbias);
    gradients.give(1, [&] { return relative_bias_backward(context, dbias, options_.window); });
    gradients.give(0, [&] { return from_windows(context, dqkv, options_.window, qkv.shape()); });
  }

 private:
  Array head_rows(const Frame& frame, const Array& qkv) const {
    const std::int64_t heads = frame.output_box().extent.back() / options_.head_size;
    const Array rows = to_windows(frame.context(), qkv, options_.window);
    return rows.reshaped({rows.shape()[0], rows.shape()[1], 3, heads, options_.head_size});
  }

  AttentionOptions options_of(const Frame& frame, const Array& table) const {
    const Box piece = frame.output_box();
    const Shape& global = frame.signature().outputs[0];
    AttentionOptions result{.scale = 1 / std::sqrt(static_cast<double>(options_.head_size))};
    result.bias = relative_bias(frame.context(), table, options_.window);
    if (piece.extent.count() == 0) return result;
    bool wraps = false;
    for (const std::int64_t wrapped : options_.wrapped) wraps = wraps || wrapped > 0;
    if (wraps)
      result.mask = wrap_mask(frame.context(), windows_of(global, piece, options_), frame.wide_type());
    if (frame.training() && options_.dropout > 0)
      result.dropout = dropout_of(frame.random(), global, piece, options_);
    return result;
  }

  WindowAttention options_;
};

}  // namespace

Variable window_attention(Tape& tape, const Variable& qkv, const Variable& table,
                          const WindowAttention& options) {
  return apply(tape, WindowAttentionOperation(options), {qkv, table});
}

// ---- Proof

std::vector<ProofCase> window_attention_cases() {
  const auto one = [](std::string name, const Shape& window, const Shape& wrapped,
                      const std::vector<std::vector<Shape>>& shapes) {
    return make_case(std::move(name), shapes, [=](Tape& tape, const std::vector<Variable>& x) {
      return window_attention(tape, x[0], x[1], {2, window, wrapped, 0.25, "path"});
    });
  };
  return {one("bwc", {3}, {1}, {{{3, 12, 3, 10}, {5, 5}}, {{2, 9, 3, 4}, {5, 2}}, {{4, 15, 3, 6}, {5, 3}}}),
          one("bhwc", {2, 3}, {1, 0},
              {{{3, 4, 9, 3, 6}, {15, 3}}, {{2, 8, 6, 3, 4}, {15, 2}}, {{4, 6, 12, 3, 8}, {15, 4}}})};
}

}  // namespace jigsaw::inline autograd
