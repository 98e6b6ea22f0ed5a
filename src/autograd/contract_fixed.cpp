#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "array/grid.h"
#include "array/transfer.h"
#include "autograd/operations.h"
#include "autograd/registry.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/contraction.h"
#include "kernels/pointwise.h"
#include "parallel/book.h"

namespace jigsaw::inline autograd {

namespace {

/// The pieces of factors that a context has made.
struct FixedPieces {
  struct Key {
    std::string name;
    Box box;
    DType dtype;
    bool operator==(const Key&) const = default;
  };
  Book<Key, Array> made;
};

/// Slab by slab, so that few numbers stand there as float64.
void fill(Context& context, const FixedFactor& factor, const Box& box, Array& host) {
  constexpr std::int64_t kSlab = std::int64_t{1} << 18;
  const std::int64_t each = box.extent.count(1, box.extent.rank()),
                     rows = std::max<std::int64_t>(1, kSlab / std::max<std::int64_t>(each, 1));
  for (std::int64_t first = 0; first < box.extent[0]; first += rows) {
    Box slab = box;
    slab.begin[0] += first;
    slab.extent[0] = std::min(rows, box.extent[0] - first);
    write_values(context.host(), host.slice(first * each, slab.extent), factor.values(slab));
  }
}

/// Counted with the activations, beside which it stands.
Array piece_of(Context& context, const FixedFactor& factor, const Box& box, DType dtype) {
  return *context.state<FixedPieces>().made.of({factor.name, box, dtype}, [&] {
    Array piece(context, box.extent, dtype, Purpose::kActivations);
    fill_from_host(context, piece, [&](Array& host) { fill(context, factor, box, host); });
    return std::make_shared<const Array>(std::move(piece));
  });
}

/// While it lives products of float32 may round their factors as `train.tf32` has it, where that rounds less
/// than the type of values does.
class RoundedFactors {
 public:
  RoundedFactors(Context& context, bool rounded) : context_(context), before_(context.tf32()) {
    context_.set_tf32(before_ || rounded);
  }
  ~RoundedFactors() { context_.set_tf32(before_); }
  RoundedFactors(const RoundedFactors&) = delete;
  RoundedFactors& operator=(const RoundedFactors&) = delete;

 private:
  Context& context_;
  bool before_;
};

/// Input: x. The factor has no placement: whichever part of it a rule needs the rank makes.
class FixedContraction : public Operation {
 public:
  FixedContraction(ContractionSpec spec, std::shared_ptr<const FixedFactor> factor)
      : spec_(std::move(spec)), factor_(std::move(factor)) {}

  std::string_view name() const override { return "contract_fixed"; }

  Signature signature(std::span<const Shape> inputs) const override {
    const Shape& x = inputs[0];
    if (static_cast<int>(spec_.a.size()) != x.rank() ||
        static_cast<int>(spec_.b.size()) != factor_->shape.rank()) {
      throw ShapeError(
          concat("contraction ", spec_.to_string(), " of ", x, " and the fixed ", factor_->shape));
    }
    Signature signature;
    signature.name = concat("contract_fixed ", spec_.to_string(), " ", factor_->name);
    Shape output;
    signature.forward_flops = 2.0 * static_cast<double>(x.count());
    for (const char letter : spec_.c) output.append(extent_of(letter, x));
    for (const char letter : spec_.b) {
      if (spec_.a.find(letter) == std::string::npos)
        signature.forward_flops *= static_cast<double>(extent_of(letter, x));
    }
    signature.outputs = {output};
    signature.rules = rules_of_letters({letters(spec_.a), letters(spec_.b)}, letters(spec_.c));
    for (ShardingRule& rule : signature.rules) rule.inputs.pop_back();
    signature.rules.push_back(linear_rule({true}));
    signature.saved = {false};
    return signature;
  }

  std::vector<Array> forward(Frame& frame, Operands& inputs) const override {
    return {product(frame, spec_, inputs.redistributed(0), frame.output_type())};
  }

  void backward(const Frame& frame, Operands&, Gradients& gradients) const override {
    const Array dy = gradients.take();
    gradients.give(0, [&] {
      return product(frame, {spec_.c, spec_.b, spec_.a}, dy, frame.gradient_type(0));
    });
  }

 private:
  std::int64_t extent_of(char letter, const Shape& x) const {
    const std::size_t in_x = spec_.a.find(letter);
    return in_x != std::string::npos ? x[static_cast<int>(in_x)]
                                     : factor_->shape[static_cast<int>(spec_.b.find(letter))];
  }

  /// The part of the factor that goes with the pieces of x and the output: each of its letters is in one of
  /// them.
  Box factor_box(const Frame& frame) const {
    const Box x = frame.input_box(0), y = frame.output_box();
    Box box;
    for (const char letter : spec_.b) {
      const std::size_t in_x = spec_.a.find(letter);
      const Box& of = in_x != std::string::npos ? x : y;
      const auto dim = static_cast<int>(in_x != std::string::npos ? in_x : spec_.c.find(letter));
      box.begin.append(of.begin[dim]);
      box.extent.append(of.extent[dim]);
    }
    return box;
  }

  /// In float32 where values are bfloat16, in which a table would lose its digits; a GPU may take both as
  /// TensorFloat-32, exactly those values.
  Array product(const Frame& frame, const ContractionSpec& spec, const Array& a, DType out) const {
    Context& context = frame.context();
    const DType wide = frame.wide_type();
    const Array factor = piece_of(context, *factor_, factor_box(frame), wide);
    frame.long_work_follows();
    const RoundedFactors rounded(context, frame.dtype() == DType::kBfloat16);
    return cast(context, contract(context, spec, cast(context, a, wide), factor, wide), out);
  }

  ContractionSpec spec_;
  std::shared_ptr<const FixedFactor> factor_;
};

}  // namespace

Variable contract_fixed(Tape& tape, std::string_view spec, const Variable& x,
                        std::shared_ptr<const FixedFactor> factor) {
  return apply(tape, FixedContraction(ContractionSpec::parse(spec), std::move(factor)), {x});
}

// ---- Proof

namespace {

/// Numbers without a pattern, by their place.
std::shared_ptr<const FixedFactor> irregular_factor(const Shape& shape) {
  const auto values = [shape](const Box& box) {
    std::vector<double> result(static_cast<std::size_t>(box.extent.count()));
    for_each_global_index(shape, box, 0, box.extent.count(), [&](std::int64_t i, std::int64_t index) {
      const double x = 12.9898 * static_cast<double>(index + 1);
      result[static_cast<std::size_t>(i)] = std::fmod(x * x, 2.0) - 1;
    });
    return result;
  };
  return std::make_shared<const FixedFactor>(FixedFactor{concat("of ", shape), shape, values});
}

ProofCase fixed_case(const std::string& text, const std::vector<std::pair<Shape, Shape>>& shapes) {
  ProofCase one{text, {}};
  for (const auto& [x, factor] : shapes) {
    add_instance(one, {x},
                 [text, made = irregular_factor(factor)](Tape& tape, const std::vector<Variable>& in) {
                   return contract_fixed(tape, text, in[0], made);
                 });
  }
  return one;
}

}  // namespace

std::vector<ProofCase> contract_fixed_cases() {
  return {
      fixed_case("bk,nk->bn", {{{3, 5}, {4, 5}}, {{4, 2}, {5, 2}}, {{5, 3}, {1, 3}}}),
      // The transforms of a spherical convolution: along a circle, by Legendre functions of each order, back,
      // and the products of parts of complex numbers.
      fixed_case("bhwc,rwm->brhmc",
                 {{{3, 4, 5, 2}, {2, 5, 3}}, {{2, 5, 3, 4}, {5, 3, 4}}, {{4, 3, 2, 5}, {1, 2, 5}}}),
      fixed_case("brhmc,mlh->brmlc",
                 {{{3, 2, 4, 5, 3}, {5, 3, 4}}, {{2, 4, 5, 3, 1}, {3, 4, 5}}, {{4, 3, 3, 2, 5}, {2, 5, 3}}}),
      fixed_case("brhmc,rwm->bhwc",
                 {{{3, 2, 4, 5, 3}, {2, 4, 5}}, {{2, 4, 5, 3, 1}, {4, 5, 3}}, {{4, 3, 3, 2, 5}, {3, 1, 2}}}),
      fixed_case("bqrmn,qrs->bsmn",
                 {{{3, 4, 2, 5, 2}, {4, 2, 3}}, {{2, 2, 5, 3, 4}, {2, 5, 2}}, {{4, 5, 3, 1, 3}, {5, 3, 4}}})};
}

}  // namespace jigsaw::inline autograd
