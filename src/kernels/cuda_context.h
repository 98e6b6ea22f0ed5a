#pragma once
#include <string>

#include "array/array.h"

namespace jigsaw::inline kernels {

/// What CUDA says of this machine.
struct CudaMachine {
  bool built = false;        ///< the program has CUDA kernels
  int driver = 0;            ///< CUDA version of the driver, 12080 for 12.8; 0: there is none
  int runtime = 0;           ///< CUDA version that the program was built with
  int devices = 0;           ///< that the program can use
  std::string failure = {};  ///< CUDA's words, where it cannot even count them; "" where it can

  /// A program runs with drivers of its own major version and newer ones.
  bool driver_too_old() const { return driver > 0 && driver / 1000 < runtime / 1000; }
};
CudaMachine cuda_machine();
/// CudaMachine::runtime, for which no driver is started; 0 in builds without CUDA.
int cuda_runtime_version();

/// A GPU.
struct CudaDevice {
  std::string name;          ///< "NVIDIA H100 80GB HBM3"
  std::string bus;           ///< PCI address, which slices of one GPU (MIG) share
  std::string uuid;          ///< "GPU-…", which names it, or a slice, among all
  int major = 0, minor = 0;  ///< compute capability
  std::int64_t bytes = 0;    ///< of memory
  int number = 0;            ///< among those that this process sees
};
/// Throws ConfigError as make_cuda_context() does.
CudaDevice cuda_device(int device);
/// The one of the context that this thread made last.
CudaDevice current_cuda_device();

/// Number of CUDA devices for this build on this machine; 0 when either has none.
int cuda_device_count();

/// The cuDNN that convolutions go by.
struct CudnnLibrary {
  bool built = false;  ///< the program was built with one
  int built_for = 0;   ///< major version of that one, the only one that it works with
  int version = 0;     ///< of the one here, as cuDNN counts: 91900 is 9.19.0
  int cuda = 0;        ///< major version of CUDA that this program was built with
  int for_cuda = 0;    ///< that the one here is for; those for CUDA 12 and 13 have the same file name
};
CudnnLibrary cudnn_library();

/// Makes a GPU, counted round and round, current for this thread before anything else asks for one; nothing
/// where there is none.
void choose_cuda_device(int number);

/// A context whose arrays live on a CUDA device, with streams of its own.
/// @param for_other_processes  in memory that a CUDA-aware MPI can open in them (cudaMalloc): that of
///                             cuMemCreate, which grows as one range, it cannot, or passes by the host.
/// Throws ConfigError when the build has no CUDA kernels, or none for such a GPU, or the machine has no such
/// device.
Context make_cuda_context(int device, bool for_other_processes = false);

}  // namespace jigsaw::inline kernels
