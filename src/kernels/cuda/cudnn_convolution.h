#pragma once
#include <string>

#include "array/array.h"
#include "kernels/convolution.h"

// Convolutions by cuDNN; without it (cudnn_absent.cpp) it solves none, and kernels of ours do
// (convolution.cu).

namespace jigsaw::inline kernels::cuda {

/// A convolution or one of its gradients on dense fields with channels last, its weight as [O, kernel…,
/// C/groups].
struct CudnnProblem {
  enum class Pass { kForward, kData, kWeight };

  Pass pass = Pass::kForward;
  /// Of x, y and weight; sums are formed in f32. Products of f32 are exact, unless `rounded`.
  DType type = DType::kFloat32;
  bool rounded = false;  ///< products of f32 may take their factors as TensorFloat-32 (11 bits)
  bool bias = false;     ///< kForward adds an [O] of the same type, to sums in f32
  Convolution convolution;
  Shape x, y;                 ///< [B, space…, C], [B, places…, O]
  bool deterministic = true;  ///< sums repeat bit for bit

  /// What a call of kernels/convolution.h poses; of the arrays shapes and types count.
  static CudnnProblem forward(const Convolution& convolution, const Array& x, bool bias, const Array& y);
  static CudnnProblem backward_data(const Convolution& convolution, const Array& dy, const Array& dx);
  /// Its result is in f32 always.
  static CudnnProblem backward_weight(const Convolution& convolution, const Array& dy, const Array& x);

  /// A name that no other problem has: "the forward convolution of [1, 8, 8, 3] …".
  std::string text() const;
};

/// What a problem's operands are at a run; addresses are multiples of 16 bytes.
struct CudnnOperands {
  const void *x = nullptr, *weight = nullptr, *bias = nullptr, *y = nullptr;
};

class CudnnPlan;

/// cuDNN's plan for it, kept by the context; null where no engine of cuDNN forms its sums in full precision
/// and, if it is to be deterministic, repeats them bit for bit. The library is of the version that this was
/// built for (cudnn_library()).
/// @param why  gets what cuDNN says of that, "" for nothing.
const CudnnPlan* cudnn_plan(Context& context, const CudnnProblem& problem, std::string& why);

/// Puts a plan of the context's into its stream. Memory for work comes from its arena.
void cudnn_run(Context& context, const CudnnPlan& plan, const CudnnOperands& operands);

}  // namespace jigsaw::inline kernels::cuda
