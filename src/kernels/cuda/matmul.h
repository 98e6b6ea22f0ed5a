#pragma once
#include <cublasLt.h>

#include <memory>
#include <string>

#include "array/array.h"
#include "kernels/lowering.h"

namespace jigsaw::inline kernels::cuda {

/// Throws LibraryError that says what failed and cuBLAS's word for why.
void check(cublasStatus_t status, const char* what);

/// One kind of product: what decides cuBLASLt's choice of algorithm.
struct MatmulKey {
  /// Bytes that all matrices of an operand begin at multiples of.
  struct Alignment {
    std::uint32_t a = 16, b = 16, c = 16;
    auto operator<=>(const Alignment&) const = default;
  };

  MatrixProduct product;
  DType in = DType::kFloat32, out = DType::kFloat32;
  Alignment alignment;
  bool rounded = false;  ///< factors, which are f32, may be taken as TensorFloat-32
  auto operator<=>(const MatmulKey&) const = default;

  /// "the product of bf16 matrices 64 x 32 and 32 x 16, 12 times, to fp32, at multiples of 8 bytes".
  std::string text() const;
};

/// A cuBLASLt matrix product, planned once and run on many operands.
class Matmul {
 public:
  /// Null where cuBLASLt has no algorithm for the key. The handle outlives the product.
  /// @throws LibraryError
  static std::unique_ptr<Matmul> plan(cublasLtHandle_t handle, const MatmulKey& key);
  ~Matmul();
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  /// C = A·B, or C += A·B, on the context's stream; workspace comes from its arena.
  void run(Context& context, const std::byte* a, const std::byte* b, std::byte* c, bool add) const;

  /// Whether cuBLASLt computes these types: f32, f64, bf16 → bf16, bf16 → f32.
  static bool knows(DType in, DType out) {
    return in == out || (in == DType::kBfloat16 && out == DType::kFloat32);
  }

 private:
  struct Plan;
  explicit Matmul(std::unique_ptr<Plan> plan);
  std::unique_ptr<Plan> plan_;
};

}  // namespace jigsaw::inline kernels::cuda
