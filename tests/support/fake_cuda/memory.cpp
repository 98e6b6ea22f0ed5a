#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "cuda.h"
#include "cuda_runtime.h"
#include "support/fake_cuda/devices.h"
#include "support/fake_cuda/state.h"
#include "support/fake_cuda/streams.h"
#include "support/fake_cuda/thread_order.h"

// Memory of devices, mapped piece by piece, and pinned memory of the host.

namespace jigsaw::testing::fake_cuda {

namespace {

constexpr std::size_t kLargePage = std::size_t{2} << 20;
/// Small where each array stands apart (separate_memory.cpp).
const std::size_t kPage = std::getenv("JIGSAW_CUDA_MEMORY") != nullptr ? std::size_t{4} << 10 : kLargePage;

/// Maps memory that will be watched. All such lies together, far from stacks and the heap, so that one
/// comparison tells accesses to it from others.
void* map(std::size_t bytes, int rights, int flags) {
  constexpr std::uintptr_t kFirst = std::uintptr_t{1} << 45;
  static std::uintptr_t next = kFirst;
  if (Devices::all().ranges.empty() && Devices::all().pinned.empty()) next = kFirst;
  void* const wanted = reinterpret_cast<void*>(next);
  next += (bytes / kLargePage + 2) * kLargePage;
  return mmap(wanted, bytes, rights, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

/// Memory whose accesses must have an order, until it goes.
void watch(const std::byte* base, std::size_t bytes) {
  WorkOrder::all().watch(base, bytes);
  ThreadOrder::all().watch(base, bytes);
}
void forget(const std::byte* base) {
  WorkOrder::all().forget(base);
  ThreadOrder::all().forget(base);
}

}  // namespace

std::size_t page_bytes() {
  return kPage;
}

std::size_t pinned_bytes() {
  std::size_t bytes = 0;
  for (const auto& [block, size] : Devices::all().pinned) bytes += size;
  return bytes;
}
bool is_device_memory(const void* address) {
  return Devices::all().hold(address);
}

}  // namespace jigsaw::testing::fake_cuda

using namespace jigsaw::testing::fake_cuda;  // NOLINT(google-build-using-namespace)

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const std::lock_guard lock(Devices::all().mutex);
  *total = machine().memory;
  *free = *total - Devices::all().used(current_device());
  return result(cudaSuccess);
}
CUresult cuMemGetAllocationGranularity(std::size_t* unit, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  if (machine().vmm == 0) return CUDA_ERROR_NOT_SUPPORTED;
  *unit = kPage;
  return CUDA_SUCCESS;
}
CUresult cuMemAddressReserve(CUdeviceptr* base, std::size_t bytes, std::size_t, CUdeviceptr,
                             unsigned long long) {
  const std::lock_guard lock(Devices::all().mutex);
  void* const memory = map(bytes, PROT_NONE, MAP_NORESERVE);
  if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  madvise(memory, bytes, MADV_HUGEPAGE);  // rights change with each piece of work
  Devices::all().ranges[static_cast<std::byte*>(memory)] = {bytes, 0};
  watch(static_cast<std::byte*>(memory), bytes);
  *base = reinterpret_cast<CUdeviceptr>(memory);
  return CUDA_SUCCESS;
}
CUresult cuMemAddressFree(CUdeviceptr base, std::size_t bytes) {
  const std::lock_guard lock(Devices::all().mutex);
  auto* const memory = reinterpret_cast<std::byte*>(base);
  const auto found = Devices::all().ranges.find(memory);
  if (found == Devices::all().ranges.end() || found->second.bytes != bytes) return CUDA_ERROR_INVALID_VALUE;
  Devices::all().ranges.erase(found);
  forget(memory);
  munmap(memory, bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long) {
  Devices& devices = Devices::all();
  const std::lock_guard lock(devices.mutex);
  const int device = properties->location.id;
  if (bytes == 0 || bytes % kPage != 0) return CUDA_ERROR_INVALID_VALUE;
  if (devices.sticky != cudaSuccess) return static_cast<CUresult>(devices.sticky);
  if (devices.used(device) + bytes > machine().memory) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = ++devices.last_piece;
  devices.pieces[*handle] = {device, bytes};
  return CUDA_SUCCESS;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(Devices::all().mutex);
  return Devices::all().pieces.erase(handle) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
/// Ranges are backed from the first address on, without holes.
CUresult cuMemMap(CUdeviceptr at, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long) {
  Devices& devices = Devices::all();
  const std::lock_guard lock(devices.mutex);
  const auto piece = devices.pieces.find(handle);
  if (piece == devices.pieces.end() || offset != 0 || piece->second.bytes != bytes)
    return CUDA_ERROR_INVALID_VALUE;
  for (auto& [base, range] : devices.ranges) {
    if (reinterpret_cast<CUdeviceptr>(base) + range.backed != at || range.backed + bytes > range.bytes)
      continue;
    mprotect(base + range.backed, bytes, PROT_READ | PROT_WRITE);
    std::memset(base + range.backed, kNaNByte, bytes);
    range.device = piece->second.device;
    if (range.open == 0) mprotect(base + range.backed, bytes, PROT_NONE);
    range.backed += bytes;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemUnmap(CUdeviceptr, std::size_t) {
  return CUDA_SUCCESS;
}
CUresult cuMemSetAccess(CUdeviceptr at, std::size_t, const CUmemAccessDesc*, std::size_t) {
  if (machine().vmm == 2) return CUDA_ERROR_NOT_SUPPORTED;
  const std::lock_guard lock(Devices::all().mutex);
  return Devices::all().hold(reinterpret_cast<const void*>(at)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned /*flags*/) {
  Devices& devices = Devices::all();
  const std::lock_guard lock(devices.mutex);
  if (pinned_bytes() + bytes > machine().pinned) return result(cudaErrorMemoryAllocation);
  void* const mapped = map(bytes, PROT_READ | PROT_WRITE, 0);
  if (mapped == MAP_FAILED) return result(cudaErrorMemoryAllocation);
  auto* const block = static_cast<std::byte*>(mapped);
  devices.pinned[block] = bytes;
  watch(block, bytes);
  *memory = block;
  return result(cudaSuccess);
}
cudaError_t cudaFreeHost(void* memory) {
  wait_for_device(current_device());
  Devices& devices = Devices::all();
  const std::lock_guard lock(devices.mutex);
  auto* const block = static_cast<std::byte*>(memory);
  const auto found = devices.pinned.find(block);
  if (found == devices.pinned.end()) return result(cudaErrorInvalidValue);
  forget(block);
  munmap(block, found->second);
  devices.pinned.erase(found);
  return result(cudaSuccess);
}
