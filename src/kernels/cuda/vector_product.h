#pragma once
#include "kernels/cuda/matmul.h"

namespace jigsaw::inline kernels::cuda {

/// Products that memory bounds, of which cuBLASLt would make one matrix for each factor: C = A·B, or
/// C += A·B, by a kernel of this program, on the context's stream. With n = 1 (or m = 1) and k = 1 each
/// vector of the batch times its factor (a scale of channels); with m = n = 1 the dot products of the batch
/// (the gradient of such a scale), summed in float64.
/// @return  false for other products, of which nothing is done.
bool vector_product(Context& context, const MatrixProduct& product, DType in, DType out, const std::byte* a,
                    const std::byte* b, std::byte* c, bool add);

}  // namespace jigsaw::inline kernels::cuda
