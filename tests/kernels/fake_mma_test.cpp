// What the fake CUDA runtime makes of products of matrices by a warp, and which mistakes it finds in them.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "array/raw_memory.h"
#include "kernels/cuda/device.cuh"
#include "kernels/fake_cuda_finds.h"
#include "mma.h"
#include "support/error_of.h"

namespace jigsaw {
namespace {

namespace fake_cuda = testing::fake_cuda;
using testing::error_of;
using testing::FakeCudaFinds;
using testing::values_of;

constexpr unsigned kEdge = 16, kRow = 24;

/// What is done as it must not be.
enum class Mistake { kNone, kNoBarrier, kShifted, kRows };

/// y = a · bᵀ of x = (a, b); `mistake` kShifted reads b from another column on, kRows with other rows.
__global__ void multiply(Mistake mistake, const float* x, float* y) {
  namespace wmma = nvcuda::wmma;
  alignas(32) __shared__ __nv_bfloat16 a[kEdge][kRow], b[kEdge][kRow];
  for (unsigned i = threadIdx.x; i < kEdge * kEdge; i += blockDim.x) {
    a[i / kEdge][i % kEdge] = __float2bfloat16(x[i]);
    b[i / kEdge][i % kEdge] = __float2bfloat16(x[kEdge * kEdge + i]);
  }
  if (mistake != Mistake::kNoBarrier) __syncthreads();
  if (threadIdx.x >= 32) return;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
  wmma::fill_fragment(sums, 0.0F);
  wmma::load_matrix_sync(left, &a[0][0], kRow);
  wmma::load_matrix_sync(right, &b[0][mistake == Mistake::kShifted ? 4 : 0],
                         mistake == Mistake::kRows ? kRow - 4 : kRow);
  wmma::mma_sync(sums, left, right, sums);
  wmma::store_matrix_sync(y, sums, kEdge, wmma::mem_row_major);
}

class FakeCudaFindsInProducts : public FakeCudaFinds {
 protected:
  std::string said(Mistake mistake) {
    std::vector<double> x;
    for (unsigned i = 0; i < 2 * kEdge * kEdge; ++i) x.push_back(std::round(8 * std::sin(i)));
    const Array from = testing::array_of(context_, {2, kEdge, kEdge}, DType::kFloat32, x);
    Array to(context_, {kEdge, kEdge}, DType::kFloat32);
    start(1, multiply, mistake, from.data<float>(), to.data<float>());
    return error_of([&] {
      const std::vector<double> y = values_of(to);
      for (unsigned i = 0; i < kEdge; ++i) {
        for (unsigned j = 0; j < kEdge; ++j) {
          double wanted = 0;
          for (unsigned n = 0; n < kEdge; ++n) wanted += x[i * kEdge + n] * x[(kEdge + j) * kEdge + n];
          EXPECT_EQ(y[i * kEdge + j], wanted) << i << ", " << j;
        }
      }
    });
  }
  void TearDown() override {
    FakeCudaFinds::TearDown();
    EXPECT_EQ(said(Mistake::kNone), "") << "the next kernel";
  }
};

TEST_F(FakeCudaFindsInProducts, Nothing) {
  EXPECT_EQ(said(Mistake::kNone), "");
}

TEST_F(FakeCudaFindsInProducts, MatricesAtTheWrongPlace) {
  const std::string shifted = said(Mistake::kShifted);
  EXPECT_NE(shifted.find("multiplies a matrix that begins 8 bytes beyond a multiple of 32"),
            std::string::npos)
      << shifted;
  fake_cuda::fail_next(cudaSuccess);
  const std::string rows = said(Mistake::kRows);
  EXPECT_NE(rows.find("with rows of 40 bytes"), std::string::npos) << rows;
}

TEST_F(FakeCudaFindsInProducts, AMissingBarrier) {
  if (!fake_cuda::sees_accesses()) GTEST_SKIP() << "a sanitizer is in the hooks' place";
  const std::string found = said(Mistake::kNoBarrier);
  EXPECT_NE(found.find(" reads "), std::string::npos) << found;
  EXPECT_NE(found.find("shared memory"), std::string::npos) << found;
}

}  // namespace
}  // namespace jigsaw
