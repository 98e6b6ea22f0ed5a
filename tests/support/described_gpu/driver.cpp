// A driver of a GPU that is only described, as far as cuDNN asks for one while it plans: it takes the kernels
// that were compiled, and runs none. It stands in a library that calls itself libcuda.so.1, which cuDNN looks
// for. Results are CUresult, handles (CUlibrary, CUkernel) void*, as cuda.h has them, which is not included:
// it renames functions.
//
// JIGSAW_DESCRIBED_GPU_LOADS=222  what loading a kernel comes to, here CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
// the driver is older than the compiler.
#include <cstdlib>

#define TAKES(name, parameters, done) \
  extern "C" int name parameters {    \
    done;                             \
    return 0;                         \
  }
TAKES(cuInit, (unsigned), )
TAKES(cuDeviceGetCount, (int* count), *count = 1)
TAKES(cuLibraryGetKernel, (void** kernel, void*, const char*), *kernel = kernel)
TAKES(cuLibraryUnload, (void*), )
TAKES(cuGetErrorName, (int, const char** text), *text = "none")
TAKES(cuGetErrorString, (int, const char** text), *text = "none")

extern "C" int cuLibraryLoadData(void** library, const void*, void*, void*, unsigned, void*, void*,
                                 unsigned) {
  const char* const result = std::getenv("JIGSAW_DESCRIBED_GPU_LOADS");
  *library = library;
  return result == nullptr ? 0 : std::atoi(result);
}

// Looked for, and of no use: CUDA_ERROR_STUB_LIBRARY.
#define LACKS(name)       \
  extern "C" int name() { \
    return 34;            \
  }
LACKS(cuCtxGetCurrent)
LACKS(cuCtxGetLimit)
LACKS(cuCtxPopCurrent)
LACKS(cuCtxPushCurrent)
LACKS(cuDeviceGet)
LACKS(cuDriverGetVersion)
LACKS(cuGetExportTable)
LACKS(cuKernelGetAttribute)
LACKS(cuKernelSetAttribute)
LACKS(cuLaunchCooperativeKernel)
LACKS(cuLaunchKernel)
LACKS(cuLaunchKernelEx)
LACKS(cuLibraryLoadFromFile)
LACKS(cuLinkAddData)
LACKS(cuLinkComplete)
LACKS(cuLinkCreate)
LACKS(cuLinkDestroy)
LACKS(cuOccupancyMaxPotentialClusterSize)
LACKS(cuStreamGetCtx)
