#pragma once
#include "array/context.h"
#include "array/dtype.h"
#include "train/configuration.h"

namespace jigsaw::inline train {

/// The types that a precision stands for.
struct PrecisionTypes {
  DType compute;  ///< activations
  DType master;   ///< stored parameters, gradients, optimizer
};
PrecisionTypes types_of(Precision precision);

/// The context of one rank: what computes (`device`) with which kernels (fp64: the reference ones).
///
/// @param threads         that a rank on the processor may use.
/// @param rank_on_machine  chooses among the machine's GPUs.
/// @throws ConfigError  when CUDA is asked for, and is not built or has no device here.
Context make_context(DeviceChoice device, Precision precision, int threads, int rank_on_machine);

}  // namespace jigsaw::inline train
