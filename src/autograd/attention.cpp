#include "kernels/attention.h"

#include <cmath>
#include <utility>
#include <vector>

#include "autograd/operation.h"
#include "autograd/operations.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/copy.h"
#include "kernels/pointwise.h"

namespace jigsaw {

namespace {

/// Queries and keys as two operands, or one packed as [B, space…, 3, C].
struct Operands {
  std::vector<Variable> variables;  ///< {qkv}, or {q, kv}
  Attention options;

  bool packed() const { return variables.size() == 1; }
  const Variable& queries() const { return variables.front(); }
  const Variable& keys() const { return variables.back(); }
  /// Dims of space of q, and of k and v.
  int query_space() const { return queries().shape().rank() - (packed() ? 3 : 2); }
  int key_space() const { return keys().shape().rank() - 3; }
  std::int64_t channels() const { return queries().shape().back(); }
  Shape query_grid() const { return grid(queries().shape(), query_space()); }
  Shape key_grid() const { return grid(keys().shape(), key_space()); }
  /// Slot of the keys; values come next.
  int key_slot() const { return packed() ? 1 : 0; }

  static Shape grid(const Shape& shape, int space) {
    return Shape(std::span(shape.begin() + 1, static_cast<std::size_t>(space)));
  }
};

void require_operands(const Operands& of) {
  const Shape &q = of.queries().shape(), &kv = of.keys().shape();
  const bool fits = kv.rank() >= 4 && kv[kv.rank() - 2] == (of.packed() ? 3 : 2) && q[0] == kv[0] &&
                    q.back() == kv.back() && of.options.head_size > 0 && q.back() % of.options.head_size == 0;
  if (!fits || (!of.packed() && q.rank() < 3)) {
    throw ShapeError(
        concat("attention of ", q, " and ", kv, " with heads of ", of.options.head_size,
               " channels: should be [B, space…, 3, C], or [B, space…, C] and [B, space…, 2, C]"));
  }
}

/// Samples and heads are apart. Queries are too, where keys are whole; where keys are cut as well, along
/// whatever dim of theirs, keys and values go round.
std::vector<Row> rows_of(const Operands& of) {
  const auto letter = [](int space, int dim) { return std::string(1, "dhw"[3 - space + dim]); };
  const int query_last = of.queries().shape().rank() - 1, key_last = of.keys().shape().rank() - 1;
  const std::int64_t size = of.options.head_size;
  const auto on = [&](int query_dim, int key_dim, std::int64_t unit) {
    std::vector<Placement> inputs = {Placement::shard(query_dim, unit)};
    if (!of.packed()) inputs.push_back(Placement::shard(key_dim, unit));
    return inputs;
  };
  std::vector<Row> rows = {
      {"b", on(0, 0, 1), {Placement::shard(0)}},
      {"c", on(query_last, key_last, size), {Placement::shard(of.query_space() + 1, size)}}};
  for (int dim = 0; dim < of.query_space(); ++dim) {
    const std::string name = letter(of.query_space(), dim);
    const Placement cut = Placement::shard(1 + dim);
    if (of.packed()) {
      rows.push_back({name + " ring", {cut}, {cut}, true, true});
      continue;
    }
    rows.push_back({name, {cut, Placement::replicate()}, {cut}});
    for (int key = 0; key < of.key_space(); ++key) {
      const std::string label = concat(name, "/", letter(of.key_space(), key), " ring");
      rows.push_back({label, {cut, Placement::shard(1 + key)}, {cut}, true, true});
    }
  }
  return rows;
}

/// Keys and values that go round: what goes to each other rank over the elements of the last input's piece.
TransferCost ring_traffic(const OwnCall& call, std::span<const double> numbers) {
  const auto keys = static_cast<double>(call.piece(call.inputs.size() - 1).count());
  const double others = call.ranks() - 1;
  TransferCost cost;
  cost.add(Collective::kExchange, others * numbers[0] * keys * call.element_bytes, 3 * others);
  return cost;
}

Signature signature_of(const Operands& of) {
  Signature signature{of.packed() ? Operation::kAttention : Operation::kCrossAttention,
                      of.packed() ? "attention" : "cross_attention",
                      {},
                      {of.queries().shape()},
                      rows_of(of),
                      0,
                      {}};
  // Forward keys and values go to every other rank; backward they do again, and their gradients come back. A
  // packed operand holds as many queries.
  signature.own = {ring_traffic, {of.packed() ? 2.0 : 3.0}};
  for (const Variable& variable : of.variables) {
    signature.inputs.push_back(variable.shape());
    signature.saved.push_back(true);
  }
  if (of.packed()) {
    Shape field{of.queries().shape()[0]};
    for (const std::int64_t extent : of.query_grid()) field.append(extent);
    field.append(of.channels());
    signature.outputs[0] = field;
  }
  signature.forward_flops =
      4.0 * static_cast<double>(signature.outputs[0].count()) * static_cast<double>(of.key_grid().count());
  return signature;
}

/// Numbers in the grid of the tokens of a piece, whose space begins at dim 1.
std::vector<std::int64_t> token_numbers(const Shape& grid, const Box& piece) {
  std::vector<std::int64_t> numbers = {0};
  for (int dim = 0; dim < grid.rank(); ++dim) {
    std::vector<std::int64_t> next;
    for (const std::int64_t number : numbers) {
      for (std::int64_t i = 0; i < piece.extent[1 + dim]; ++i) {
        next.push_back(number * grid[dim] + piece.begin[1 + dim] + i);
      }
    }
    numbers = std::move(next);
  }
  return numbers;
}

/// A piece [B, space…, slots…, C] as rows of heads.
HeadRows rows_of_piece(const Array& piece, int space, std::int64_t slots, std::int64_t size, int slot = 0) {
  const Shape& shape = piece.shape();
  return {piece.reshaped({shape[0], shape.count(1, 1 + space), slots, shape.back() / size, size}), slot};
}

/// One call on this rank: its pieces, and those of the ranks among which keys and values go round. Rank r
/// takes the block of rank r − s in step s, whole and at once from its owner, so that all have equal work and
/// no block is passed on.
class Call {
 public:
  Call(Tape& tape, const Operands& of, const Decision& decision)
      : tape_(tape),
        size_(of.options.head_size),
        key_slot_(of.key_slot()),
        query_space_(of.query_space()),
        key_space_(of.key_space()),
        packed_(of.packed()),
        query_layout_{of.queries().shape(), decision.inputs.front()},
        key_layout_{of.keys().shape(), decision.inputs.back()},
        dropout_(tape.training() ? of.options.dropout : 0),
        random_(tape.random()),
        path_(of.options.path) {
    const Mesh& mesh = tape.rank().mesh;
    for (int axis = 0; axis < mesh.shape().axes; ++axis) {
      const Placement& placement = key_layout_.placements[axis];
      if (placement.is_shard() && placement.dim >= 1 && placement.dim <= key_space_) ring_ |= axis_bit(axis);
    }
    ring_ = mesh.active(ring_);
    for (int member = 0; member < mesh.size(ring_); ++member) {
      boxes_.push_back(key_layout_.box(mesh.shape(), mesh.member(ring_, member)));
    }
  }

  /// @return  output [B, Tq, heads, d] in the tape's type.
  AttentionResult forward(const Array& q, const Array& kv) {
    const HeadRows queries = query_rows(q);
    AttentionResult result;
    for_blocks(kv, [&](int owner, const HeadRows& k, const HeadRows& v) {
      const bool alone = boxes_.size() == 1;
      const DType type = alone ? q.dtype() : wide();
      const AttentionResult part = attention_forward(tape_.context(), queries, k, v, options(owner), type);
      if (result.output.defined()) {
        attention_combine(tape_.context(), result, part);
      } else {
        result = part;
      }
    });
    result.output = cast(tape_.context(), result.output, q.dtype());
    return result;
  }

  struct Gradients {
    Array dq, dkv;  ///< shapes of the operands' pieces; dq undefined where they are one
  };
  /// @param types  of the gradients.
  Gradients backward(const Array& q, const Array& kv, const AttentionResult& result, const Array& dy,
                     DType dq_type, DType dkv_type) {
    Context& context = tape_.context();
    const Array upstream = dy.reshaped(result.output.shape());
    const Array sums = attention_row_sums(context, result.output, upstream);
    const HeadRows queries = query_rows(q);
    Gradients gradients;
    if (boxes_.size() == 1) {
      gradients.dkv = Array(context, kv.shape(), dkv_type);
      if (!packed_) gradients.dq = Array(context, q.shape(), dq_type);
      const HeadRows dq = query_rows(packed_ ? gradients.dkv : gradients.dq);
      attention_backward(context, queries, key_rows(kv, 0), key_rows(kv, 1), upstream, result.log_sum_exp,
                         sums, options(0), dq, key_rows(gradients.dkv, 0), key_rows(gradients.dkv, 1), {});
      return gradients;
    }
    Array dq;
    Returns returns(*this, kv);
    for_blocks(kv, [&](int owner, const HeadRows& k, const HeadRows& v) {
      const Array part(context, block_shape(queries.array.shape(), queries.tokens(), 1), wide());
      const Array dkv(context, block_shape(k.array.shape(), k.tokens(), 2), wide());
      attention_backward(context, queries, k, v, upstream, result.log_sum_exp, sums, options(owner),
                         {part, 0}, {dkv, 0}, {dkv, 1}, {});
      if (dq.defined()) {
        accumulate(context, dq, part);
      } else {
        dq = part;
      }
      returns.send(owner, dkv);
    });
    const Array dkv = returns.total();
    if (!packed_) {
      gradients.dq = cast(context, dq, dq_type).reshaped(q.shape());
      gradients.dkv = cast(context, dkv, dkv_type).reshaped(kv.shape());
      return gradients;
    }
    Array joined(context, block_shape(dkv.shape(), queries.tokens(), 3), dkv_type);
    Box box = Box::whole(joined.shape());
    box.extent[2] = 1;
    copy_box(context, cast(context, dq, dkv_type), Box::whole(dq.shape()), joined, box);
    box.begin[2] = 1, box.extent[2] = 2;
    copy_box(context, cast(context, dkv, dkv_type), Box::whole(dkv.shape()), joined, box);
    gradients.dkv = joined.reshaped(kv.shape());
    return gradients;
  }

 private:
  static Shape block_shape(const Shape& rows, std::int64_t tokens, std::int64_t slots) {
    return {rows[0], tokens, slots, rows[3], rows[4]};
  }
  DType wide() const { return tape_.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32; }
  HeadRows query_rows(const Array& q) const { return rows_of_piece(q, query_space_, packed_ ? 3 : 1, size_); }
  /// Of the operand that holds keys and values: 0, the keys, or 1, the values.
  HeadRows key_rows(const Array& kv, int which) const {
    return rows_of_piece(kv, key_space_, packed_ ? 3 : 2, size_, key_slot_ + which);
  }
  int here() const { return tape_.rank().mesh.communicator(ring_).rank(); }
  int members() const { return static_cast<int>(boxes_.size()); }
  std::int64_t block_tokens(int owner) const {
    return boxes_[static_cast<std::size_t>(owner)].extent.count(1, 1 + key_space_);
  }
  /// Elements of a member's keys and values.
  std::int64_t block_count(const Shape& rows, int owner) const {
    return block_shape(rows, block_tokens(owner), 2).count();
  }

  /// A message each way, where there is anything to send.
  Pending transfer(const Array& send, int to, int from, std::int64_t receive_count) const {
    std::vector<Message> sends, receives;
    if (send.count() > 0) sends.push_back({to, 0, send.count()});
    if (receive_count > 0) receives.push_back({from, 0, receive_count});
    return tape_.rank().mesh.communicator(ring_).start_exchange(send.reshaped({send.count()}), sends,
                                                                receives, receive_count);
  }

  /// Calls f(owner, k, v) for every member's block, this rank's own first; the next block travels meanwhile.
  template <typename F>
  void for_blocks(const Array& kv, const F& f) {
    const HeadRows own_k = key_rows(kv, 0), own_v = key_rows(kv, 1);
    if (members() == 1) {
      tape_.long_work_follows();
      return f(0, own_k, own_v);
    }
    const int rank = here();
    const Shape& rows = own_k.array.shape();
    Box box = Box::whole(rows);
    box.begin[2] = own_k.slot, box.extent[2] = 2;
    const Array own = packed_ ? extract_box(tape_.context(), own_k.array, box) : own_k.array;
    const auto fetch = [&](int step) {
      const int owner = (rank - step + members()) % members();
      return transfer(own, (rank + step) % members(), owner, block_count(rows, owner));
    };
    Pending next = fetch(1);
    tape_.long_work_follows();
    f(rank, own_k, own_v);
    for (int step = 1; step < members(); ++step) {
      const int owner = (rank - step + members()) % members();
      const Array block = next.wait().reshaped(block_shape(rows, block_tokens(owner), 2));
      if (step + 1 < members()) next = fetch(step + 1);
      f(owner, {block, 0}, {block, 1});
    }
  }

  /// Gradients of keys and values on their way back to the owners, added up there in the order of the steps.
  class Returns {
   public:
    Returns(const Call& call, const Array& kv) : call_(call), rows_(call.key_rows(kv, 0).array.shape()) {}

    void send(int owner, const Array& dkv) {
      const int rank = call_.here(), members = call_.members();
      if (owner == rank) {
        total_ = dkv;
        return;
      }
      add_arrived();
      arriving_ = call_.transfer(dkv, owner, (2 * rank - owner + members) % members, total_.count());
    }
    Array total() {
      add_arrived();
      return total_;
    }

   private:
    void add_arrived() {
      if (!arriving_.valid()) return;
      accumulate(call_.tape_.context(), total_, arriving_.wait().reshaped(total_.shape()));
    }

    const Call& call_;
    Shape rows_;
    Array total_;
    Pending arriving_;
  };

  AttentionOptions options(int owner) const {
    AttentionOptions result{.scale = 1 / std::sqrt(static_cast<double>(size_))};
    if (dropout_ == 0) return result;
    const Box queries = tape_.rank().box(query_layout_);
    AttentionDropout dropout{dropout_, RandomStream(random_.seed, RandomPurpose::kDropout, path_),
                             random_.position};
    const Shape query_grid = Operands::grid(query_layout_.global, query_space_),
                key_grid = Operands::grid(key_layout_.global, key_space_);
    dropout.position.sample += static_cast<std::uint64_t>(queries.begin[0]);
    dropout.first_head = queries.begin[queries.begin.rank() - 1] / size_;
    dropout.queries = token_numbers(query_grid, queries);
    dropout.keys = token_numbers(key_grid, boxes_[static_cast<std::size_t>(owner)]);
    dropout.total_queries = query_grid.count();
    dropout.total_keys = key_grid.count();
    result.dropout = std::move(dropout);
    return result;
  }

  Tape& tape_;
  std::int64_t size_;
  int key_slot_, query_space_, key_space_;
  bool packed_;
  Layout query_layout_, key_layout_;
  double dropout_;
  RandomState random_;  ///< of the forward pass
  std::string path_;
  AxisSet ring_ = 0;
  std::vector<Box> boxes_;  // of each member of the ring
};

Variable attend(Tape& tape, const Operands& of) {
  require_operands(of);
  const Signature signature = signature_of(of);
  if (tape.tracing()) return tape.trace(signature, of.variables);
  const Decision& decision = tape.decide(signature);
  auto call = std::make_shared<Call>(tape, of, decision);
  const Array q = tape.bring(of.queries(), decision.inputs.front()).piece;
  const Array kv = of.packed() ? q : tape.bring(of.keys(), decision.inputs.back()).piece;
  const AttentionResult result = call->forward(q, kv);
  const Shape piece = tape.rank().box({signature.outputs[0], decision.row_outputs[0]}).extent;
  const bool records = tape.records(of.variables);
  Variable y = tape.keep(result.output.reshaped(piece), signature.outputs[0], decision, records);
  if (!records) return y;

  std::vector<std::function<ShardedTensor()>> saved;
  for (const Variable& variable : of.variables) saved.push_back(variable.save());
  const std::vector<GradientTarget> targets(of.variables.begin(), of.variables.end());
  tape.record([&tape, &decision, call, result, saved, targets, slot = y.slot()] {
    if (!slot->gradient.defined()) return;
    const Array dy = tape.bring(slot->take(), dual(decision.row_outputs[0])).piece;
    const Array q_again = tape.bring(saved.front()(), decision.inputs.front()).piece;
    const Array kv_again =
        saved.size() == 1 ? q_again : tape.bring(saved.back()(), decision.inputs.back()).piece;
    const Placements of_q = tape.gradient_placements(decision, 0),
                     of_kv = tape.gradient_placements(decision, targets.size() - 1);
    const Call::Gradients gradients =
        call->backward(q_again, kv_again, result, dy, tape.gradient_type(of_q), tape.gradient_type(of_kv));
    if (targets.size() == 2) targets[0].give(tape.rank(), of_q, [&] { return gradients.dq; });
    targets.back().give(tape.rank(), of_kv, [&] { return gradients.dkv; });
  });
  return y;
}

}  // namespace

Variable attention(Tape& tape, const Variable& qkv, const Attention& options) {
  return attend(tape, {{qkv}, options});
}

Variable cross_attention(Tape& tape, const Variable& q, const Variable& kv, const Attention& options) {
  return attend(tape, {{q, kv}, options});
}

}  // namespace jigsaw
