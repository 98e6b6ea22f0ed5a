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

/// A part of a convolution of fields that is one, too: x and y are views of samples, or of rows of one sample
/// along the first spatial dim.
struct ConvolutionSlab {
  Convolution convolution;
  Array x, y;
};

/// What copies of all of x and all of y take; 0 of what is read as it is.
struct CopiedBytes {
  std::int64_t of_x = 0, of_y = 0;
};

/// What a pass over x [B, space…, C] and y [B, places…, O] is solved in: slabs that make rows of y, of x (a
/// data gradient), or summands of a weight's gradient.
///
/// @param copied  of all.
/// @param most    of a slab's copies. They are more where those that make one row take more, or where rows
///                cannot be parted: windows that read zeros only, rows of x that no window reaches, results
///                of slabs that begin at no multiple of 16 bytes.
std::vector<ConvolutionSlab> convolution_slabs(CudnnProblem::Pass pass, const Convolution& convolution,
                                               const Array& x, const Array& y, const CopiedBytes& copied,
                                               std::int64_t most);

}  // namespace jigsaw::inline kernels::cuda
