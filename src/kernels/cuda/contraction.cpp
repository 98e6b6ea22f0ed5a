#include <algorithm>
#include <map>
#include <utility>

#include "array/raw_memory.h"
#include "base/text.h"
#include "kernels/copy.h"
#include "kernels/cuda/error.h"
#include "kernels/cuda/library.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/padded_operand.h"
#include "kernels/cuda/strided_product.h"
#include "kernels/cuda/vector_product.h"
#include "kernels/front/contraction_kernels.h"
#include "kernels/lowering.h"
#include "kernels/pointwise.h"
#include "kernels/remarks.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// What contractions of a rank keep between calls.
struct ContractionState {
  ContractionState() { check(cublasLtCreate(&handle), "start"); }
  ~ContractionState() {
    matmuls.clear();
    cublasLtDestroy(handle);
  }
  ContractionState(const ContractionState&) = delete;
  ContractionState& operator=(const ContractionState&) = delete;

  cublasLtHandle_t handle = nullptr;
  ContractionPlans plans{kGpuRates};
  std::map<MatmulKey, std::unique_ptr<Matmul>> matmuls;  ///< null: a kernel of ours does the product
};

/// What the addresses of an operand's matrices are multiples of: vector loads need 16 bytes, views may start
/// at any element. cuBLASLt is told how far the matrices of a batch lie apart, but promises nowhere to look
/// at more than this.
std::uint32_t alignment_of(const std::byte* operand, std::int64_t batch, std::int64_t apart, DType dtype) {
  auto bits = reinterpret_cast<std::uintptr_t>(operand);
  if (batch > 1) bits |= static_cast<std::uintptr_t>(apart * size_of(dtype));
  for (const std::uint32_t alignment : {16U, 8U, 4U}) {
    if (bits % alignment == 0) return alignment;
  }
  return 2;
}

/// Runs the products of a lowering on arrays of types that cuBLASLt knows.
class Products {
 public:
  Products(Context& context, const Lowering& lowering, const Array& a, const Array& b, Array& c)
      : context_(context),
        state_(*library_state<ContractionState>(context)),
        lowering_(lowering),
        a_(lowering.swapped ? b : a),
        b_(lowering.swapped ? a : b),
        c_(c) {}

  void run(bool add) {
    for_each_product(lowering_.loops, add,
                     [this](std::int64_t at_a, std::int64_t at_b, std::int64_t at_c, bool adds) {
                       product(a_.raw() + at_a * size_of(a_.dtype()), b_.raw() + at_b * size_of(b_.dtype()),
                               c_.raw() + at_c * size_of(c_.dtype()), adds);
                     });
  }

 private:
  void product(const std::byte* a, const std::byte* b, std::byte* c, bool add) {
    if (vector_product(context_, lowering_.product, a_.dtype(), c_.dtype(), a, b, c, add)) return;
    if (a_.dtype() != DType::kBfloat16) return run_product(lowering_.product, a, b, c, add);
    MatrixProduct p = lowering_.product;
    const MatrixProduct::Strides whole = p.c;
    const PaddedOperand left = PaddedOperand::of(context_, a, p.batch, p.m, p.k, p.a, p.n),
                        right = PaddedOperand::of(context_, b, p.batch, p.k, p.n, p.b, p.m);
    PaddedOperand result{{}, whole};
    if (c_.dtype() == DType::kBfloat16 && !add)
      result = PaddedOperand::room(context_, c, p.batch, p.m, p.n, whole, p.k);
    p.a = left.strides, p.b = right.strides, p.c = result.strides;
    run_product(p, left.copy.defined() ? left.copy.raw() : a, right.copy.defined() ? right.copy.raw() : b,
                result.copy.defined() ? result.copy.raw() : c, add);
    if (result.copy.defined()) result.copy_back(context_, p.batch, p.m, p.n, c, whole);
  }

  /// Algorithms of cuBLASLt may give each matrix of a batch a block in z, of which there are 65,535.
  void run_product(const MatrixProduct& product, const std::byte* a, const std::byte* b, std::byte* c,
                   bool add) {
    constexpr std::int64_t kMostAtOnce = 65535;
    MatrixProduct part = product;
    for (std::int64_t first = 0; first < product.batch; first += kMostAtOnce) {
      part.batch = std::min(kMostAtOnce, product.batch - first);
      run_part(part, a + first * product.a.batch * size_of(a_.dtype()),
               b + first * product.b.batch * size_of(b_.dtype()),
               c + first * product.c.batch * size_of(c_.dtype()), add);
    }
  }

  void run_part(const MatrixProduct& product, const std::byte* a, const std::byte* b, std::byte* c,
                bool add) {
    const MatmulKey::Alignment alignment = {alignment_of(a, product.batch, product.a.batch, a_.dtype()),
                                            alignment_of(b, product.batch, product.b.batch, b_.dtype()),
                                            alignment_of(c, product.batch, product.c.batch, c_.dtype())};
    const MatmulKey key = {product, a_.dtype(), c_.dtype(), alignment,
                           context_.tf32() && a_.dtype() == DType::kFloat32};
    auto found = state_.matmuls.find(key);
    if (found == state_.matmuls.end()) {
      auto planned = by_library(context_, key.text(), [&] { return Matmul::plan(state_.handle, key); });
      found = state_.matmuls.emplace(key, std::move(planned)).first;
      if (!found->second)
        context_.state<Remarks>().add(concat("cuBLASLt has no algorithm for ", key.text(),
                                             ": a far slower kernel of this program does it"));
    }
    if (found->second) return found->second->run(context_, a, b, c, add);
    strided_product(context_, key, a, b, c, add);
  }

  Context& context_;
  ContractionState& state_;
  const Lowering& lowering_;
  const Array &a_, &b_;
  Array& c_;
};

class Contraction : public ContractionKernels {
 public:
  void contract(Context& context, const ContractionSpec& spec, const Array& a, const Array& b, Array& c,
                bool add) const override {
    const Tally counted = context.tally();  // the front has counted; what runs below is part of it
    if (a.count() > 0 && b.count() > 0) {
      run_plan(context, library_state<ContractionState>(context)->plans.of(spec, a.shape(), b.shape()), a, b,
               c, add);
    } else if (!add && c.bytes() > 0) {
      launched(context, cudaMemsetAsync(c.raw(), 0, static_cast<std::size_t>(c.bytes()), stream_of(context)),
               "what clears an array");
    }
    context.tally() = counted;
  }

 private:
  static void run_plan(Context& context, const ContractionPlan& plan, const Array& a, const Array& b,
                       Array& c, bool add) {
    const Array moved_a = plan.order_a.empty() ? a : permute(context, a, plan.order_a);
    const Array moved_b = plan.order_b.empty() ? b : permute(context, b, plan.order_b);
    // Sums of several products, and types cuBLASLt does not store, go through the type of sums.
    const bool rounds = c.dtype() == DType::kBfloat16 && plan.lowering.sums();
    if (Matmul::knows(a.dtype(), c.dtype()) && !rounds && plan.order_c.empty()) {
      return Products(context, plan.lowering, moved_a, moved_b, c).run(add);
    }
    Array sums(context, plan.permuted_c, accumulator_of(a.dtype()), Purpose::kWorkspace);
    Products(context, plan.lowering, moved_a, moved_b, sums).run(false);
    const Array result = plan.order_c.empty() ? sums : permute(context, sums, plan.order_c);
    if (add) return accumulate(context, c, result);
    const Array converted = cast(context, result, c.dtype(), Purpose::kWorkspace);
    launched(context,
             cudaMemcpyAsync(c.raw(), converted.raw(), static_cast<std::size_t>(c.bytes()),
                             cudaMemcpyDeviceToDevice, stream_of(context)),
             "a copy");
  }
};

}  // namespace

template <>
const ContractionKernels& kernels() {
  static const Contraction instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cuda
