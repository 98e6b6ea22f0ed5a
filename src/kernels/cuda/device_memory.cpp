#include "kernels/cuda/device_memory.h"

#include <cuda.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "kernels/cuda/driver.h"
#include "kernels/cuda/error.h"

namespace jigsaw::inline kernels::cuda {

namespace {

struct Driver {
  decltype(cuMemAddressReserve)* reserve =
      driver_function<decltype(cuMemAddressReserve)>("cuMemAddressReserve");
  decltype(cuMemAddressFree)* free = driver_function<decltype(cuMemAddressFree)>("cuMemAddressFree");
  decltype(cuMemCreate)* create = driver_function<decltype(cuMemCreate)>("cuMemCreate");
  decltype(cuMemRelease)* release = driver_function<decltype(cuMemRelease)>("cuMemRelease");
  decltype(cuMemMap)* map = driver_function<decltype(cuMemMap)>("cuMemMap");
  decltype(cuMemUnmap)* unmap = driver_function<decltype(cuMemUnmap)>("cuMemUnmap");
  decltype(cuMemSetAccess)* set_access = driver_function<decltype(cuMemSetAccess)>("cuMemSetAccess");
  decltype(cuMemGetAllocationGranularity)* granularity =
      driver_function<decltype(cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity");
};

/// Of errors of the driver that the runtime has, too, the numbers are the same.
cudaError_t as_runtime(CUresult status) {
  return static_cast<cudaError_t>(status);
}
void check(CUresult status, const char* what) {
  cuda::check(as_runtime(status), what);
}

CUmemAllocationProp properties_of(int device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  return properties;
}

CUresult map_region(const Driver& driver, CUdeviceptr at, std::size_t bytes,
                    CUmemGenericAllocationHandle handle, const CUmemLocation& location) {
  CUresult status = driver.map(at, bytes, 0, handle, 0);
  if (status != CUDA_SUCCESS) return status;
  const CUmemAccessDesc access{location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  status = driver.set_access(at, bytes, &access, 1);
  if (status != CUDA_SUCCESS) driver.unmap(at, bytes);
  return status;
}

class DeviceMemory : public MemorySource {
 public:
  DeviceMemory(int device, std::shared_ptr<const Failures> failures)
      : device_(device), failures_(std::move(failures)) {
    cuda::check(cudaSetDevice(device), "choose the device");
    std::size_t free = 0;
    cuda::check(cudaMemGetInfo(&free, &total_), "ask for the device's memory");
    check(driver_.granularity(&unit_, &properties_, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
          "ask how memory is cut");
    total_ = rounded(total_);
    check(driver_.reserve(&base_, total_, 0, 0, 0), "reserve addresses");
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() override {
    CUdeviceptr at = base_;
    for (const auto& [handle, bytes] : regions_) {
      driver_.unmap(at, bytes);
      driver_.release(handle);
      at += bytes;
    }
    driver_.free(base_, total_);
  }

  std::byte* allocate(std::size_t asked) override {
    const std::size_t bytes = rounded(asked);
    CUmemGenericAllocationHandle handle{};
    CUresult status = CUDA_ERROR_OUT_OF_MEMORY;
    if (used_ + bytes <= total_) status = driver_.create(&handle, bytes, &properties_, 0);
    const CUdeviceptr at = base_ + used_;
    if (status == CUDA_SUCCESS) {
      status = map_region(driver_, at, bytes, handle, properties_.location);
      if (status != CUDA_SUCCESS) driver_.release(handle);
    }
    if (status == CUDA_ERROR_OUT_OF_MEMORY) {
      throw OutOfMemoryError(concat("out of memory on CUDA device ", device_, " in ",
                                    failures_->work().text(), ", ", in_use(), " are in use"));
    }
    failures_->check(as_runtime(status));  // which may be of work before it
    regions_.emplace_back(handle, bytes);
    used_ += bytes;
    return reinterpret_cast<std::byte*>(at);
  }
  std::size_t left() const override {
    std::size_t free = 0, total = 0;
    if (cudaMemGetInfo(&free, &total) != cudaSuccess) return 0;
    return std::min(free, total_ - used_);
  }
  bool joins() const override { return true; }

 private:
  std::size_t rounded(std::size_t bytes) const { return (bytes + unit_ - 1) / unit_ * unit_; }
  /// Bytes held by this and other ranges of addresses.
  std::string in_use() const {
    std::size_t free = 0, total = 0, used = used_;
    if (cudaMemGetInfo(&free, &total) == cudaSuccess) used = total - free;
    return concat(human_bytes(static_cast<std::int64_t>(used)), " of ",
                  human_bytes(static_cast<std::int64_t>(total_)));
  }

  Driver driver_;
  int device_;
  std::shared_ptr<const Failures> failures_;
  CUmemAllocationProp properties_ = properties_of(device_);
  std::size_t unit_ = 1, total_ = 0, used_ = 0;
  CUdeviceptr base_ = 0;
  std::vector<std::pair<CUmemGenericAllocationHandle, std::size_t>> regions_;
};

/// Regions of cudaMalloc, apart or not. Freeing waits for all work of the device.
class MallocMemory : public MemorySource {
 public:
  MallocMemory(int device, std::shared_ptr<const Failures> failures, bool apart)
      : device_(device), failures_(std::move(failures)), apart_(apart) {}
  MallocMemory(const MallocMemory&) = delete;
  MallocMemory& operator=(const MallocMemory&) = delete;
  ~MallocMemory() override {
    for (void* region : regions_) cudaFree(region);
  }

  std::byte* allocate(std::size_t bytes) override {
    void* memory = nullptr;
    const cudaError_t status = cudaMalloc(&memory, bytes > 0 ? bytes : 1);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // it is told here
      throw OutOfMemoryError(concat("out of memory on CUDA device ", device_, " in ",
                                    failures_->work().text(), ", ",
                                    human_bytes(static_cast<std::int64_t>(left())), " are free"));
    }
    failures_->check(status);
    if (!apart_) regions_.push_back(memory);
    return static_cast<std::byte*>(memory);
  }
  std::size_t left() const override {
    std::size_t free = 0, total = 0;
    return cudaMemGetInfo(&free, &total) == cudaSuccess ? free : 0;
  }
  bool joins() const override { return false; }
  bool apart() const override { return apart_; }
  void given_back(std::byte* memory, std::size_t /*bytes*/) noexcept override {
    if (apart_) cudaFree(memory);
  }

 private:
  int device_;
  std::shared_ptr<const Failures> failures_;
  bool apart_;
  std::vector<void*> regions_;  ///< where they are not apart
};

/// Whether the driver does so with the least that it maps: some sandboxes refuse what the device's attribute
/// promises.
bool maps_a_region(int device) {
  const Driver driver;
  const CUmemAllocationProp properties = properties_of(device);
  std::size_t bytes = 0;
  CUdeviceptr at = 0;
  CUmemGenericAllocationHandle handle{};
  if (driver.granularity(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS) return false;
  if (driver.reserve(&at, bytes, 0, 0, 0) != CUDA_SUCCESS) return false;
  CUresult status = driver.create(&handle, bytes, &properties, 0);
  if (status == CUDA_SUCCESS) {
    status = map_region(driver, at, bytes, handle, properties.location);
    if (status == CUDA_SUCCESS) driver.unmap(at, bytes);
    driver.release(handle);
  }
  driver.free(at, bytes);
  return status == CUDA_SUCCESS || status == CUDA_ERROR_OUT_OF_MEMORY;
}

/// Whether the driver maps a device's memory at addresses of the program's choice: not that of a GPU which a
/// hypervisor divides among machines.
bool maps_memory(int device) {
  const auto ask = driver_function<decltype(cuDeviceGetAttribute)>("cuDeviceGetAttribute");
  int maps = 0;
  check(ask(&maps, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device),
        "ask whether memory can be mapped");
  if (maps == 0) return false;
  cuda::check(cudaSetDevice(device), "choose the device");
  return maps_a_region(device);
}

}  // namespace

bool memory_is_apart() {
  const char* const given = std::getenv("JIGSAW_CUDA_MEMORY");
  return given != nullptr && std::string_view(given) == "apart";
}

std::unique_ptr<MemorySource> make_device_memory(int device, std::shared_ptr<const Failures> failures,
                                                 bool for_other_processes) {
  if (memory_is_apart() || for_other_processes || !maps_memory(device))
    return std::make_unique<MallocMemory>(device, std::move(failures), memory_is_apart());
  return std::make_unique<DeviceMemory>(device, std::move(failures));
}

}  // namespace jigsaw::inline kernels::cuda
