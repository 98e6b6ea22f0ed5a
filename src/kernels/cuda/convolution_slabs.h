#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "array/array.h"
#include "kernels/cuda/cudnn_convolution.h"
#include "kernels/cuda_workspace.h"

namespace jigsaw::inline kernels::cuda {

/// How much of a convolution is solved at once by cuDNN. Lies in the state of the rank's context.
struct ConvolutionSlabs {
  /// Of f32 copies of bf16 operands; the plan may take as much.
  std::int64_t most_bytes = kMostCudaWorkspaceBytes / 2;
  /// Of x, or of y: what 32 bits number. Of more, cuDNN has accessed memory that is not there, or wanted a
  /// hundred GiB (github.com/pytorch/pytorch, issues 117736, 128947 and 152816), and plans them nonetheless.
  std::int64_t most_elements = std::numeric_limits<std::int32_t>::max();
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
/// @param most    of a slab. It has more where those that make one row have more, or where rows cannot be
///                parted: windows that read zeros only, rows of x that no window reaches, results of slabs
///                that begin at no multiple of 16 bytes.
std::vector<ConvolutionSlab> convolution_slabs(CudnnProblem::Pass pass, const Convolution& convolution,
                                               const Array& x, const Array& y, const CopiedBytes& copied,
                                               const ConvolutionSlabs& most);

}  // namespace jigsaw::inline kernels::cuda
