#include <chrono>
#include <cstring>
#include <map>
#include <string>
#include <thread>

#include "base/text.h"
#include "cuda.h"
#include "cuda_runtime.h"
#include "support/fake_cuda/devices.h"
#include "support/fake_cuda/state.h"
#include "support/fake_cuda/streams.h"

// Which devices there are, what they are, and which functions the driver has.

namespace jigsaw::testing::fake_cuda {

namespace {
thread_local int device_of_thread = 0;
}

int current_device() {
  return device_of_thread;
}

}  // namespace jigsaw::testing::fake_cuda

using namespace jigsaw::testing::fake_cuda;  // NOLINT(google-build-using-namespace)

cudaError_t cudaDriverGetVersion(int* version) {
  *version = machine().driver;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = machine().runtime;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  while (Faults::all().silent == Faults::rank_on_machine())
    std::this_thread::sleep_for(std::chrono::hours(1));
  *count = 0;
  if (machine().driver / 1000 < machine().runtime / 1000) return result(cudaErrorInsufficientDriver);
  if (machine().broken != 0) return result(static_cast<cudaError_t>(machine().broken));
  if (machine().devices == 0) return result(cudaErrorNoDevice);
  *count = machine().devices;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= machine().devices) return result(cudaErrorInvalidDevice);
  const Faults& faults = Faults::all();
  if (faults.taken != 0 && device == faults.taken_device)
    return result(static_cast<cudaError_t>(faults.taken));
  device_of_thread = device;
  return result(cudaSuccess);
}
cudaError_t cudaGetDevice(int* device) {
  *device = device_of_thread;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= machine().devices) return result(cudaErrorInvalidDevice);
  *properties = {};
  const char* const name = device == machine().unlike ? "other fake" : "fake";
  std::strncpy(properties->name, name, sizeof(properties->name) - 1);
  properties->major = machine().major;
  properties->minor = machine().minor;
  properties->totalGlobalMem = machine().memory;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  if (device < 0 || device >= machine().devices) return result(cudaErrorInvalidDevice);
  std::strncpy(
      text,
      jigsaw::concat("0000:0", Faults::all().slices == 1 ? 0 : Faults::all().on_machine(device), ":00.0")
          .c_str(),
      static_cast<std::size_t>(length));
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned /*version*/,
                                             unsigned long long /*flags*/,
                                             cudaDriverEntryPointQueryResult* found) {
  static const std::map<std::string, void*> functions = {
      {"cuStreamWriteValue32", reinterpret_cast<void*>(cuStreamWriteValue32)},
      {"cuMemGetAllocationGranularity", reinterpret_cast<void*>(cuMemGetAllocationGranularity)},
      {"cuMemAddressReserve", reinterpret_cast<void*>(cuMemAddressReserve)},
      {"cuMemAddressFree", reinterpret_cast<void*>(cuMemAddressFree)},
      {"cuMemCreate", reinterpret_cast<void*>(cuMemCreate)},
      {"cuMemRelease", reinterpret_cast<void*>(cuMemRelease)},
      {"cuMemMap", reinterpret_cast<void*>(cuMemMap)},
      {"cuDeviceGetUuid", reinterpret_cast<void*>(cuDeviceGetUuid)},
      {"cuDeviceGetAttribute", reinterpret_cast<void*>(cuDeviceGetAttribute)},
      {"cuDeviceGetP2PAttribute", reinterpret_cast<void*>(cuDeviceGetP2PAttribute)},
      {"cuMemUnmap", reinterpret_cast<void*>(cuMemUnmap)},
      {"cuMemSetAccess", reinterpret_cast<void*>(cuMemSetAccess)}};
  const auto at = functions.find(name);
  *function = at == functions.end() ? nullptr : at->second;
  *found = at == functions.end() ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  if (device < 0 || device >= machine().devices) return CUDA_ERROR_INVALID_VALUE;
  *uuid = {};
  uuid->bytes[15] = static_cast<char>(Faults::all().on_machine(device));
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (attribute != CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED || device < 0 ||
      device >= machine().devices)
    return CUDA_ERROR_INVALID_VALUE;
  *value = machine().vmm != 0 ? 1 : 0;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to) {
  const int devices = machine().devices;
  if (from < 0 || from >= devices || to < 0 || to >= devices || from == to) return CUDA_ERROR_INVALID_VALUE;
  *value = Faults::all().peers >= (attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ? 1 : 2) ? 1 : 0;
  return CUDA_SUCCESS;
}
