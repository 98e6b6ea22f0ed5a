#pragma once
#include "kernels/pointwise.h"

namespace jigsaw::inline kernels::cpu {

/// pointwise_forward and pointwise_backward of pointwise.h for f32 and bf16; the bias is f32. Blocks that fit
/// the first-level cache go through all parts of the chain, so that memory is passed once.
void chain_forward(Context& context, const PointwiseChain& chain, const Array& x, const Array& bias,
                   const Array& residual, Array& y);
void chain_backward(Context& context, const PointwiseChain& chain, const Array& x, const Array& bias,
                    const Array& dy, Array& dx);

}  // namespace jigsaw::inline kernels::cpu
