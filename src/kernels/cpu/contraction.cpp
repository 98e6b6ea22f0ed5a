#include <algorithm>
#include <map>

#include "array/raw_memory.h"
#include "kernels/copy.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/packed_weights.h"
#include "kernels/front/contraction_kernels.h"
#include "kernels/lowering.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline kernels::cpu {

namespace {

/// What contractions of a rank keep between calls.
struct ContractionState {
  ContractionPlans plans{kProcessorRates};
  std::map<MatmulKey, std::unique_ptr<Matmul>> matmuls;
};

/// Below so many operations the plain loops are faster than any library call.
constexpr std::int64_t kFewProducts = 2048;

Matmul* matmul_of(ContractionState& state, const MatmulKey& key) {
  auto found = state.matmuls.find(key);
  if (found == state.matmuls.end()) found = state.matmuls.emplace(key, Matmul::make(key)).first;
  return found->second.get();
}

/// Whether B is worth packing for one use: a wide B, whose rows fall on the same cache sets, with many rows
/// of A to pay for it.
bool packing_pays(const MatrixProduct& product) {
  constexpr std::int64_t kManyRows = 512, kWide = 2048;
  return product.batch == 1 && product.m >= kManyRows && product.n >= kWide && product.b.column == 1;
}

/// Runs the products of a lowering on arrays of the types that oneDNN knows: f32 → f32, bf16 → f32 or bf16.
class Products {
 public:
  Products(Context& context, const Lowering& lowering, const Array& a, const Array& b, Array& c)
      : context_(context),
        state_(context.state<ContractionState>()),
        weights_(context.state<PackedWeights>()),
        lowering_(lowering),
        a_(lowering.swapped ? b : a),
        b_(lowering.swapped ? a : b),
        c_(c) {}

  /// False when oneDNN lacks fast code for them; nothing is written then.
  /// @param first  where the contracted index begins in A and B.
  bool run(bool add, std::int64_t first = 0) {
    if (!prepare(add)) return false;
    const auto one = [this](std::int64_t at_a, std::int64_t at_b, std::int64_t at_c, bool adds) {
      product(a_.raw() + at_a * size_of(a_.dtype()), b_.raw() + at_b * size_of(b_.dtype()),
              c_.raw() + at_c * size_of(c_.dtype()), adds);
    };
    const MatrixProduct& p = lowering_.product;
    for_each_product(loops_, add, one, first * p.a.column, first * p.b.row);
    return true;
  }

 private:
  /// The batch in one call, or, where oneDNN has no code for that, one call each.
  bool prepare(bool add) {
    key_ = {lowering_.product, a_.dtype(), c_.dtype(), add, false, context_.threads()};
    loops_ = lowering_.loops;
    key_.packed = lowering_.product.batch == 1 && (weights_.keeps(b_) || packing_pays(lowering_.product));
    if (both()) return true;
    key_.packed = false;
    if (both()) return true;
    const MatrixProduct& p = lowering_.product;
    if (p.batch == 1) return false;
    loops_.insert(loops_.begin(), {p.batch, p.a.batch, p.b.batch, p.c.batch});
    key_.product.batch = 1;
    key_.product.a.batch = key_.product.b.batch = key_.product.c.batch = 0;
    return both();
  }

  /// The product that stores and, if a loop adds, the one that adds.
  bool both() {
    const bool sums = std::ranges::any_of(loops_, [](const Lowering::Loop& loop) { return loop.c == 0; });
    first_ = matmul_of(state_, key_);
    MatmulKey adding = key_;
    adding.add = true;
    more_ = sums ? matmul_of(state_, adding) : first_;
    return first_ != nullptr && more_ != nullptr;
  }

  void product(const std::byte* a, const std::byte* b, std::byte* c, bool add) {
    Matmul& matmul = add ? *more_ : *first_;
    const Array packed = key_.packed ? packed_b(matmul, b) : Array();
    matmul.run(context_, a, key_.packed ? packed.raw() : b, c);
  }

  Array packed_b(Matmul& matmul, const std::byte* b) {
    return weights_.packed(b_, b, &matmul, [&] { return matmul.pack(context_, b); });
  }

  Context& context_;
  ContractionState& state_;
  PackedWeights& weights_;
  const Lowering& lowering_;
  const Array &a_, &b_;
  Array& c_;
  std::vector<Lowering::Loop> loops_;
  MatmulKey key_;
  Matmul *first_ = nullptr, *more_ = nullptr;
};

/// Of a product of a matrix and a vector oneDNN forms sums in float32, on some processors one by one, from
/// what is in c on: long ones are given to it in blocks of so many terms, each stored by itself.
constexpr std::int64_t kBlockTerms = 4096;

bool in_blocks(const MatrixProduct& product) {
  return product.k > kBlockTerms && (product.m == 1 || product.n == 1);
}

/// False when oneDNN lacks fast code for the products; nothing is written then.
/// @param c  of float32, also when the sums go by blocks.
bool run_products(Context& context, const Lowering& lowering, const Array& a, const Array& b, Array& c,
                  bool add) {
  const MatrixProduct& product = lowering.product;
  if (!in_blocks(product)) return Products(context, lowering, a, b, c).run(add);
  const std::int64_t blocks = product.k / kBlockTerms, size = c.shape().count();
  Array whole(context, {blocks, size}, DType::kFloat32, Purpose::kWorkspace);
  Lowering part = lowering;
  part.product.k = kBlockTerms;
  part.loops.push_back({blocks, product.a.column * kBlockTerms, product.b.row * kBlockTerms, size});
  if (!Products(context, part, a, b, whole).run(false)) return false;
  Array rest(context, {size}, DType::kFloat32, Purpose::kWorkspace);
  part = lowering;
  part.product.k = product.k % kBlockTerms;
  if (part.product.k > 0) {
    require(Products(context, part, a, b, rest).run(false, blocks * kBlockTerms),
            "a product has fast code for some lengths of its sums only");
  } else {
    std::ranges::fill(rest.span<float>(), 0.0F);
  }
  const std::span<const float> terms = std::as_const(whole).span<float>();
  const std::span<float> sums = c.span<float>();
  for (std::int64_t i = 0; i < size; ++i) {
    const auto at = static_cast<std::size_t>(i);
    double sum = static_cast<double>(rest.span<float>()[at]) + (add ? static_cast<double>(sums[at]) : 0.0);
    for (std::int64_t block = 0; block < blocks; ++block)
      sum += static_cast<double>(terms[static_cast<std::size_t>(block * size + i)]);
    sums[at] = static_cast<float>(sum);
  }
  return true;
}

/// The plan run by oneDNN; false, and nothing written, when that has no fast code for it.
bool run_plan(Context& context, const ContractionPlan& plan, const Array& a, const Array& b, Array& c,
              bool add) {
  const Array moved_a = plan.order_a.empty() ? a : permute(context, a, plan.order_a);
  const Array moved_b = plan.order_b.empty() ? b : permute(context, b, plan.order_b);

  // Sums of several products, and types oneDNN does not store, go through float32.
  const bool stored =
      c.dtype() == DType::kFloat32 || (c.dtype() == DType::kBfloat16 && a.dtype() == DType::kBfloat16 &&
                                       !plan.lowering.sums() && !in_blocks(plan.lowering.product));
  if (stored && plan.order_c.empty()) return run_products(context, plan.lowering, moved_a, moved_b, c, add);
  Array sums(context, plan.permuted_c, DType::kFloat32, Purpose::kWorkspace);
  if (!run_products(context, plan.lowering, moved_a, moved_b, sums, false)) return false;
  const Array result = plan.order_c.empty() ? sums : permute(context, sums, plan.order_c);
  if (add) {
    accumulate(context, c, result);
  } else {
    const Array converted = cast(context, result, c.dtype(), Purpose::kWorkspace);
    copy_box(context, converted, Box::whole(c.shape()), c, Box::whole(c.shape()));
  }
  return true;
}

class Contraction : public ContractionKernels {
 public:
  void contract(Context& context, const ContractionSpec& spec, const Array& a, const Array& b, Array& c,
                bool add) const override {
    const Tally counted = context.tally();  // the front has counted; what runs below is part of it
    if (!contract_fast(context, spec, a, b, c, add)) {
      reference::kernels<ContractionKernels>().contract(context, spec, a, b, c, add);
    }
    context.tally() = counted;
  }

  void keep_packed(Context& context, const Array& weight) const override {
    context.state<PackedWeights>().keep(weight);
  }

  void forget_packed_weights(Context& context) const override { context.state<PackedWeights>().forget(); }

 private:
  static bool contract_fast(Context& context, const ContractionSpec& spec, const Array& a, const Array& b,
                            Array& c, bool add) {
    if (a.count() == 0 || b.count() == 0) return false;
    const ContractionPlan& plan = context.state<ContractionState>().plans.of(spec, a.shape(), b.shape());
    const MatrixProduct& product = plan.lowering.product;
    if (product.batch * product.m * product.n * product.k < kFewProducts) return false;
    if (run_plan(context, plan, a, b, c, add)) return true;
    if (a.dtype() != DType::kBfloat16) return false;
    // A processor for which oneDNN has no bf16 code.
    return run_plan(context, plan, cast(context, a, DType::kFloat32, Purpose::kWorkspace),
                    cast(context, b, DType::kFloat32, Purpose::kWorkspace), c, add);
  }
};

}  // namespace

template <>
const ContractionKernels& kernels() {
  static const Contraction instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cpu
