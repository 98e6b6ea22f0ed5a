#pragma once
#include <memory>

#include "array/array.h"
#include "kernels/lowering.h"

namespace jigsaw::inline kernels::cpu {

/// One kind of product that oneDNN computes: what decides its code.
struct MatmulKey {
  MatrixProduct product;
  DType in = DType::kFloat32, out = DType::kFloat32;
  bool add = false;     ///< C += A·B
  bool packed = false;  ///< B in the layout that oneDNN likes best; its strides say how it comes
  int threads = 1;
  auto operator<=>(const MatmulKey&) const = default;
};

/// A oneDNN matrix product, made once and run on many operands.
class Matmul {
 public:
  /// Null when oneDNN has no fast code for the key.
  static std::unique_ptr<Matmul> make(const MatmulKey& key);
  ~Matmul();

  /// Scratch memory comes from the context's arena. Runs on the key's threads.
  void run(Context& context, const std::byte* a, const std::byte* b, std::byte* c);
  /// B packed as run() wants it, for a key that says so.
  Array pack(Context& context, const std::byte* b);

 private:
  struct Primitives;
  explicit Matmul(std::unique_ptr<Primitives> primitives);
  std::unique_ptr<Primitives> primitives_;
};

}  // namespace jigsaw::inline kernels::cpu
