#include <map>
#include <mutex>
#include <vector>

#include "cuda.h"
#include "support/fake_cuda/devices.h"
#include "support/fake_cuda/state.h"
#include "support/fake_cuda/streams.h"

// cudaMalloc: memory that ends, but for its alignment, where its pages do; behind them is one without rights.
// So an access beyond an array ends the program.

using namespace jigsaw::testing::fake_cuda;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::size_t kAlignment = 16;

struct Allocation {
  CUdeviceptr base = 0;
  std::size_t reserved = 0;
  CUmemGenericAllocationHandle handle = 0;
};

struct Allocations {
  std::map<void*, Allocation> live;
  std::vector<Allocation> freed;  ///< while work waits that may use them

  static Allocations& all() {
    static Allocations allocations;
    return allocations;
  }
  /// CUDA waits for all work before it frees; here what is freed stays until there is none.
  void sweep() {
    if (FakeStream::all_waiting > 0) return;
    for (const Allocation& each : freed) {
      cuMemRelease(each.handle);
      cuMemAddressFree(each.base, each.reserved);
    }
    freed.clear();
  }
};

}  // namespace

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  const std::lock_guard lock(mutex());
  Allocations::all().sweep();
  CUmemAllocationProp properties{};
  properties.location.id = current_device();
  const std::size_t unit = page_bytes();
  const std::size_t backed = (bytes + unit - 1) / unit * unit;
  Allocation made{.reserved = backed + unit};
  if (cuMemCreate(&made.handle, backed, &properties, 0) != CUDA_SUCCESS) return cudaErrorMemoryAllocation;
  cuMemAddressReserve(&made.base, made.reserved, 0, 0, 0);
  cuMemMap(made.base, backed, 0, made.handle, 0);
  *memory = reinterpret_cast<void*>(made.base + backed - (bytes + kAlignment - 1) / kAlignment * kAlignment);
  Allocations::all().live.emplace(*memory, made);
  return result(cudaSuccess);
}
cudaError_t cudaFree(void* memory) {
  wait_for_device(current_device());
  const std::lock_guard lock(mutex());
  Allocations& allocations = Allocations::all();
  const auto found = allocations.live.find(memory);
  if (found == allocations.live.end()) return result(cudaErrorInvalidValue);
  allocations.freed.push_back(found->second);
  allocations.live.erase(found);
  allocations.sweep();
  return cudaSuccess;
}
