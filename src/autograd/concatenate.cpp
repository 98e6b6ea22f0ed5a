
#include "autograd/neighbourhood.h"
#include "autograd/registry.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/copy.h"
#include "parallel/exchange.h"

namespace jigsaw::inline autograd {

namespace {

/// Upper bound of what moves to other ranks, forward and again backward: numbers[0] times the elements of the
/// first input's piece.
TransferCost moved_traffic(const OwnCall& call, std::span<const double> numbers) {
  TransferCost cost;
  cost.add(Collective::kExchange,
           2 * numbers[0] * static_cast<double>(call.piece(0).count()) * call.element_bytes, 2);
  return cost;
}

/// Consecutive parts of one dim, apart and joined: pieces of the parts become a piece of the whole, and the
/// adjoint. Where the dim is cut, elements of the parts stand on other ranks in the whole.
class Joint {
 public:
  Joint(const Rank& rank, const std::vector<Layout>& parts, const Layout& whole, int dim)
      : rank_(rank), extent_(rank.box(whole).extent) {
    std::int64_t first = 0;
    for (const Layout& part : parts) {
      require_cut_alike(part, whole, 0, whole.global.rank() - 1);
      const IndexMap map{{{dim, Reads::shifted(-first), Edge::kNone, Edge::kNone}}, -1, {}};
      Part& one = parts_.emplace_back(Part{Exchange::of(rank, map, part, whole), Box::whole(extent_)});
      const Box& wanted = one.exchange->wanted();
      one.place.extent[dim] = wanted.extent[dim];
      if (!wanted.empty()) one.place.begin[dim] = wanted.begin[dim] + first - rank.box(whole).begin[dim];
      first += part.global[dim];
    }
  }

  /// The whole, the parts' transfers under way together.
  Array join(const std::vector<Array>& pieces) const {
    std::vector<Pending> pending(parts_.size());
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].exchange->travels()) pending[i] = parts_[i].exchange->start(rank_, pieces[i]);
    }
    Array joined(rank_.context, extent_, pieces[0].dtype());
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Exchange& exchange = *parts_[i].exchange;
      const Array arrived = pending[i].valid() ? pending[i].wait() : Array();
      const Array piece = exchange.assemble(rank_, pieces[i], arrived, exchange.wanted());
      copy_box(rank_.context, piece, Box::whole(piece.shape()), joined, parts_[i].place);
    }
    return joined;
  }

  Array part(const Array& whole, std::size_t i) const {
    return parts_[i].exchange->scatter(rank_, extract_box(rank_.context, whole, parts_[i].place));
  }

 private:
  struct Part {
    std::shared_ptr<const Exchange> exchange;  ///< brings what this rank's piece of the whole has of the part
    Box place;                                 ///< where that stands in it
  };
  const Rank& rank_;
  Shape extent_;
  std::vector<Part> parts_;
};

/// What both directions say: rules of the parts' and the whole's common letters.
Signature signature_of(std::string name, const Shape& first, const Shape& whole, std::size_t parts, int dim,
                       bool joins) {
  const int last = whole.rank() - 1;
  require(dim >= 1 && dim <= last && last <= 4, "fields are joined and split along space or channels");
  Signature signature;
  signature.name = std::move(name);
  signature.saved.assign(joins ? parts : 1, false);
  signature.rematerialised = joins;
  const Letters dims = field_dims(last - 1, {'c'});
  const std::vector<Letters> one = {dims}, many(parts, dims);
  signature.rules = rules_of_letters(joins ? many : one, joins ? one : many);
  for (ShardingRule& rule : signature.rules)
    rule.communicates = rule.moves_result = rule.outputs[0] == Placement::shard(dim);
  const double moved = joins ? static_cast<double>(whole[dim]) / static_cast<double>(first[dim]) : 1;
  signature.own = {moved_traffic, {moved}};
  signature.rules.push_back(linear_rule(std::vector<bool>(signature.saved.size(), true), joins ? 1 : parts));
  return signature;
}

class Concatenation : public Operation {
 public:
  explicit Concatenation(int dim) : dim_(dim) {}

  std::string_view name() const override { return "concatenate"; }

  Signature signature(std::span<const Shape> inputs) const override {
    Shape whole = inputs[0];
    for (const Shape& input : inputs.subspan(1)) {
      Shape alike = input;
      if (input.rank() == whole.rank()) alike[dim_] = inputs[0][dim_];
      if (!(alike == inputs[0])) throw ShapeError(concat("cannot join ", inputs[0], " and ", input));
      whole[dim_] += input[dim_];
    }
    Signature signature = signature_of("concatenate", inputs[0], whole, inputs.size(), dim_, true);
    signature.outputs = {whole};
    return signature;
  }

  std::vector<Array> forward(Frame& frame, Operands& inputs) const override {
    std::vector<Array> pieces;
    for (std::size_t i = 0; i < frame.signature().inputs.size(); ++i)
      pieces.push_back(inputs.redistributed(i));
    return {joint(frame).join(pieces)};
  }

  void backward(const Frame& frame, Operands&, Gradients& gradients) const override {
    const Array dy = gradients.take();
    const Joint parts = joint(frame);
    for (std::size_t i = 0; i < frame.signature().inputs.size(); ++i) {
      if (gradients.wanted(i)) gradients.give(i, parts.part(dy, i));
    }
  }

 private:
  Joint joint(const Frame& frame) const {
    std::vector<Layout> parts;
    for (std::size_t i = 0; i < frame.signature().inputs.size(); ++i) parts.push_back(frame.input(i));
    return {frame.rank(), parts, frame.output(), dim_};
  }

  int dim_;
};

class Split : public Operation {
 public:
  Split(int dim, std::vector<std::int64_t> extents) : dim_(dim), extents_(std::move(extents)) {}

  std::string_view name() const override { return "split"; }

  Signature signature(std::span<const Shape> inputs) const override {
    std::int64_t sum = 0;
    for (const std::int64_t extent : extents_) sum += extent;
    if (dim_ >= inputs[0].rank() || sum != inputs[0][dim_]) {
      throw ShapeError(concat("split of dim ", dim_, " of ", inputs[0], " into ", join(extents_, " + "),
                              ": should add up to its extent"));
    }
    Signature signature =
        signature_of(concat("split ", dim_), inputs[0], inputs[0], extents_.size(), dim_, false);
    for (const std::int64_t extent : extents_) {
      signature.outputs.push_back(inputs[0]);
      signature.outputs.back()[dim_] = extent;
    }
    return signature;
  }

  std::vector<Array> forward(Frame& frame, Operands& inputs) const override {
    const Array x = inputs.redistributed(0);
    const Joint parts = joint(frame);
    std::vector<Array> pieces;
    for (std::size_t o = 0; o < extents_.size(); ++o) pieces.push_back(parts.part(x, o));
    return pieces;
  }

  void backward(const Frame& frame, Operands&, Gradients& gradients) const override {
    std::vector<Array> pieces;
    for (std::size_t o = 0; o < extents_.size(); ++o) pieces.push_back(gradients.take(o));
    if (gradients.wanted(0)) gradients.give(0, joint(frame).join(pieces));
  }

 private:
  Joint joint(const Frame& frame) const {
    std::vector<Layout> parts;
    for (std::size_t o = 0; o < extents_.size(); ++o) parts.push_back(frame.output(o));
    return {frame.rank(), parts, frame.input(0), dim_};
  }

  int dim_;
  std::vector<std::int64_t> extents_;
};

}  // namespace

Variable concatenate(Tape& tape, const Variable& x, const Variable& y) {
  return apply(tape, Concatenation(x.shape().rank() - 1), {x, y});
}

std::vector<Variable> split(Tape& tape, const Variable& x, int dim,
                            const std::vector<std::int64_t>& extents) {
  return tape.run(std::make_shared<const Split>(dim, extents), {x});
}

// ---- Proof

std::vector<ProofCase> concatenate_cases() {
  return {make_case(
      "fields", {{{3, 5, 4, 2}, {3, 5, 4, 3}}, {{2, 4, 5, 1}, {2, 4, 5, 6}}, {{4, 2, 3, 5}, {4, 2, 3, 1}}},
      [](Tape& tape, const std::vector<Variable>& x) { return concatenate(tape, x[0], x[1]); })};
}

std::vector<ProofCase> split_cases() {
  struct Sizes {
    Shape field;
    std::vector<std::int64_t> extents;
  };
  const auto one = [](std::string name, int dim, const std::vector<Sizes>& all) {
    ProofCase result{std::move(name), {}};
    for (const Sizes& sizes : all) {
      result.instances.push_back({{sizes.field}, [=](Tape& tape, const std::vector<Variable>& x) {
                                    return split(tape, x[0], dim, sizes.extents);
                                  }});
    }
    return result;
  };
  return {one("channels in two", 3, {{{3, 5, 4, 5}, {2, 3}}, {{2, 4, 5, 7}, {1, 6}}, {{4, 2, 3, 6}, {5, 1}}}),
          one("rows in two", 1, {{{3, 5, 2, 4}, {2, 3}}, {{2, 7, 3, 5}, {6, 1}}, {{4, 4, 5, 2}, {2, 2}}})};
}

}  // namespace jigsaw::inline autograd
