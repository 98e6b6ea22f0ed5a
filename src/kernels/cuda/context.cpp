#include <array>
#include <map>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "kernels/cuda/error.h"
#include "kernels/cuda_context.h"

namespace jigsaw::inline kernels {

namespace {

/// Memory of the device that was current when it was made.
class DeviceMemory : public MemorySource {
 public:
  explicit DeviceMemory(int device) : device_(device) {}
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() override {
    for (void* region : regions_) cudaFree(region);
  }

  std::byte* allocate(std::size_t bytes) override {
    void* memory = nullptr;
    cuda::check(cudaSetDevice(device_), "choose the device");
    if (cudaMalloc(&memory, bytes) != cudaSuccess) {
      cudaGetLastError();
      fail(concat("out of memory on CUDA device ", device_, ": ",
                  human_bytes(static_cast<std::int64_t>(bytes)), " could not be allocated"));
    }
    regions_.push_back(memory);
    return static_cast<std::byte*>(memory);
  }
  bool joins() const override { return false; }

 private:
  int device_;
  std::vector<void*> regions_;
};

/// The streams of a context and what moves memory in them.
class CudaRuntime : public DeviceRuntime {
 public:
  explicit CudaRuntime(int device) {
    cuda::check(cudaSetDevice(device), "choose the device");
    for (cudaStream_t& stream : streams_) {
      cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "make a stream");
    }
  }
  CudaRuntime(const CudaRuntime&) = delete;
  CudaRuntime& operator=(const CudaRuntime&) = delete;
  ~CudaRuntime() override {
    for (const auto& [number, event] : events_) cudaEventDestroy(event);
    for (cudaStream_t stream : streams_) {
      if (stream != nullptr) cudaStreamDestroy(stream);
    }
  }

  cudaStream_t native(Stream stream) const { return streams_[static_cast<std::size_t>(stream)]; }

  void upload(Stream stream, std::span<const std::byte> from, std::byte* to) override {
    move(stream, from.data(), to, from.size(), cudaMemcpyHostToDevice);
    synchronise(stream);
  }
  void download(Stream stream, const std::byte* from, std::span<std::byte> to) override {
    move(stream, from, to.data(), to.size(), cudaMemcpyDeviceToHost);
    synchronise(stream);
  }
  void copy(Stream stream, const std::byte* from, std::byte* to, std::size_t bytes) override {
    move(stream, from, to, bytes, cudaMemcpyDeviceToDevice);
  }

  /// Events that have come to pass are forgotten: there is nothing to wait for.
  Ticket ticket(Stream stream) override {
    std::erase_if(events_, [](const auto& each) {
      const bool past = cudaEventQuery(each.second) == cudaSuccess;
      if (past) cudaEventDestroy(each.second);
      return past;
    });
    cudaGetLastError();  // of events that have not
    cudaEvent_t event = nullptr;
    cuda::check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "make an event");
    events_.emplace(++last_, event);
    cuda::check(cudaEventRecord(event, native(stream)), "record an event");
    return {stream, last_};
  }
  void wait(Stream stream, const Ticket& ticket) override {
    const auto event = events_.find(ticket.number);
    if (event != events_.end())
      cuda::check(cudaStreamWaitEvent(native(stream), event->second, 0), "wait for an event");
  }
  void synchronise(Stream stream) override {
    cuda::check(cudaStreamSynchronize(native(stream)), "wait for a stream");
  }

 private:
  void move(Stream stream, const std::byte* from, std::byte* to, std::size_t bytes, cudaMemcpyKind kind) {
    cuda::check(cudaMemcpyAsync(to, from, bytes, kind, native(stream)), "copy memory");
  }

  std::array<cudaStream_t, kStreams> streams_{};
  std::map<std::int64_t, cudaEvent_t> events_;
  std::int64_t last_ = 0;
};

}  // namespace

int cuda_device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();
  return 0;
}

std::int64_t cuda_memory_bytes() {
  std::size_t free = 0, all = 0;
  if (cudaMemGetInfo(&free, &all) == cudaSuccess) return static_cast<std::int64_t>(all);
  cudaGetLastError();
  return 0;
}

Context make_cuda_context(int device) {
  const int count = cuda_device_count();
  if (device < 0 || device >= count) {
    throw ConfigError(concat("there is no CUDA device ", device, ": this machine has ", count,
                             "; set \"device\" to \"cpu\" to run without"));
  }
  cuda::check(cudaSetDevice(device), "choose the device");
  Context context(Backend::kCuda,
                  std::make_shared<Arena>(Device::kCuda, std::make_unique<DeviceMemory>(device)), 1);
  context.set_runtime(std::make_shared<CudaRuntime>(device));
  return context;
}

cudaStream_t cuda::stream_of(const Context& context) {
  require(context.runtime() != nullptr, "a CUDA kernel needs a context with a device");
  return static_cast<const CudaRuntime&>(*context.runtime()).native(context.stream());
}

}  // namespace jigsaw::inline kernels
