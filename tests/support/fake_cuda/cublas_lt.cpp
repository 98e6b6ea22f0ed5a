#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cublasLt.h"
#include "cuda_bf16.h"
#include "support/fake_cuda/fake_cuda.h"
#include "support/fake_cuda/state.h"

struct FakeCublas : jigsaw::testing::fake_cuda::LibraryHandle {};
/// Columns one behind the other, `leading` elements apart.
struct FakeLayout {
  cudaDataType_t type;
  std::int64_t rows, columns, leading;
  std::int32_t batch = 1;
  std::int64_t stride = 0;
};
struct FakeProduct {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
};
struct FakePreference {
  std::uint64_t workspace = 0;
  std::uint32_t alignment[4] = {256, 256, 256, 256};
};

namespace {

using jigsaw::testing::fake_cuda::has_failed;
using jigsaw::testing::fake_cuda::put;
using jigsaw::testing::fake_cuda::touched;
using jigsaw::testing::fake_cuda::use_workspace;

std::int64_t size_of(cudaDataType_t type) {
  return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}
double read(const void* x, cudaDataType_t type, std::int64_t i) {
  if (type == CUDA_R_64F) return static_cast<const double*>(x)[i];
  if (type == CUDA_R_32F) return static_cast<double>(static_cast<const float*>(x)[i]);
  return static_cast<double>(__bfloat162float(static_cast<const __nv_bfloat16*>(x)[i]));
}
void write(void* x, cudaDataType_t type, std::int64_t i, double value) {
  if (type == CUDA_R_64F) {
    static_cast<double*>(x)[i] = value;
  } else if (type == CUDA_R_32F) {
    static_cast<float*>(x)[i] = static_cast<float>(value);
  } else {
    static_cast<__nv_bfloat16*>(x)[i] = __float2bfloat16(static_cast<float>(value));
  }
}
double read(const void* x, const FakeLayout& layout, cublasOperation_t operation, std::int32_t batch,
            std::int64_t row, std::int64_t column) {
  if (operation == CUBLAS_OP_T) std::swap(row, column);
  return read(x, layout.type, batch * layout.stride + column * layout.leading + row);
}

/// What cuBLASLt refuses, as far as this program can ask for it.
bool fits(const FakeProduct& product, const FakeLayout& a, const FakeLayout& b, const FakeLayout& d) {
  const auto [m, k] = product.a == CUBLAS_OP_T ? std::pair(a.columns, a.rows) : std::pair(a.rows, a.columns);
  const auto [k2, n] = product.b == CUBLAS_OP_T ? std::pair(b.columns, b.rows) : std::pair(b.rows, b.columns);
  const bool wide = d.type == CUDA_R_64F;
  const bool types =
      a.type == b.type && (a.type == d.type || (a.type == CUDA_R_16BF && d.type == CUDA_R_32F)) &&
      wide == (product.compute == CUBLAS_COMPUTE_64F) && wide == (product.scale == CUDA_R_64F) &&
      (a.type == CUDA_R_32F || product.compute != CUBLAS_COMPUTE_32F_FAST_TF32);
  bool leading = true;
  for (const FakeLayout* each : {&a, &b, &d}) leading = leading && each->leading >= each->rows;
  const int refused = jigsaw::testing::fake_cuda::machine().cublas_refuses;
  return refused != -1 && k != refused && types && leading && m == d.rows && n == d.columns && k == k2 &&
         a.batch == d.batch && b.batch == d.batch && d.stride >= (d.batch > 1 ? d.rows : 0);
}

/// A product reads or writes the columns of all matrices of a batch.
void touch(const void* x, const FakeLayout& layout, bool writes) {
  const std::int64_t size = layout.type == CUDA_R_64F ? 8 : layout.type == CUDA_R_32F ? 4 : 2;
  for (std::int64_t i = 0; i < layout.batch * layout.columns; ++i) {
    const std::int64_t first = i / layout.columns * layout.stride + i % layout.columns * layout.leading;
    touched(static_cast<const std::byte*>(x) + first * size, static_cast<std::size_t>(layout.rows * size),
            writes);
  }
}

std::atomic<std::int64_t> misaligned_so_far = 0, rounded = 0, full = 0;

bool is_aligned(const void* address, std::uint32_t bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

}  // namespace

std::int64_t jigsaw::testing::fake_cuda::misaligned_products() {
  return misaligned_so_far;
}
std::int64_t jigsaw::testing::fake_cuda::rounded_products() {
  return rounded;
}
std::int64_t jigsaw::testing::fake_cuda::full_products() {
  return full;
}

const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS_INVALID_VALUE";
  }
}
std::size_t cublasLtGetVersion() {
  return 130002;
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (has_failed()) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = new FakeCublas;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type,
                                          std::uint64_t rows, std::uint64_t columns, std::int64_t leading) {
  *layout =
      new FakeLayout{type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), leading};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t what, const void* value,
                                                std::size_t bytes) {
  void* const to =
      what == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? static_cast<void*>(&layout->batch) : &layout->stride;
  const std::size_t wanted =
      what == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? sizeof(layout->batch) : sizeof(layout->stride);
  if (bytes != wanted) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(to, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  *product = new FakeProduct{compute, scale};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product,
                                              cublasLtMatmulDescAttributes_t what, const void* value,
                                              std::size_t bytes) {
  if (bytes != sizeof(cublasOperation_t)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(what == CUBLASLT_MATMUL_DESC_TRANSA ? &product->a : &product->b, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
  delete product;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new FakePreference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t what,
                                                    const void* value, std::size_t bytes) {
  if (what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
    if (bytes != sizeof(preference->workspace)) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&preference->workspace, value, bytes);
  } else {
    if (bytes != sizeof(std::uint32_t)) return CUBLAS_STATUS_INVALID_VALUE;
    if (what == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) return CUBLAS_STATUS_SUCCESS;  // it knows one
    std::memcpy(&preference->alignment[what - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value, bytes);
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int /*wanted*/,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
  if (has_failed()) return CUBLAS_STATUS_INTERNAL_ERROR;
  *found = fits(*product, *a, *b, *d) ? 1 : 0;
  std::copy_n(preference->alignment, 4, results[0].algo.alignment);
  return *found == 1 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  constexpr std::int32_t kMostBatches = 65535;  // blocks of a grid beside each other in z
  if (d_layout->batch > kMostBatches) return CUBLAS_STATUS_EXECUTION_FAILED;
  const double one = read(alpha, product->scale, 0), old = read(beta, product->scale, 0);
  const std::uint32_t* aligned = algorithm->alignment;
  const std::pair<const void*, const FakeLayout*> operands[] = {
      {a, a_layout}, {b, b_layout}, {c, d_layout}, {d, d_layout}};
  for (const auto& [address, layout] : operands) {
    // Whether the real one looks at the distance it does not say; a kernel for aligned matrices would fail.
    const std::int64_t apart = layout->batch > 1 ? layout->stride * size_of(layout->type) : 0;
    if (!is_aligned(address, *aligned) || apart % *aligned != 0) return CUBLAS_STATUS_INVALID_VALUE;
    const bool factor = aligned - algorithm->alignment < 2;
    if (factor && layout->type == CUDA_R_16BF && (layout->leading % 8 != 0 || *aligned < 16))
      ++misaligned_so_far;
    ++aligned;
  }
  if (a_layout->type == CUDA_R_32F) ++(product->compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? rounded : full);
  const std::string name =
      jigsaw::concat("a product of ", d_layout->rows, " x ", d_layout->columns, " numbers");
  const cudaError_t status =
      put(stream, name,
          [p = *product, left = *a_layout, right = *b_layout, to = *d_layout, a, b, c, d, one, old,
           room = static_cast<std::byte*>(workspace), workspace_bytes] {
            use_workspace(room, workspace_bytes);
            const std::int64_t depth = p.a == CUBLAS_OP_T ? left.rows : left.columns;
            std::vector<double> rows(static_cast<std::size_t>(to.rows * depth)),
                columns(static_cast<std::size_t>(to.columns * depth));
            touch(a, left, false);
            touch(b, right, false);
            if (old != 0) touch(c, to, false);
            touch(d, to, true);
            for (std::int32_t batch = 0; batch < to.batch; ++batch) {
              for (std::size_t i = 0; i < rows.size(); ++i) {
                const auto at = static_cast<std::int64_t>(i);
                rows[i] = read(a, left, p.a, batch, at / depth, at % depth);
              }
              for (std::size_t i = 0; i < columns.size(); ++i) {
                const auto at = static_cast<std::int64_t>(i);
                columns[i] = read(b, right, p.b, batch, at % depth, at / depth);
              }
              for (std::int64_t i = 0; i < to.columns * to.rows; ++i) {
                const double* const row = rows.data() + i % to.rows * depth;
                const double sum =
                    std::inner_product(row, row + depth, columns.data() + i / to.rows * depth, 0.0);
                const std::int64_t at = batch * to.stride + i / to.rows * to.leading + i % to.rows;
                write(d, to.type, at, one * sum + (old != 0 ? old * read(c, to.type, at) : 0.0));
              }
            }
          });
  return status == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
