#pragma once
#include "kernels/cuda/device.cuh"

namespace jigsaw::inline kernels::cuda {

/// c[m, n] = Σ over k of a[m, k] · b[k, n], for each group; the sums over k are cut into slabs.
struct ProductExtents {
  std::int64_t groups = 1, slabs = 1, m = 0, n = 0, k = 0;
};

constexpr int kProductTile = 64, kProductDepth = 16, kProductEach = 4;
constexpr std::int64_t kProductSums = 1024;  // what is added up before it joins the total, for precision
static_assert(kProductTile * kProductTile == kThreads * kProductEach * kProductEach);

/// A block makes a tile of c, each thread 4 × 4 numbers of it, out of tiles of a and b that it stages.
/// Product has a(group, m, k), b(group, k, n) and store(group, slab, m, n, sum).
template <typename R, typename Product>
__global__ void product_tiles(ProductExtents all, Product product) {
  __shared__ R as[kProductDepth][kProductTile + 1], bs[kProductDepth][kProductTile + 1];
  const std::int64_t across = (all.n + kProductTile - 1) / kProductTile;
  const std::int64_t m0 = blockIdx.x / across * kProductTile, n0 = blockIdx.x % across * kProductTile;
  const std::int64_t slab = blockIdx.y, end = all.k * (slab + 1) / all.slabs;
  const int thread = static_cast<int>(threadIdx.x), row = thread / 16, column = thread % 16;
  for (std::int64_t group = blockIdx.z; group < all.groups; group += gridDim.z) {
    R totals[kProductEach][kProductEach] = {}, sums[kProductEach][kProductEach] = {};
    const std::int64_t begin = all.k * slab / all.slabs;
    for (std::int64_t k0 = begin; k0 < end; k0 += kProductDepth) {
      for (int e = thread; e < kProductTile * kProductDepth; e += kThreads) {
        const int depth = e % kProductDepth, line = e / kProductDepth;
        const std::int64_t k = k0 + depth, m = m0 + line;
        as[depth][line] = k < end && m < all.m ? product.a(group, m, k) : R(0);
      }
      for (int e = thread; e < kProductTile * kProductDepth; e += kThreads) {
        const int depth = e / kProductTile, line = e % kProductTile;
        const std::int64_t k = k0 + depth, n = n0 + line;
        bs[depth][line] = k < end && n < all.n ? product.b(group, k, n) : R(0);
      }
      __syncthreads();
      for (int depth = 0; depth < kProductDepth; ++depth) {
        R left[kProductEach], right[kProductEach];
        for (int i = 0; i < kProductEach; ++i) left[i] = as[depth][row + 16 * i];
        for (int j = 0; j < kProductEach; ++j) right[j] = bs[depth][column + 16 * j];
        for (int i = 0; i < kProductEach; ++i)
          for (int j = 0; j < kProductEach; ++j) sums[i][j] += left[i] * right[j];
      }
      __syncthreads();
      if ((k0 + kProductDepth - begin) % kProductSums != 0) continue;
      for (int i = 0; i < kProductEach; ++i)
        for (int j = 0; j < kProductEach; ++j) totals[i][j] += sums[i][j], sums[i][j] = R(0);
    }
    for (int i = 0; i < kProductEach; ++i)
      for (int j = 0; j < kProductEach; ++j) {
        const std::int64_t m = m0 + row + 16 * i, n = n0 + column + 16 * j;
        if (m < all.m && n < all.n) product.store(group, slab, m, n, totals[i][j] + sums[i][j]);
      }
  }
}

/// Runs the product; sums over no k are stored as zeros.
template <typename R, typename Product>
void tiled_product(const Context& context, const ProductExtents& all, const Product& product) {
  constexpr std::int64_t kMostInZ = 65535;
  if (all.groups == 0 || all.m == 0 || all.n == 0) return;
  const std::int64_t tiles =
      ((all.m + kProductTile - 1) / kProductTile) * ((all.n + kProductTile - 1) / kProductTile);
  start_kernel(context,
               dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(all.slabs),
                    static_cast<unsigned>(all.groups < kMostInZ ? all.groups : kMostInZ)),
               product_tiles<R, Product>, all, product);
}

}  // namespace jigsaw::inline kernels::cuda
