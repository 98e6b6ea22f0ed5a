#include <cxxabi.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "cuda.h"
#include "cuda_runtime.h"
#include "support/fake_cuda/devices.h"
#include "support/fake_cuda/streams.h"
#include "support/fake_cuda/thread_order.h"

namespace jigsaw::testing::fake_cuda {

namespace {

/// Small where each array stands apart (separate_memory.cpp).
const std::size_t kPage =
    std::getenv("JIGSAW_CUDA_MEMORY") != nullptr ? std::size_t{4} << 10 : std::size_t{2} << 20;
/// Until work that waits for other ranks is given up.
constexpr std::chrono::minutes kMostWait{20};
/// Every float type reads it as a NaN.
constexpr int kNaNByte = 0xff;

/// Addresses that were reserved, backed from the first one on.
struct Range {
  std::size_t bytes = 0, backed = 0;
  int device = 0;  ///< whose memory it is
  int open = 0;    ///< pieces of work that run, one within the other
};
/// Memory that was created and not released.
struct Piece {
  int device = 0;
  std::size_t bytes = 0;
};

/// All devices of the process.
struct Devices {
  std::recursive_mutex mutex;
  std::condition_variable_any changed;  ///< work that could not run may go on
  std::map<std::byte*, Range> ranges;
  std::map<CUmemGenericAllocationHandle, Piece> pieces;
  CUmemGenericAllocationHandle last_piece = 0;
  std::map<std::byte*, std::size_t> pinned;  ///< memory of the host
  Order order = Order::kShuffled;
  std::uint64_t seed = 1;
  std::int64_t kernels = 0, pieces_of_work = 0;
  int stopped = -1;  ///< the device that hangs
  cudaError_t next = cudaSuccess, sticky = cudaSuccess, last = cudaSuccess;

  static Devices& all() {
    static Devices devices;
    return devices;
  }
  std::size_t used(int device) const {
    std::size_t bytes = 0;
    for (const auto& [handle, piece] : pieces) bytes += piece.device == device ? piece.bytes : 0;
    return bytes;
  }
  /// Whether the address lies in memory of a device.
  bool hold(const void* address) const {
    auto after = ranges.upper_bound(static_cast<std::byte*>(const_cast<void*>(address)));
    if (after == ranges.begin()) return false;
    --after;
    return address < after->first + after->second.backed;
  }
  /// Whether the address lies in pinned memory.
  bool pin(const void* address) const {
    auto after = pinned.upper_bound(static_cast<std::byte*>(const_cast<void*>(address)));
    return after != pinned.begin() && address < std::prev(after)->first + std::prev(after)->second;
  }
};

constexpr int kAllDevices = -1;

/// While it lives the memory of a device, or of all, can be read and written.
class Opened {
 public:
  Opened(Devices& devices, int device) : devices_(devices), device_(device) {
    for (auto& [base, range] : devices_.ranges)
      if (is_of(range) && range.open++ == 0) mprotect(base, range.backed, PROT_READ | PROT_WRITE);
  }
  ~Opened() {
    for (auto& [base, range] : devices_.ranges)
      if (is_of(range) && --range.open == 0) mprotect(base, range.backed, PROT_NONE);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

 private:
  bool is_of(const Range& range) const { return device_ == kAllDevices || device_ == range.device; }

  Devices& devices_;
  int device_;
};

thread_local int device_of_thread = 0;

/// What pinned memory holds.
std::size_t digest(const void* memory, std::size_t bytes) {
  return std::hash<std::string_view>()({static_cast<const char*>(memory), bytes});
}

std::string demangled(const char* type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(type, nullptr, nullptr, &status),
                                                    std::free);
  return status == 0 ? text.get() : type;
}

/// Whether the next piece of work of this device ends it.
bool breaks(const FakeStream& stream) {
  Devices& devices = Devices::all();
  if (devices.next != cudaSuccess) devices.sticky = std::exchange(devices.next, cudaSuccess);
  if (stream.device == machine().fail_device && machine().fail_after > 0 &&
      devices.pieces_of_work >= machine().fail_after)
    devices.sticky = static_cast<cudaError_t>(machine().fail_with);
  return devices.sticky != cudaSuccess;
}

/// More that JIGSAW_FAKE_CUDA may say of a process.
struct Faults {
  int own = 0;                          ///< 1: ranks see their own device alone; 2: all, their own first
  int taken = 0, taken_device = 0;      ///< the error for whoever chooses this device
  int slices = 0;                       ///< 1: all devices are slices of one GPU
  int peers = 2;                        ///< devices reach each other by NVLink; 1: by PCIe, 0: not at all
  int hang_after = 0, hang_device = 0;  ///< it does no more than so many kernels and copies
  int spoil_device = -1;                ///< whose copies to the host bring a number that is not there

  static Faults& all() {
    static Faults faults = [] {
      Faults given;
      read_number("own", given.own);
      read_number("slices", given.slices);
      read_number("taken", given.taken);
      read_number("taken_device", given.taken_device);
      read_number("peers", given.peers);
      read_number("hang_after", given.hang_after);
      read_number("hang_device", given.hang_device);
      read_number("spoil_device", given.spoil_device);
      return given;
    }();
    return faults;
  }
  /// The number among all of the machine of one that the process sees.
  int on_machine(int device) const {
    const char* const text = std::getenv("OMPI_COMM_WORLD_LOCAL_RANK");
    const int rank = text == nullptr ? 0 : std::atoi(text);
    if (own == 1) return rank + device;
    return own == 2 ? (rank + device) % machine().devices : device;
  }
};

/// Memory whose accesses must have an order, until it goes.
void watch(const std::byte* base, std::size_t bytes) {
  WorkOrder::all().watch(base, bytes);
  ThreadOrder::all().watch(base, bytes);
}
void forget(const std::byte* base) {
  WorkOrder::all().forget(base);
  ThreadOrder::all().forget(base);
}

/// A piece of work has run.
void count_work(const FakeStream& stream) {
  if (stream.device == machine().fail_device) ++Devices::all().pieces_of_work;
  Faults& faults = Faults::all();
  if (faults.hang_after == 0 || stream.device != faults.hang_device) return;
  if (--faults.hang_after == 0) Devices::all().stopped = stream.device;
}

}  // namespace

cudaError_t result(cudaError_t error) {
  Devices& devices = Devices::all();
  if (error == cudaSuccess) error = devices.sticky;
  if (error != cudaSuccess) devices.last = error;
  return error;
}

std::size_t page_bytes() {
  return kPage;
}

void set_order(Order order) {
  Devices::all().order = order;
}
std::int64_t kernels_run() {
  return Devices::all().kernels;
}
std::size_t pinned_bytes() {
  std::size_t bytes = 0;
  for (const auto& [block, size] : Devices::all().pinned) bytes += size;
  return bytes;
}
const std::string& conflict() {
  return WorkOrder::all().conflict();
}
bool sees_accesses() {
#ifdef JIGSAW_ACCESS_HOOKS
  return true;
#else
  return false;
#endif
}
void stop(int device) {
  const std::lock_guard lock(Devices::all().mutex);
  Devices::all().stopped = device;
  work_may_go_on();
}
void fail_next(cudaError_t error) {
  Devices::all().next = error;
  if (error != cudaSuccess) return;
  Devices::all().sticky = Devices::all().last = cudaSuccess;
  WorkOrder::all().forget_conflict();
}

std::recursive_mutex& mutex() {
  return Devices::all().mutex;
}
int current_device() {
  return device_of_thread;
}
bool is_device_memory(const void* address) {
  return Devices::all().hold(address);
}
void work_may_go_on() {
  Devices::all().changed.notify_all();
}

bool run(FakeStream& stream, std::int64_t until) {
  Devices& devices = Devices::all();
  std::optional<Opened> opened;
  while (stream.done < until && !stream.work.empty()) {
    if (stream.device == devices.stopped) return false;
    FakeWork work = std::move(stream.work.front());
    stream.work.pop_front();
    ++stream.done;
    --FakeStream::all_waiting;
    if (devices.sticky != cudaSuccess || (work.id != 0 && breaks(stream))) continue;
    if (!opened) opened.emplace(devices, stream.device);
    std::optional<Opened> others;
    if (work.of_all_devices) others.emplace(devices, kAllDevices);
    bool ran = false;
    {
      const WorkOrder::Running running(work.id);
      ran = work.run();
    }
    if (!WorkOrder::all().conflict().empty()) devices.sticky = cudaErrorOfTheFake;
    if (!ran) {
      stream.work.push_front(std::move(work));
      --stream.done;
      ++FakeStream::all_waiting;
      return false;
    }
    if (work.id != 0) count_work(stream);
  }
  return true;
}

cudaError_t put(cudaStream_t stream, FakeWork work, std::int64_t* number) {
  stream->work.push_back(std::move(work));
  ++stream->put;
  ++FakeStream::all_waiting;
  if (number != nullptr) *number = stream->put;
  work_may_go_on();
  return result(cudaSuccess);
}

void run_all(FakeStream& stream, const std::int64_t& until, std::unique_lock<std::recursive_mutex>& lock) {
  const auto limit = std::chrono::steady_clock::now() + kMostWait;
  while (!run(stream, until)) {
    if (Devices::all().changed.wait_until(lock, limit) == std::cv_status::timeout)
      jigsaw::fail("work of a device waits for that of another, which never comes");
  }
}

cudaError_t put(cudaStream_t stream, const std::string& name, std::function<void()> work) {
  const std::lock_guard lock(Devices::all().mutex);
  if (stream == nullptr) return result(cudaErrorInvalidValue);
  if (capturing(stream))
    return record(stream, name, [name, work](cudaStream_t into) { put(into, name, work); });
  return put(stream, FakeWork{WorkOrder::all().put(stream->number, name), [work = std::move(work)] {
                                work();
                                return true;
                              }});
}
cudaError_t put_when_ready(cudaStream_t stream, const std::string& name, std::function<bool()> work,
                           std::int64_t* number) {
  const std::lock_guard lock(Devices::all().mutex);
  if (stream == nullptr || capturing(stream)) return result(cudaErrorInvalidValue);
  return put(stream, FakeWork{WorkOrder::all().put(stream->number, name), std::move(work), true}, number);
}
void touched(const void* address, std::size_t bytes, bool writes) {
  WorkOrder::all().touched(address, bytes, writes);
}
void accuse(const std::string& what) {
  WorkOrder::all().accuse(what);
}
void use_workspace(std::byte* memory, std::size_t bytes) {
  constexpr std::size_t kMostOfAnEnd = 4096;  // for it may be large
  const std::size_t end = std::min(bytes, kMostOfAnEnd);
  if (end == 0) return;
  for (std::byte* const at : {memory, memory + bytes - end}) {
    touched(at, end, true);
    std::memset(at, kNaNByte, end);
  }
}

namespace {

/// What copies write to pinned memory is NaN from now on; what they read there must be the same until they
/// have run.
cudaError_t put_copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream,
                     const std::string& name) {
  Devices& devices = Devices::all();
  if (devices.pin(to)) std::memset(to, kNaNByte, bytes);
  const std::size_t held = devices.pin(from) ? digest(from, bytes) : 0;
  const bool spoils = !devices.hold(to) && stream->device == Faults::all().spoil_device;
  return put(stream, name, [=] {
    if (held != 0 && digest(from, bytes) != held)
      WorkOrder::all().report(concat("the host changes pinned memory before ", name, " has read it"));
    touched(from, bytes, false);
    touched(to, bytes, true);
    std::memcpy(to, from, bytes);
    constexpr std::byte kExponent{0x40};  // of a float32
    if (spoils && bytes >= sizeof(float)) static_cast<std::byte*>(to)[sizeof(float) - 1] ^= kExponent;
  });
}

}  // namespace

cudaError_t launch(const cudaLaunchConfig_t& configuration, const char* type, std::function<void()> thread) {
  const dim3 blocks = configuration.gridDim, threads = configuration.blockDim;
  const bool fits = blocks.x > 0 && blocks.y > 0 && blocks.z > 0 && blocks.x <= 0x7fffffffU &&
                    blocks.y <= 65535 && blocks.z <= 65535 && threads.x * threads.y * threads.z <= 1024;
  if (!fits) return result(cudaErrorInvalidValue);
  return put(configuration.stream, "kernel " + demangled(type),
             [blocks, threads, thread = std::move(thread)] {
               Devices& devices = Devices::all();
               ++devices.kernels;
               run_blocks(blocks, threads, thread, devices.order, devices.seed);
             });
}

}  // namespace jigsaw::testing::fake_cuda

using namespace jigsaw::testing::fake_cuda;  // NOLINT(google-build-using-namespace)

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorDevicesUnavailable:
      return "cudaErrorDevicesUnavailable";
    case cudaErrorSystemNotReady:
      return "cudaErrorSystemNotReady";
    default:
      return "cudaErrorUnknown";
  }
}
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorNoKernelImageForDevice:
      return "no kernel image is available for execution on the device";
    case cudaErrorOfTheFake:
      return conflict().c_str();
    case cudaErrorDevicesUnavailable:
      return "all CUDA-capable devices are busy or unavailable";
    case cudaErrorSystemNotReady:
      return "system not yet initialized";
    case cudaErrorUnknown:
      return "unknown error";
    case cudaErrorECCUncorrectable:
      return "uncorrectable ECC error encountered";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    case cudaErrorIllegalState:
      return "the operation cannot be performed in the present state";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    case cudaErrorStreamCaptureMerge:
      return "operation would result in a merge of separate capture sequences";
    case cudaErrorStreamCaptureUnmatched:
      return "capture was not ended in the same stream as it began";
    case cudaErrorStreamCaptureUnjoined:
      return "capturing stream has unjoined work";
    case cudaErrorStreamCaptureIsolation:
      return "dependency created on uncaptured work in another stream";
    case cudaErrorStreamCaptureImplicit:
      return "operation would make the legacy stream depend on a capturing blocking stream";
    case cudaErrorCapturedEvent:
      return "operation not permitted on an event last recorded in a capturing stream";
    case cudaErrorStreamCaptureWrongThread:
      return "attempt to terminate a thread-local capture sequence from another thread";
    default:
      return "invalid argument";
  }
}
cudaError_t cudaGetLastError() {
  return std::exchange(Devices::all().last, Devices::all().sticky);
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = machine().driver;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = machine().runtime;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
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
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const std::lock_guard lock(Devices::all().mutex);
  *total = machine().memory;
  *free = *total - Devices::all().used(device_of_thread);
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
  void* const memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
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
  *value = machine().vmm;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to) {
  const int devices = machine().devices;
  if (from < 0 || from >= devices || to < 0 || to >= devices || from == to) return CUDA_ERROR_INVALID_VALUE;
  *value = Faults::all().peers >= (attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ? 1 : 2) ? 1 : 0;
  return CUDA_SUCCESS;
}
CUresult cuMemUnmap(CUdeviceptr, std::size_t) {
  return CUDA_SUCCESS;
}
CUresult cuMemSetAccess(CUdeviceptr at, std::size_t, const CUmemAccessDesc*, std::size_t) {
  const std::lock_guard lock(Devices::all().mutex);
  return Devices::all().hold(reinterpret_cast<const void*>(at)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned /*flags*/) {
  Devices& devices = Devices::all();
  const std::lock_guard lock(devices.mutex);
  if (pinned_bytes() + bytes > machine().pinned) return result(cudaErrorMemoryAllocation);
  // Beside the memory of devices, so that WorkOrder has few addresses to look up.
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return result(cudaErrorMemoryAllocation);
  auto* const block = static_cast<std::byte*>(mapped);
  devices.pinned[block] = bytes;
  watch(block, bytes);
  *memory = block;
  return result(cudaSuccess);
}
cudaError_t cudaFreeHost(void* memory) {
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
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  Devices& devices = Devices::all();
  const std::lock_guard lock(devices.mutex);
  const bool to_device = devices.hold(to), from_device = devices.hold(from);
  if (bytes > 0 &&
      (to_device != (kind != cudaMemcpyDeviceToHost) || from_device != (kind != cudaMemcpyHostToDevice)))
    return result(cudaErrorInvalidValue);
  const char* const which = !to_device ? "to the host" : from_device ? "within the device" : "to the device";
  const std::string name = jigsaw::concat("a copy of ", bytes, " bytes ", which);
  if (capturing(stream))
    return record(stream, name, [=](cudaStream_t into) { put_copy(to, from, bytes, into, name); });
  return put_copy(to, from, bytes, stream, name);
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  return put(stream, jigsaw::concat("clearing ", bytes, " bytes"), [=] {
    touched(memory, bytes, true);
    std::memset(memory, value, bytes);
  });
}
