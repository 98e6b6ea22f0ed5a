#include "kernels/cuda/identity.h"

#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <map>
#include <mutex>

#include "base/host.h"
#include "base/text.h"
#include "kernels/cuda/driver.h"
#include "kernels/cuda/error.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// Comes with the driver, and is not linked with: programs start on machines that have none.
class Nvml {
 public:
  Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {}
  ~Nvml() {
    if (library_ != nullptr) dlclose(library_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// "" when it is not known.
  std::string serial_number(const char* bus) const {
    const auto init = function<int()>("nvmlInit_v2");
    const auto end = function<int()>("nvmlShutdown");
    const auto find = function<int(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2");
    const auto ask = function<int(void*, char*, unsigned)>("nvmlDeviceGetSerial");
    if (init == nullptr || end == nullptr || find == nullptr || ask == nullptr || init() != 0) return "";
    void* device = nullptr;
    char serial[64] = {};
    const bool known = find(bus, &device) == 0 && ask(device, serial, sizeof(serial)) == 0;
    end();
    return known ? serial : "";
  }

 private:
  template <typename Function>
  Function* function(const char* name) const {
    return library_ == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library_, name));
  }

  void* library_;
};

}  // namespace

std::string uuid_of(int device) {
  CUuuid uuid{};
  const auto ask = driver_function<decltype(cuDeviceGetUuid)>("cuDeviceGetUuid");
  check(static_cast<cudaError_t>(ask(&uuid, device)), "ask for a device's UUID");
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += "-";
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    text += digits;
  }
  return text;
}

namespace {

std::string found_identity(int device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "describe a device");
  char bus[32] = {};
  check(cudaDeviceGetPCIBusId(bus, sizeof(bus), device), "name a device");
  const std::string serial = Nvml().serial_number(bus);
  return concat(properties.name, ", ", serial.empty() ? "UUID " + uuid_of(device) : "serial number " + serial,
                " (", bus, " of ", host_name(), ")");
}

}  // namespace

/// Looked up once for a process, for NVML takes tenths of a second to start.
std::string identity_of(int device) {
  static std::mutex mutex;
  static std::map<int, std::string> known;
  const std::lock_guard lock(mutex);
  std::string& identity = known[device];
  if (identity.empty()) identity = found_identity(device);
  return identity;
}

}  // namespace jigsaw::inline kernels::cuda
