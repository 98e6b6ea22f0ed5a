#include <cxxabi.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "cuda_runtime.h"
#include "support/fake_cuda/devices.h"
#include "support/fake_cuda/state.h"
#include "support/fake_cuda/streams.h"

namespace jigsaw::testing::fake_cuda {

namespace {

/// Until work that waits for other ranks is given up.
constexpr std::chrono::minutes kMostWait{20};
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

void set_order(Order order) {
  Devices::all().order = order;
}
std::int64_t kernels_run() {
  return Devices::all().kernels;
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
bool has_failed() {
  return result(cudaSuccess) != cudaSuccess;
}
void wait_for_device(int device) {
  Devices& devices = Devices::all();
  std::unique_lock lock(devices.mutex);
  while (devices.stopped == device) devices.changed.wait(lock);
}
std::int64_t library_handles() {
  const std::lock_guard lock(Devices::all().mutex);
  return Devices::all().library_handles;
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
  const dim3 threads = configuration.blockDim;
  dim3 blocks = configuration.gridDim;
  const bool fits = blocks.x > 0 && blocks.y > 0 && blocks.z > 0 && blocks.x <= 0x7fffffffU &&
                    blocks.y <= 65535 && blocks.z <= 65535 && threads.x * threads.y * threads.z <= 1024;
  if (!fits) return result(cudaErrorInvalidValue);
  blocks.y = std::min(blocks.y, machine().most_blocks_y);
  blocks.z = std::min(blocks.z, machine().most_blocks_z);
  return put(configuration.stream, "kernel " + demangled(type),
             [blocks, threads, thread = std::move(thread)] {
               Devices& devices = Devices::all();
               ++devices.kernels;
               run_blocks(blocks, threads, thread, devices.order, devices.seed);
             });
}

}  // namespace jigsaw::testing::fake_cuda

using namespace jigsaw::testing::fake_cuda;  // NOLINT(google-build-using-namespace)

cudaError_t cudaGetLastError() {
  return std::exchange(Devices::all().last, Devices::all().sticky);
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
