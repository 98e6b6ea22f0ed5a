#pragma once
#include "kernels/cuda/matmul.h"

namespace jigsaw::inline kernels::cuda {

/// C = A·B, or C += A·B, by a kernel of this program, on the context's stream: what Matmul::run does, for
/// keys that cuBLASLt has no algorithm for, and far slower. Takes factors in full, whatever the key allows.
void strided_product(Context& context, const MatmulKey& key, const std::byte* a, const std::byte* b,
                     std::byte* c, bool add);

}  // namespace jigsaw::inline kernels::cuda
