#pragma once
// CUDA's products of matrices by a warp, for a host compiler: see fake_cuda.h. The warp's first thread does
// all that touches memory, and holds the matrices; where others touch the same without a barrier, that is
// found.
#include <cstdint>

#include "cuda_bf16.h"
#include "cuda_runtime.h"

namespace nvcuda::wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t : std::uint8_t { mem_row_major, mem_col_major };

template <typename Use, int m, int n, int k, typename T, typename Layout = void>
struct fragment {
  static_assert(m == 16 && n == 16 && k == 16);
  float x[16][16];  ///< by rows
};

}  // namespace nvcuda::wmma

namespace jigsaw::testing::fake_cuda {

inline bool is_first_of_warp() {
  return threadIdx.x % 32 == 0;
}
/// sums += a · b.
void multiply_matrices(const float (&a)[16][16], const float (&b)[16][16], float (&sums)[16][16]);
/// What a matrix's first element and its rows lie at must be multiples of 32 and 16 bytes.
void require_matrix_places(const void* first, std::int64_t row_bytes);

}  // namespace jigsaw::testing::fake_cuda

namespace nvcuda::wmma {

template <typename Use, int m, int n, int k, typename T, typename Layout>
void fill_fragment(fragment<Use, m, n, k, T, Layout>& to, float value) {
  if (!jigsaw::testing::fake_cuda::is_first_of_warp()) return;
  for (auto& row : to.x)
    for (float& number : row) number = value;
}
template <typename Use, int m, int n, int k, typename Layout>
void load_matrix_sync(fragment<Use, m, n, k, __nv_bfloat16, Layout>& to, const __nv_bfloat16* from,
                      unsigned stride) {
  if (!jigsaw::testing::fake_cuda::is_first_of_warp()) return;
  jigsaw::testing::fake_cuda::require_matrix_places(from, std::int64_t{stride} * 2);
  for (unsigned i = 0; i < 16; ++i) {
    for (unsigned j = 0; j < 16; ++j) {
      const float number = __bfloat162float(from[i * stride + j]);
      (std::is_same_v<Layout, row_major> ? to.x[i][j] : to.x[j][i]) = number;
    }
  }
}
template <int m, int n, int k>
void store_matrix_sync(float* to, const fragment<accumulator, m, n, k, float>& from, unsigned stride,
                       layout_t layout) {
  if (!jigsaw::testing::fake_cuda::is_first_of_warp()) return;
  jigsaw::testing::fake_cuda::require_matrix_places(to, std::int64_t{stride} * 4);
  for (unsigned i = 0; i < 16; ++i)
    for (unsigned j = 0; j < 16; ++j)
      to[i * stride + j] = layout == mem_row_major ? from.x[i][j] : from.x[j][i];
}
template <int m, int n, int k, typename LayoutA, typename LayoutB>
void mma_sync(fragment<accumulator, m, n, k, float>& sums,
              const fragment<matrix_a, m, n, k, __nv_bfloat16, LayoutA>& a,
              const fragment<matrix_b, m, n, k, __nv_bfloat16, LayoutB>& b,
              const fragment<accumulator, m, n, k, float>& more) {
  if (!jigsaw::testing::fake_cuda::is_first_of_warp()) return;
  if (&sums != &more) sums = more;
  jigsaw::testing::fake_cuda::multiply_matrices(a.x, b.x, sums.x);
}

}  // namespace nvcuda::wmma
