#include "support/simulated_device/simulated_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/trace.h"

namespace jigsaw::testing {

namespace {

/// Address space of a device; pages that nobody wrote take no memory.
constexpr std::size_t kBytes = std::size_t{8} << 30;
/// Every float type reads it as a NaN.
constexpr int kNaNByte = 0xff;

/// Devices by the program's address of their memory.
struct Devices {
  std::mutex mutex;
  std::map<const std::byte*, std::weak_ptr<SimulatedDevice>> by_address;

  static Devices& all() {
    static Devices devices;
    return devices;
  }
};

std::byte* map_memory(int file, int rights) {
  void* memory = mmap(nullptr, kBytes, rights, MAP_SHARED | MAP_NORESERVE, file, 0);
  require(memory != MAP_FAILED, "the simulated device has no memory");
  return static_cast<std::byte*>(memory);
}

}  // namespace

/// The arena's view of the device: keeps it while arrays live.
class SimulatedDevice::Memory : public MemorySource {
 public:
  explicit Memory(std::shared_ptr<SimulatedDevice> device) : device_(std::move(device)) {}

  std::byte* allocate(std::size_t bytes) override {
    const std::lock_guard lock(device_->mutex_);
    require(device_->given_ + bytes <= kBytes, "the simulated device is out of memory");
    std::byte* const memory = device_->program_ + device_->given_;
    device_->given_ += bytes;
    std::memset(device_->seen_by_kernels(memory), kNaNByte, bytes);
    return memory;
  }
  bool joins() const override { return true; }
  void given_back(std::byte* memory, std::size_t bytes) noexcept override {
    device_->forget_contents(memory, bytes);
  }

 private:
  std::shared_ptr<SimulatedDevice> device_;
};

Context SimulatedDevice::make_context(Backend kernels, int threads) {
  const std::shared_ptr<SimulatedDevice> device(new SimulatedDevice(kernels, threads));
  {
    Devices& devices = Devices::all();
    const std::lock_guard lock(devices.mutex);
    devices.by_address[device->program_] = device;
  }
  Context context(Backend::kSimulated,
                  std::make_shared<Arena>(Device::kSimulated, std::make_unique<Memory>(device)), threads);
  context.set_runtime(device);
  return context;
}

std::shared_ptr<SimulatedDevice> SimulatedDevice::holding(const void* address) {
  Devices& devices = Devices::all();
  const std::lock_guard lock(devices.mutex);
  const auto* const wanted = static_cast<const std::byte*>(address);
  auto after = devices.by_address.upper_bound(wanted);
  if (after == devices.by_address.begin()) return nullptr;
  --after;
  return wanted < after->first + kBytes ? after->second.lock() : nullptr;
}

SimulatedDevice::SimulatedDevice(Backend kernels, int threads)
    : kernels_(Context::make_host(kernels, threads)), host_(Context::make_host(kernels, 1)) {
  const int file = memfd_create("simulated_device", 0);
  require(file >= 0 && ftruncate(file, static_cast<off_t>(kBytes)) == 0, "a memory file cannot be made");
  program_ = map_memory(file, PROT_NONE);
  kernel_ = map_memory(file, PROT_READ | PROT_WRITE);
  close(file);
}

/// What nobody waited for never ran.
SimulatedDevice::~SimulatedDevice() {
  {
    Devices& devices = Devices::all();
    const std::lock_guard lock(devices.mutex);
    devices.by_address.erase(program_);
  }
  munmap(program_, kBytes);
  munmap(kernel_, kBytes);
}

std::byte* SimulatedDevice::seen_by_kernels(std::byte* address) {
  return std::as_const(*this).seen_by_kernels(address);
}

std::byte* SimulatedDevice::seen_by_kernels(const std::byte* address) const {
  require(address >= program_ && address <= program_ + kBytes,
          "a kernel of the simulated device was given memory that is not the device's");
  return kernel_ + (address - program_);
}

void SimulatedDevice::put(Stream stream, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  Queue& queue = queues_[static_cast<std::size_t>(stream)];
  queue.work.push_back(std::move(work));
  ++queue.put;
}

/// Runs the stream's work in order, up to that number.
void SimulatedDevice::run(Stream stream, std::int64_t until) {
  const std::lock_guard lock(mutex_);
  Queue& queue = queues_[static_cast<std::size_t>(stream)];
  while (queue.done < until && !queue.work.empty()) {
    const std::function<void()> work = std::move(queue.work.front());
    queue.work.pop_front();
    ++queue.done;
    work();
  }
}

void SimulatedDevice::forget_contents(std::byte* memory, std::size_t bytes) {
  put(Stream::kCompute, [at = seen_by_kernels(memory), bytes] { std::memset(at, kNaNByte, bytes); });
}

void SimulatedDevice::upload(Stream stream, std::span<const std::byte> from, std::byte* to, int /*threads*/) {
  {
    const std::lock_guard lock(mutex_);
    ++uploads_;
  }
  put(stream, [staged = std::vector<std::byte>(from.begin(), from.end()), at = seen_by_kernels(to)] {
    std::memcpy(at, staged.data(), staged.size());
  });
}

void SimulatedDevice::download(Stream stream, const std::byte* from, std::span<std::byte> to) {
  put(stream, [at = seen_by_kernels(from), to] { std::memcpy(to.data(), at, to.size()); });
  synchronise(stream);
}

void SimulatedDevice::start_download(Stream stream, const std::byte* from, std::span<std::byte> to) {
  std::memset(to.data(), 0xff, to.size());
  put(stream, [at = seen_by_kernels(from), to] { std::memcpy(to.data(), at, to.size()); });
}

void SimulatedDevice::copy(Stream stream, const std::byte* from, std::byte* to, std::size_t bytes) {
  put(stream, [source = seen_by_kernels(from), target = seen_by_kernels(to), bytes] {
    std::memcpy(target, source, bytes);
  });
}

DeviceRuntime::Ticket SimulatedDevice::ticket(Stream stream) {
  const std::lock_guard lock(mutex_);
  return {stream, queues_[static_cast<std::size_t>(stream)].put};
}

void SimulatedDevice::wait(Stream stream, const Ticket& ticket) {
  put(stream, [this, ticket] { run(ticket.stream, ticket.number); });
}

void SimulatedDevice::synchronise(Stream stream) {
  {
    const std::lock_guard lock(mutex_);
    ++host_waits_;
  }
  run(stream, ticket(stream).number);
}

void SimulatedDevice::synchronise(const Ticket& ticket) {
  {
    const std::lock_guard lock(mutex_);
    ++host_waits_;
  }
  run(ticket.stream, ticket.number);
}

Milestone SimulatedDevice::milestone(Stream stream) {
  const auto count = std::make_shared<std::uint32_t>(0);
  put(stream, [count] { std::atomic_ref(*count).store(1, std::memory_order_release); });
  return {count, 1};
}

std::int64_t SimulatedDevice::mark(Stream stream) {
  const std::lock_guard lock(mutex_);
  const std::size_t number = marks_->size();
  marks_->push_back(-1);
  put(stream, [marks = marks_, number] { marks->at(number) = trace_now(); });
  return static_cast<std::int64_t>(number);
}

std::vector<std::int64_t> SimulatedDevice::passed() {
  for (int stream = 0; stream < kStreams; ++stream) synchronise(static_cast<Stream>(stream));
  const std::lock_guard lock(mutex_);
  return *std::exchange(marks_, std::make_shared<std::vector<std::int64_t>>());
}

void SimulatedDevice::launch(Stream stream, std::function<void(Context& host)> kernel) {
  {
    const std::lock_guard lock(mutex_);
    ++launches_;
  }
  put(stream, [this, kernel = std::move(kernel)] { kernel(kernels_); });
}

std::int64_t SimulatedDevice::waiting(Stream stream) const {
  const std::lock_guard lock(mutex_);
  const Queue& queue = queues_[static_cast<std::size_t>(stream)];
  return queue.put - queue.done;
}

std::int64_t SimulatedDevice::host_waits() const {
  const std::lock_guard lock(mutex_);
  return host_waits_;
}

std::int64_t SimulatedDevice::uploads() const {
  const std::lock_guard lock(mutex_);
  return uploads_;
}

std::int64_t SimulatedDevice::launches() const {
  const std::lock_guard lock(mutex_);
  return launches_;
}

}  // namespace jigsaw::testing
