#pragma once
#include <cstdint>
#include <vector>

#include "array/array.h"
#include "kernels/cuda/cudnn_convolution.h"
#include "kernels/cuda_workspace.h"

namespace jigsaw::inline kernels::cuda {

/// How much of a convolution is solved at once where cuDNN reads f32 copies of bf16 operands, so that they
/// stay bounded. Lies in the state of the rank's context.
struct ConvolutionSlabs {
  std::int64_t most_bytes = kMostCudaWorkspaceBytes / 2;  ///< of copies; the plan may take as much
};

/// A part of a convolution of fields that is one, too: x and y are views of rows along the first spatial dim
/// of a sample, or of all samples.
struct ConvolutionSlab {
  Convolution convolution;
  Array x, y;
};

/// What a pass over x [B, space…, C] and y [B, places…, O] is solved in: slabs that make rows of y, of x (a
/// data gradient), or summands of a weight's gradient.
///
/// @param bytes  of the copies of all.
/// @param most   of those of a slab. They are more where a row takes more, or where rows cannot be parted:
///               windows that read zeros only, rows of x that no window reaches, results of slabs that begin
///               at no multiple of 16 bytes.
std::vector<ConvolutionSlab> convolution_slabs(CudnnProblem::Pass pass, const Convolution& convolution,
                                               const Array& x, const Array& y, std::int64_t bytes,
                                               std::int64_t most);

}  // namespace jigsaw::inline kernels::cuda
