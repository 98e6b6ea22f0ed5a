#include "kernels/cuda/strided_product.h"
#include "kernels/cuda/tiled_product.cuh"

namespace jigsaw::inline kernels::cuda {

namespace {

__device__ std::int64_t place(const MatrixProduct::Strides& strides, std::int64_t batch, std::int64_t row,
                              std::int64_t column) {
  return batch * strides.batch + row * strides.row + column * strides.column;
}

/// Matrices of a batch as groups.
template <typename T>
struct StridedProduct {
  using R = Accumulator<T>;
  MatrixProduct of;
  const Element<T>*left, *right;
  AnyElements result;
  bool add;

  __device__ R a(std::int64_t batch, std::int64_t m, std::int64_t k) const {
    return load<R>(left[place(of.a, batch, m, k)]);
  }
  __device__ R b(std::int64_t batch, std::int64_t k, std::int64_t n) const {
    return load<R>(right[place(of.b, batch, k, n)]);
  }
  __device__ void store(std::int64_t batch, std::int64_t, std::int64_t m, std::int64_t n, R sum) const {
    const std::int64_t at = place(of.c, batch, m, n);
    result.put(at, add ? result.get<R>(at) + sum : sum);
  }
};

}  // namespace

void strided_product(Context& context, const MatmulKey& key, const std::byte* a, const std::byte* b,
                     std::byte* c, bool add) {
  const MatrixProduct& product = key.product;
  visit(key.in, [&](auto zero) {
    using T = decltype(zero);
    tiled_product<Accumulator<T>>(
        context, {product.batch, 1, product.m, product.n, product.k},
        StridedProduct<T>{product, reinterpret_cast<const Element<T>*>(a),
                          reinterpret_cast<const Element<T>*>(b), AnyElements{c, c, key.out}, add});
  });
}

}  // namespace jigsaw::inline kernels::cuda
