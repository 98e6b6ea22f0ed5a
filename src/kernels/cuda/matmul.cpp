#include "kernels/cuda/matmul.h"

#include <algorithm>
#include <utility>

#include "array/raw_memory.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/cuda/error.h"
#include "kernels/cuda/library.h"

namespace jigsaw::inline kernels::cuda {

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw LibraryError(concat("cuBLASLt could not ", what, ": ", cublasLtGetStatusString(status)));
  }
}

namespace {

constexpr std::int64_t kWorkspaceBytes = std::int64_t{32} << 20;

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return CUDA_R_32F;
    case DType::kFloat64:
      return CUDA_R_64F;
    case DType::kBfloat16:
      return CUDA_R_16BF;
  }
  fail("unknown element type");
}

/// A matrix as cuBLASLt sees it: column-major. Rows that are contiguous make the transposed matrix.
class Matrix {
 public:
  Matrix(const MatrixProduct::Strides& strides, std::int64_t rows, std::int64_t columns, std::int64_t batch,
         DType dtype) {
    const bool by_rows = strides.column == 1;
    check(cublasLtMatrixLayoutCreate(
              &layout_, type_of(dtype), static_cast<std::uint64_t>(by_rows ? columns : rows),
              static_cast<std::uint64_t>(by_rows ? rows : columns), by_rows ? strides.row : strides.column),
          "describe a matrix");
    const auto count = static_cast<std::int32_t>(batch);
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count));
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &strides.batch, sizeof(strides.batch));
    transposed_ = by_rows;
  }
  ~Matrix() { cublasLtMatrixLayoutDestroy(layout_); }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;

  cublasLtMatrixLayout_t layout() const { return layout_; }
  /// What makes the transposed matrix of the stored one.
  cublasOperation_t to_transposed() const { return transposed_ ? CUBLAS_OP_N : CUBLAS_OP_T; }

 private:
  void set(cublasLtMatrixLayoutAttribute_t attribute, const void* value, std::size_t bytes) {
    check(cublasLtMatrixLayoutSetAttribute(layout_, attribute, value, bytes), "describe a batch of matrices");
  }

  cublasLtMatrixLayout_t layout_ = nullptr;
  bool transposed_ = false;
};

/// Sums in float32, of factors in full unless TensorFloat-32 is allowed, or in float64.
cublasComputeType_t compute_type(const MatmulKey& key) {
  if (key.in == DType::kFloat64) return CUBLAS_COMPUTE_64F;
  return key.rounded ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

struct Description {
  Description(const MatmulKey& key, const Matrix& a, const Matrix& b) {
    check(cublasLtMatmulDescCreate(&description, compute_type(key),
                                   key.in == DType::kFloat64 ? CUDA_R_64F : CUDA_R_32F),
          "describe a product");
    // Row-major C is column-major Cᵀ = Bᵀ·Aᵀ.
    const cublasOperation_t first = b.to_transposed(), second = a.to_transposed();
    check(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof(first)),
          "describe a product");
    check(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof(second)),
          "describe a product");
  }
  ~Description() { cublasLtMatmulDescDestroy(description); }
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;

  cublasLtMatmulDesc_t description = nullptr;
};

struct Preference {
  explicit Preference(const MatmulKey::Alignment& alignment) {
    check(cublasLtMatmulPreferenceCreate(&preference), "state a preference");
    const auto bytes = static_cast<std::uint64_t>(kWorkspaceBytes);
    check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes,
                                               sizeof(bytes)),
          "state a preference");
    // Sums of parts of k are formed in the type of the computation, and not in that of the result.
    constexpr std::uint32_t kReductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                               &kReductions, sizeof(kReductions)),
          "state a preference");
    const std::pair<cublasLtMatmulPreferenceAttributes_t, std::uint32_t> alignments[] = {
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment.b},  // Cᵀ = Bᵀ·Aᵀ
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment.a},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment.c},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment.c}};
    for (const auto& [attribute, multiple] : alignments) {
      check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &multiple, sizeof(multiple)),
            "state a preference");
    }
  }
  ~Preference() { cublasLtMatmulPreferenceDestroy(preference); }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;

  cublasLtMatmulPreference_t preference = nullptr;
};

}  // namespace

std::string MatmulKey::text() const {
  const MatrixProduct& p = product;
  const std::uint32_t least = std::min({alignment.a, alignment.b, alignment.c});
  return concat("the product of ", name(in), " matrices ", p.m, " x ", p.k, " and ", p.k, " x ", p.n,
                p.batch > 1 ? concat(", ", p.batch, " times") : "",
                out == in ? "" : concat(", to ", name(out)),
                least < 16 ? concat(", at multiples of ", least, " bytes") : "",
                rounded ? ", factors rounded to TensorFloat-32" : "");
}

struct Matmul::Plan {
  Plan(cublasLtHandle_t handle_, const MatmulKey& key)
      : handle(handle_),
        wide(key.in == DType::kFloat64),
        a(key.product.a, key.product.m, key.product.k, key.product.batch, key.in),
        b(key.product.b, key.product.k, key.product.n, key.product.batch, key.in),
        c(key.product.c, key.product.m, key.product.n, key.product.batch, key.out),
        description(key, a, b),
        text(key.text()) {}

  /// False where cuBLASLt knows none.
  bool choose_algorithm(const MatmulKey::Alignment& alignment) {
    const Preference preference(alignment);
    int found = 0;
    cublasLtMatmulHeuristicResult_t result{};
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle, description.description, b.layout(), a.layout(), c.layout(),
                                       c.layout(), preference.preference, 1, &result, &found);
    // Both are said of layouts that it has no kernel for, such as matrices whose elements lie between those
    // of others.
    if (status != CUBLAS_STATUS_NOT_SUPPORTED && status != CUBLAS_STATUS_INVALID_VALUE)
      check(status, concat("choose an algorithm for ", text).c_str());
    algorithm = result.algo;
    return status == CUBLAS_STATUS_SUCCESS && found > 0 && result.state == CUBLAS_STATUS_SUCCESS;
  }

  cublasLtHandle_t handle;
  bool wide;
  Matrix a, b, c;
  Description description;
  std::string text;
  cublasLtMatmulAlgo_t algorithm{};
};

Matmul::Matmul(std::unique_ptr<Plan> plan) : plan_(std::move(plan)) {}
Matmul::~Matmul() = default;

std::unique_ptr<Matmul> Matmul::plan(cublasLtHandle_t handle, const MatmulKey& key) {
  auto plan = std::make_unique<Plan>(handle, key);
  if (!plan->choose_algorithm(key.alignment)) return nullptr;
  return std::unique_ptr<Matmul>(new Matmul(std::move(plan)));
}

void Matmul::run(Context& context, const std::byte* a, const std::byte* b, std::byte* c, bool add) const {
  const Plan& p = *plan_;
  Array workspace(context, {kWorkspaceBytes / 4}, DType::kFloat32, Purpose::kWorkspace);
  const float one = 1, old = add ? 1 : 0;
  const double wide_one = 1, wide_old = old;
  cudaStream_t const stream = stream_of(context);
  by_library(context, p.text, [&] {
    const cublasStatus_t status = cublasLtMatmul(
        p.handle, p.description.description, p.wide ? static_cast<const void*>(&wide_one) : &one, b,
        p.b.layout(), a, p.a.layout(), p.wide ? static_cast<const void*>(&wide_old) : &old, c, p.c.layout(),
        c, p.c.layout(), &p.algorithm, workspace.raw(), static_cast<std::size_t>(kWorkspaceBytes), stream);
    if (status != CUBLAS_STATUS_SUCCESS) check(status, ("run " + p.text).c_str());
  });
  if (launches_wait(context)) launched(context, cudaSuccess, p.text.c_str());
}

}  // namespace jigsaw::inline kernels::cuda
