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
  ContractionPlans plans;
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
  bool run(bool add) {
    if (!prepare(add)) return false;
    for_each_product(loops_, add, [this](std::int64_t at_a, std::int64_t at_b, std::int64_t at_c, bool adds) {
      product(a_.raw() + at_a * size_of(a_.dtype()), b_.raw() + at_b * size_of(b_.dtype()),
              c_.raw() + at_c * size_of(c_.dtype()), adds);
    });
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

/// The plan run by oneDNN; false, and nothing written, when that has no fast code for it.
bool run_plan(Context& context, const ContractionPlan& plan, const Array& a, const Array& b, Array& c,
              bool add) {
  const Array moved_a = plan.order_a.empty() ? a : permute(context, a, plan.order_a);
  const Array moved_b = plan.order_b.empty() ? b : permute(context, b, plan.order_b);

  // Sums of several products, and types oneDNN does not store, go through float32.
  const bool stored =
      c.dtype() == DType::kFloat32 ||
      (c.dtype() == DType::kBfloat16 && a.dtype() == DType::kBfloat16 && !plan.lowering.sums());
  if (stored && plan.order_c.empty()) return Products(context, plan.lowering, moved_a, moved_b, c).run(add);
  Array sums(context, plan.permuted_c, DType::kFloat32, Purpose::kWorkspace);
  if (!Products(context, plan.lowering, moved_a, moved_b, sums).run(false)) return false;
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
