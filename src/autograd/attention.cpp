#include "kernels/attention.h"

#include <cmath>
#include <utility>
#include <vector>

#include "autograd/operations.h"
#include "autograd/registry.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/record/repeated_steps.h"
#include "kernels/copy.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline autograd {

namespace {

/// Queries and keys as two operands, or one packed as [B, space…, 3, C].
struct Tokens {
  std::span<const Shape> shapes;  ///< {qkv}, or {q, kv}

  bool packed() const { return shapes.size() == 1; }
  const Shape& queries() const { return shapes.front(); }
  const Shape& keys() const { return shapes.back(); }
  /// Dims of space of q, and of k and v.
  int query_space() const { return queries().rank() - (packed() ? 3 : 2); }
  int key_space() const { return keys().rank() - 3; }
  Shape query_grid() const { return grid(queries(), query_space()); }
  Shape key_grid() const { return grid(keys(), key_space()); }
  /// Slot of the keys; values come next.
  int key_slot() const { return packed() ? 1 : 0; }

  static Shape grid(const Shape& shape, int space) {
    return Shape(std::span(shape.begin() + 1, static_cast<std::size_t>(space)));
  }
};

void require_operands(const Tokens& of, std::int64_t size) {
  const Shape &q = of.queries(), &kv = of.keys();
  const bool fits = kv.rank() >= 4 && kv[kv.rank() - 2] == (of.packed() ? 3 : 2) && q[0] == kv[0] &&
                    q.back() == kv.back() && size > 0 && q.back() % size == 0;
  if (!fits || (!of.packed() && q.rank() < 3)) {
    throw ShapeError(
        concat("attention of ", q, " and ", kv, " with heads of ", size,
               " channels: should be [B, space…, 3, C], or [B, space…, C] and [B, space…, 2, C]"));
  }
}

/// Samples and heads are apart. Queries are too, where keys are whole; where keys are cut as well, along
/// whatever dim of theirs, keys and values go round.
std::vector<ShardingRule> rules_of(const Tokens& of, std::int64_t size) {
  const auto letter = [](int space, int dim) { return std::string(1, "dhw"[3 - space + dim]); };
  const int query_last = of.queries().rank() - 1, key_last = of.keys().rank() - 1;
  const auto on = [&](int query_dim, int key_dim, std::int64_t unit) {
    std::vector<Placement> inputs = {Placement::shard(query_dim, unit)};
    if (!of.packed()) inputs.push_back(Placement::shard(key_dim, unit));
    return inputs;
  };
  std::vector<ShardingRule> rules = {
      {"b", on(0, 0, 1), {Placement::shard(0)}},
      {"c", on(query_last, key_last, size), {Placement::shard(of.query_space() + 1, size)}}};
  for (int dim = 0; dim < of.query_space(); ++dim) {
    const std::string name = letter(of.query_space(), dim);
    const Placement cut = Placement::shard(1 + dim);
    if (of.packed()) {
      rules.push_back({name + " ring", {cut}, {cut}, true, true});
      continue;
    }
    rules.push_back({name, {cut, Placement::replicate()}, {cut}});
    for (int key = 0; key < of.key_space(); ++key) {
      const std::string label = concat(name, "/", letter(of.key_space(), key), " ring");
      rules.push_back({label, {cut, Placement::shard(1 + key)}, {cut}, true, true});
    }
  }
  return rules;
}

/// Traffic of keys and values that go round: what goes to each other rank, over the elements of the last
/// input's piece.
TransferCost ring_traffic(const OwnCall& call, std::span<const double> numbers) {
  const auto keys = static_cast<double>(call.piece(call.inputs.size() - 1).count());
  const double others = call.ranks() - 1;
  TransferCost cost;
  cost.add(Collective::kExchange, others * numbers[0] * keys * call.element_bytes, 3 * others);
  return cost;
}

/// Where the tokens of a piece stand.
TokenPlaces token_places(const Layout& layout, const Box& piece, int space) {
  const Shape extent = Tokens::grid(piece.extent, space);
  return {Tokens::grid(layout.global, space), {Tokens::grid(piece.begin, space), extent}, extent};
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
  Call(const Frame& frame, const Tokens& of, const Attention& options)
      : frame_(frame),
        size_(options.head_size),
        key_slot_(of.key_slot()),
        query_space_(of.query_space()),
        key_space_(of.key_space()),
        packed_(of.packed()),
        query_layout_(frame.input(0)),
        key_layout_(frame.input(of.shapes.size() - 1)),
        dropout_(frame.training() ? options.dropout : 0),
        path_(options.path),
        ring_(frame.cutting(of.shapes.size() - 1, 1, key_space_)) {
    const Mesh& mesh = frame.rank().mesh;
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
      const AttentionResult part = attention_forward(frame_.context(), queries, k, v, options(owner), type);
      if (result.output.defined()) {
        attention_combine(frame_.context(), result, part);
      } else {
        result = part;
      }
    });
    result.output = cast(frame_.context(), result.output, q.dtype());
    return result;
  }

  struct Gradients {
    Array dq, dkv;  ///< shapes of the operands' pieces; dq undefined where they are one
  };
  /// @param types  of the gradients.
  Gradients backward(const Array& q, const Array& kv, const AttentionResult& result, const Array& dy,
                     DType dq_type, DType dkv_type) {
    Context& context = frame_.context();
    const Array upstream = dy.reshaped(result.output.shape());
    const HeadRows queries = query_rows(q);
    Gradients gradients;
    if (boxes_.size() == 1) {
      gradients.dkv = Array(context, kv.shape(), dkv_type);
      if (!packed_) gradients.dq = Array(context, q.shape(), dq_type);
      const HeadRows dq = query_rows(packed_ ? gradients.dkv : gradients.dq);
      attention_backward(context, queries, key_rows(kv, 0), key_rows(kv, 1), result.output, upstream,
                         result.log_sum_exp, {}, options(0), dq, key_rows(gradients.dkv, 0),
                         key_rows(gradients.dkv, 1), {});
      return gradients;
    }
    const Array sums = attention_row_sums(context, result.output, upstream);
    Array dq;
    Returns returns(*this);
    for_blocks(kv, [&](int owner, const HeadRows& k, const HeadRows& v) {
      const Array part(context, block_shape(queries.array.shape(), queries.tokens(), 1), wide());
      const Array dkv(context, block_shape(k.array.shape(), k.tokens(), 2), wide());
      attention_backward(context, queries, k, v, result.output, upstream, result.log_sum_exp, sums,
                         options(owner), {part, 0}, {dkv, 0}, {dkv, 1}, {});
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
  DType wide() const { return frame_.wide_type(); }
  HeadRows query_rows(const Array& q) const { return rows_of_piece(q, query_space_, packed_ ? 3 : 1, size_); }
  /// Of the operand that holds keys and values: 0, the keys, or 1, the values.
  HeadRows key_rows(const Array& kv, int which) const {
    return rows_of_piece(kv, key_space_, packed_ ? 3 : 2, size_, key_slot_ + which);
  }
  int here() const { return frame_.group(ring_).rank(); }
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
    return frame_.group(ring_).start_exchange(send.reshaped({send.count()}), sends, receives, receive_count);
  }

  /// Calls f(owner, k, v) for every member's block, this rank's own first; the next block travels meanwhile.
  template <typename F>
  void for_blocks(const Array& kv, const F& f) {
    const HeadRows own_k = key_rows(kv, 0), own_v = key_rows(kv, 1);
    if (members() == 1) {
      frame_.long_work_follows();
      return f(0, own_k, own_v);
    }
    const int rank = here();
    const Shape& rows = own_k.array.shape();
    Box box = Box::whole(rows);
    box.begin[2] = own_k.slot, box.extent[2] = 2;
    const Array own = packed_ ? extract_box(frame_.context(), own_k.array, box) : own_k.array;
    const auto owner_at = [&](int step) { return (rank - step + members()) % members(); };
    const auto fetch = [&](int step) {
      const int owner = owner_at(step);
      return transfer(own, (rank + step) % members(), owner, block_count(rows, owner));
    };
    Pending next = fetch(1);
    frame_.long_work_follows();
    f(rank, own_k, own_v);
    std::vector<std::vector<std::int64_t>> kinds;  // by the blocks of the steps before, here and behind
    for (int step = 1; step < members(); ++step) {
      kinds.push_back({block_tokens(owner_at(step - 1)), block_tokens(owner_at(step)),
                       step + 1 < members() ? block_tokens(owner_at(step + 1)) : -1});
    }
    for_steps(frame_.group(ring_), kinds, [&](std::size_t number) {
      const int step = static_cast<int>(number) + 1, owner = owner_at(step);
      const Array block = next.wait().reshaped(block_shape(rows, block_tokens(owner), 2));
      if (step + 1 < members()) next = fetch(step + 1);
      f(owner, {block, 0}, {block, 1});
    });
  }

  /// Gradients of keys and values on their way back to the owners, added up there in the order of the steps.
  class Returns {
   public:
    explicit Returns(const Call& call) : call_(call) {}

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
      accumulate(call_.frame_.context(), total_, arriving_.wait().reshaped(total_.shape()));
    }

    const Call& call_;
    Array total_;
    Pending arriving_;
  };

  AttentionOptions options(int owner) const {
    AttentionOptions result{.scale = 1 / std::sqrt(static_cast<double>(size_))};
    if (dropout_ == 0) return result;
    const Box queries = frame_.rank().box(query_layout_);
    AttentionDropout dropout{dropout_, RandomStream(frame_.random().seed, RandomPurpose::kDropout, path_),
                             frame_.random().position};
    dropout.position.sample += static_cast<std::uint64_t>(queries.begin[0]);
    dropout.first_head = queries.begin[queries.begin.rank() - 1] / size_;
    dropout.queries = token_places(query_layout_, queries, query_space_);
    dropout.keys = token_places(key_layout_, boxes_[static_cast<std::size_t>(owner)], key_space_);
    result.dropout = dropout;
    return result;
  }

  const Frame& frame_;
  std::int64_t size_;
  int key_slot_, query_space_, key_space_;
  bool packed_;
  Layout query_layout_, key_layout_;
  double dropout_;
  std::string path_;
  AxisSet ring_;
  std::vector<Box> boxes_;  // of each member of the ring
};

/// Findings: the result and what backward reads of the weights.
class AttentionOperation : public Operation {
 public:
  /// @param packed  whether there is one operand.
  AttentionOperation(Attention options, bool packed) : options_(std::move(options)), packed_(packed) {}

  std::string_view name() const override { return packed_ ? "attention" : "cross_attention"; }

  Signature signature(std::span<const Shape> inputs) const override {
    const Tokens of{inputs};
    require_operands(of, options_.head_size);
    Signature signature;
    signature.name = name();
    Shape output = of.queries();
    if (packed_) {
      output = Shape{of.queries()[0]};
      for (const std::int64_t extent : of.query_grid()) output.append(extent);
      output.append(of.queries().back());
    }
    signature.outputs = {output};
    signature.rules = rules_of(of, options_.head_size);
    signature.saved.assign(inputs.size(), true);
    signature.keeps_findings = true;
    // Forward keys and values go to every other rank; backward they do again, and their gradients come back.
    // A packed operand holds as many queries.
    signature.own = {ring_traffic, {packed_ ? 2.0 : 3.0}};
    signature.forward_flops =
        4.0 * static_cast<double>(output.count()) * static_cast<double>(of.key_grid().count());
    return signature;
  }

  std::vector<Array> forward(Frame& frame, Operands& inputs) const override {
    const Array q = inputs.redistributed(0), kv = packed_ ? q : inputs.redistributed(1);
    const AttentionResult result = call(frame).forward(q, kv);
    frame.keep_findings(result);
    return {result.output.reshaped(frame.output_box().extent)};
  }

  void backward(const Frame& frame, Operands& saved, Gradients& gradients) const override {
    const Array dy = gradients.take(), q = saved.redistributed(0), kv = packed_ ? q : saved.redistributed(1);
    const std::size_t keys = packed_ ? 0 : 1;
    const Call::Gradients found = call(frame).backward(q, kv, frame.findings<AttentionResult>(), dy,
                                                       frame.gradient_type(0), frame.gradient_type(keys));
    if (!packed_) gradients.give(0, found.dq);
    gradients.give(keys, found.dkv);
  }

 private:
  Call call(const Frame& frame) const { return {frame, {frame.signature().inputs}, options_}; }

  Attention options_;
  bool packed_;
};

}  // namespace

Variable attention(Tape& tape, const Variable& qkv, const Attention& options) {
  return apply(tape, AttentionOperation(options, true), {qkv});
}

Variable cross_attention(Tape& tape, const Variable& q, const Variable& kv, const Attention& options) {
  return apply(tape, AttentionOperation(options, false), {q, kv});
}

// ---- Proof

namespace {

/// Weights are dropped by global number, so that a rule that numbers them wrongly is seen.
constexpr double kDropout = 0.25;

ProofCase self_case(std::string name, std::int64_t head_size, const std::vector<std::vector<Shape>>& shapes) {
  return make_case(std::move(name), shapes, [head_size](Tape& tape, const std::vector<Variable>& x) {
    return attention(tape, x[0], {head_size, kDropout, "path"});
  });
}

ProofCase cross_case(std::string name, std::int64_t head_size,
                     const std::vector<std::vector<Shape>>& shapes) {
  return make_case(std::move(name), shapes, [head_size](Tape& tape, const std::vector<Variable>& x) {
    return cross_attention(tape, x[0], x[1], {head_size, kDropout, "path"});
  });
}

}  // namespace

std::vector<ProofCase> attention_cases() {
  return {self_case("bwc", 2, {{{3, 4, 3, 10}}, {{2, 7, 3, 4}}, {{4, 2, 3, 6}}}),
          self_case("bhwc", 2, {{{3, 2, 5, 3, 6}}, {{2, 4, 3, 3, 8}}, {{4, 5, 2, 3, 4}}}),
          self_case("bdhwc", 1, {{{3, 2, 3, 2, 3, 5}}, {{2, 3, 2, 4, 3, 2}}, {{4, 4, 5, 3, 3, 3}}})};
}

std::vector<ProofCase> cross_attention_cases() {
  return {
      cross_case("bwc of bwc", 2,
                 {{{3, 4, 10}, {3, 5, 2, 10}}, {{2, 7, 4}, {2, 3, 2, 4}}, {{4, 2, 6}, {4, 4, 2, 6}}}),
      cross_case("bhwc of bhwc", 2,
                 {{{3, 2, 5, 6}, {3, 4, 3, 2, 6}},
                  {{2, 4, 3, 8}, {2, 2, 5, 2, 8}},
                  {{4, 5, 2, 4}, {4, 3, 4, 2, 4}}}),
      cross_case("bhwc of bwc", 1,
                 {{{3, 2, 5, 3}, {3, 4, 2, 3}}, {{2, 4, 3, 5}, {2, 5, 2, 5}}, {{4, 5, 2, 4}, {4, 3, 2, 4}}})};
}

}  // namespace jigsaw::inline autograd
