#include <map>

#include "base/error.h"
#include "base/host.h"
#include "base/text.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/identity.h"
#include "kernels/cuda/machine.h"
#include "kernels/cuda_context.h"

namespace jigsaw::inline kernels {

namespace {

/// Compiled for what all kernels are compiled for.
__global__ void nothing() {}

int version_by(cudaError_t (*ask)(int*)) {
  int version = 0;
  return ask(&version) == cudaSuccess ? version : 0;
}

/// What is most often behind an error of a machine whose GPUs cannot even be counted.
std::string meaning_of(cudaError_t status) {
  static const std::map<int, const char*> meanings = {
      {802,
       ": the fabric manager of this NVSwitch machine does not run, or is of another version than the "
       "driver"},
      {803,
       ": the driver's library and its kernel module differ, or a library for forward compatibility stands "
       "before that of a newer driver"},
      {804,
       ": the library for forward compatibility does not support this GPU; take its folder out of "
       "LD_LIBRARY_PATH"},
      {999, ": most often the kernel module nvidia_uvm is not loaded"}};
  const auto found = meanings.find(static_cast<int>(status));
  return found == meanings.end() ? "" : found->second;
}

}  // namespace

int cuda_runtime_version() {
  return version_by([](int* version) { return cudaRuntimeGetVersion(version); });
}

CudaMachine cuda_machine() {
  CudaMachine machine;
  machine.built = true;
  machine.driver = version_by([](int* version) { return cudaDriverGetVersion(version); });
  machine.runtime = cuda_runtime_version();
  const cudaError_t status = cudaGetDeviceCount(&machine.devices);
  if (status != cudaSuccess) machine.devices = 0;
  if (status != cudaSuccess && status != cudaErrorNoDevice && status != cudaErrorInsufficientDriver)
    machine.failure = concat(cuda::error_text(status), " on ", host_name(), meaning_of(status));
  cudaGetLastError();
  return machine;
}

int cuda_device_count() {
  return cuda_machine().devices;
}

CudaDevice cuda_device(int device) {
  const int count = cuda_device_count();
  if (device < 0 || device >= count) {
    throw ConfigError(concat("there is no CUDA device ", device, ": this machine has ", count,
                             "; set \"device\" to \"cpu\" to run without"));
  }
  cudaDeviceProp properties{};
  cuda::check(cudaGetDeviceProperties(&properties, device), "describe a device");
  char bus[32] = {};
  cuda::check(cudaDeviceGetPCIBusId(bus, sizeof(bus), device), "name a device");
  return {.name = properties.name,
          .bus = bus,
          .uuid = cuda::uuid_of(device),
          .major = properties.major,
          .minor = properties.minor,
          .bytes = static_cast<std::int64_t>(properties.totalGlobalMem),
          .number = device};
}

CudaDevice current_cuda_device() {
  int device = 0;
  cuda::check(cudaGetDevice(&device), "ask for the current device");
  return cuda_device(device);
}

void cuda::require_code_for(const CudaDevice& device) {
  cudaFuncAttributes attributes{};
  const cudaError_t status = cudaFuncGetAttributes(&attributes, nothing);
  if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorInvalidDeviceFunction ||
      status == cudaErrorUnsupportedPtxVersion) {
    cudaGetLastError();
    throw ConfigError(
        concat("this build has no code for the GPU here, ", device.name, ", compute capability ",
               device.major, ".", device.minor,
               device.major < 8
                   ? ", and can have none below 8.0: "
                   : concat(": build with -DCMAKE_CUDA_ARCHITECTURES=", device.major, device.minor, ", or "),
               "set \"device\" to \"cpu\""));
  }
  check(status, "look for the code of a kernel");
}

}  // namespace jigsaw::inline kernels
