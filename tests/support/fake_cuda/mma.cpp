#include "mma.h"

#include "base/text.h"
#include "support/fake_cuda/fake_cuda.h"

namespace jigsaw::testing::fake_cuda {

void multiply_matrices(const float (&a)[16][16], const float (&b)[16][16], float (&sums)[16][16]) {
  for (int i = 0; i < 16; ++i)
    for (int n = 0; n < 16; ++n)
      for (int j = 0; j < 16; ++j) sums[i][j] += a[i][n] * b[n][j];
}

void require_matrix_places(const void* first, std::int64_t row_bytes) {
  if (reinterpret_cast<std::uintptr_t>(first) % 32 == 0 && row_bytes % 16 == 0) return;
  accuse(concat(" multiplies a matrix that begins ", reinterpret_cast<std::uintptr_t>(first) % 32,
                " bytes beyond a multiple of 32, with rows of ", row_bytes, " bytes"));
  end_kernel();
}

}  // namespace jigsaw::testing::fake_cuda
