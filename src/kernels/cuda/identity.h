#pragma once
#include <string>

namespace jigsaw::inline kernels::cuda {

/// Names a GPU for whoever has to replace it: "NVIDIA H100 80GB HBM3, serial number 1650923012345
/// (0000:1b:00.0 of node7)". The serial number is what NVML says; where it says none, the GPU's UUID.
std::string identity_of(int device);

/// "GPU-8f6d…": of a GPU, or of the slice of one (MIG) that the device is.
std::string uuid_of(int device);

}  // namespace jigsaw::inline kernels::cuda
