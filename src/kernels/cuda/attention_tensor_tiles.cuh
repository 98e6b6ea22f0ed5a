#pragma once
#include <mma.h>

#include "kernels/cuda/attention_tiles.cuh"
#include "kernels/cuda/packet.cuh"

namespace jigsaw::inline kernels::cuda {

// Attention in bf16 on tensor cores (nvcuda::wmma of the CUDA C++ programming guide). A block works on tiles
// of 32 × 32 pairs of query and key; products are of bf16, sums in float32. Weights and slopes are rounded to
// bf16 before they are multiplied, as in FlashAttention-2 (Dao 2023) and cuDNN.
constexpr int kTensorTile = 32, kMatrix = 16;

/// A number for each pair of a tile: thread 8·i + j of the block has those of query i and of the four keys
/// from 4·j on.
constexpr int kKeysOfThread = 4, kThreadsOfQuery = kTensorTile / kKeysOfThread;
static_assert(kTensorTile * kThreadsOfQuery == kThreads);
/// Blocks that are to fit a multiprocessor's registers at a time.
template <int kWidth>
constexpr int kTensorBlocks = kWidth > 64 ? 2 : 3;

// What wmma reads begins at multiples of 32 bytes; rows are 16 bytes longer than they need to be, so that
// they lie in different banks.
template <typename E>
struct PairTile {
  static constexpr int kRow = kTensorTile + kPad<E>;
  alignas(32) E x[kTensorTile][kRow];
};
/// A tile's tokens of a head of up to kWidth numbers.
template <int kWidth>
struct TokenTile {
  static constexpr int kRow = kWidth + kPad<__nv_bfloat16>;
  alignas(32) __nv_bfloat16 x[kTensorTile][kRow];

  /// All threads of the block put the tokens from `first` on; 0 beyond the tokens and the head.
  __device__ void stage(const Heads<BFloat16>& heads, std::int64_t batch, std::int64_t first,
                        std::int64_t head) {
    constexpr int kCount = kPacket<__nv_bfloat16>, kOfRow = kWidth / kCount;
    using Numbers = Packet<__nv_bfloat16, kCount>;
    const std::int64_t tokens = heads.tokens() - first;
    const int d = static_cast<int>(heads.places.d);
    const __nv_bfloat16* const from = heads.x + heads.places.at(batch, first, head);
    const bool in_packets = reinterpret_cast<std::uintptr_t>(from) % kPacketBytes == 0 && d % kCount == 0 &&
                            heads.places.stride % kCount == 0;
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < kTensorTile * kOfRow; i += kThreads) {
      const int row = i / kOfRow, c = i % kOfRow * kCount;
      const __nv_bfloat16* const own = from + row * heads.places.stride + c;
      Numbers numbers{};
      if (row < tokens && in_packets && c < d) numbers = *reinterpret_cast<const Numbers*>(own);
      for (int n = 0; n < kCount && row < tokens && !in_packets; ++n)
        if (c + n < d) numbers.elements[n] = own[n];
      *reinterpret_cast<Numbers*>(&x[row][c]) = numbers;
    }
  }
};

/// One warp of four, `quarter`, makes a quarter of the dot products of a's rows with b's.
template <int kWidth>
__device__ void multiply_rows(const TokenTile<kWidth>& a, const TokenTile<kWidth>& b, int quarter,
                              PairTile<float>& products) {
  namespace wmma = nvcuda::wmma;
  const int row = quarter / 2 * kMatrix, column = quarter % 2 * kMatrix;
  wmma::fragment<wmma::accumulator, kMatrix, kMatrix, kMatrix, float> sums;
  wmma::fill_fragment(sums, 0.0F);
#pragma unroll
  for (int c = 0; c < kWidth; c += kMatrix) {
    wmma::fragment<wmma::matrix_a, kMatrix, kMatrix, kMatrix, __nv_bfloat16, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, kMatrix, kMatrix, kMatrix, __nv_bfloat16, wmma::col_major> right;
    wmma::load_matrix_sync(left, &a.x[row][c], TokenTile<kWidth>::kRow);
    wmma::load_matrix_sync(right, &b.x[column][c], TokenTile<kWidth>::kRow);
    wmma::mma_sync(sums, left, right, sums);
  }
  wmma::store_matrix_sync(&products.x[row][column], sums, PairTile<float>::kRow, wmma::mem_row_major);
}

/// Sums for a tile's tokens, [32, kWidth], in the registers of the block's warps: four of them have 32
/// columns.
template <int kWidth>
class TokenSums {
 public:
  __device__ TokenSums() {
    for (Sums& sums : own_) nvcuda::wmma::fill_fragment(sums, 0.0F);
  }

  /// Adds the rows times the weights that each token has for them.
  __device__ void add(const PairTile<__nv_bfloat16>& weights, const TokenTile<kWidth>& rows) {
    namespace wmma = nvcuda::wmma;
    const int row = warp() % 4 / 2 * kMatrix;
#pragma unroll
    for (int e = 0; e < kOwn; ++e) {
      if (columns(e) >= kWidth) continue;
      const int column = columns(e) + warp() % 2 * kMatrix;
#pragma unroll
      for (int n = 0; n < kTensorTile; n += kMatrix) {
        wmma::fragment<wmma::matrix_a, kMatrix, kMatrix, kMatrix, __nv_bfloat16, wmma::row_major> left;
        wmma::fragment<wmma::matrix_b, kMatrix, kMatrix, kMatrix, __nv_bfloat16, wmma::row_major> right;
        wmma::load_matrix_sync(left, &weights.x[row][n], PairTile<__nv_bfloat16>::kRow);
        wmma::load_matrix_sync(right, &rows.x[n][column], TokenTile<kWidth>::kRow);
        wmma::mma_sync(own_[e], left, right, own_[e]);
      }
    }
  }

  /// All threads of the block put the sums times `scale` to where results lie, by way of `scratch`.
  __device__ void put(const HeadResults& to, std::int64_t batch, std::int64_t first, std::int64_t head,
                      float scale, PairTile<float>& scratch) const {
    namespace wmma = nvcuda::wmma;
    const int thread = static_cast<int>(threadIdx.x), column = thread % kTensorTile;
#pragma unroll
    for (int piece = 0; piece < kWidth / kTensorTile; ++piece) {
      __syncthreads();
      if (warp() / 4 == piece % 2)
        wmma::store_matrix_sync(&scratch.x[warp() % 4 / 2 * kMatrix][warp() % 2 * kMatrix], own_[piece / 2],
                                PairTile<float>::kRow, wmma::mem_row_major);
      __syncthreads();
      for (int row = thread / kTensorTile; row < kTensorTile; row += kThreads / kTensorTile)
        to.put(batch, first + row, head, piece * kTensorTile + column, scale * scratch.x[row][column]);
    }
  }

 private:
  using Sums = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, kMatrix, kMatrix, kMatrix, float>;
  static constexpr int kPieces = kWidth / kTensorTile, kOwn = (kPieces + 1) / 2;

  __device__ static int warp() {
    return static_cast<int>(threadIdx.x) / 32;
  }
  /// The first of the 32 columns that the warp's sums e are part of.
  __device__ static int columns(int e) {
    return (2 * e + warp() / 4) * kTensorTile;
  }

  Sums own_[kOwn];
};

/// Calls f with the least width, 32, 64 or 128, that is enough for heads of d numbers, as an integral
/// constant.
template <typename F>
void visit_head_width(std::int64_t d, const F& f) {
  if (d <= 32) {
    f(std::integral_constant<int, 32>());
  } else if (d <= 64) {
    f(std::integral_constant<int, 64>());
  } else {
    f(std::integral_constant<int, static_cast<int>(kLargestTensorHead)>());
  }
}

}  // namespace jigsaw::inline kernels::cuda
