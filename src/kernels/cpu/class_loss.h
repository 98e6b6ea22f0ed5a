#pragma once
#include "kernels/loss.h"

namespace jigsaw::inline kernels::cpu {

/// class_sums() and class_gradient() of loss.h, for logits in f32 and bf16: softmax in float32 over blocks of
/// points, sums in float64.
void class_sums(Context& context, const Array& logits, const Array& labels, const Array& weight,
                ClassSums& sums);
void class_gradient(Context& context, const Array& logits, const Array& labels, const Array& weight,
                    const Array& factors, Array& gradient);

}  // namespace jigsaw::inline kernels::cpu
