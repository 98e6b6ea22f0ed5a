#include <array>
#include <map>

#include "base/error.h"
#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/error.h"
#include "kernels/cuda/machine.h"
#include "kernels/cuda_context.h"

namespace jigsaw::inline kernels {

namespace {

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

Context make_cuda_context(int device) {
  const CudaDevice described = cuda_device(device);
  cuda::check(cudaSetDevice(device), "choose the device");
  cuda::require_code_for(described);
  Context context(Backend::kCuda, std::make_shared<Arena>(Device::kCuda, cuda::make_device_memory(device)),
                  1);
  context.set_runtime(std::make_shared<CudaRuntime>(device));
  return context;
}

cudaStream_t cuda::stream_of(const Context& context) {
  require(context.runtime() != nullptr, "a CUDA kernel needs a context with a device");
  return static_cast<const CudaRuntime&>(*context.runtime()).native(context.stream());
}

}  // namespace jigsaw::inline kernels
