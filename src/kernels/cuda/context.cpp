#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "kernels/cuda/error.h"
#include "kernels/cuda_context.h"

namespace jigsaw {

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

/// Destroys a context's stream with the context.
struct StreamOwner {
  cudaStream_t stream = nullptr;
  ~StreamOwner() {
    if (stream != nullptr) cudaStreamDestroy(stream);
  }
};

Array copied(const Context& to, const Array& array, Purpose purpose, const Context& cuda,
             cudaMemcpyKind kind) {
  Array copy(to, array.shape(), array.dtype(), purpose);
  const cudaStream_t stream = cuda::stream_of(cuda);
  cuda::check(cudaMemcpyAsync(copy.raw(), array.raw(), static_cast<std::size_t>(array.bytes()), kind, stream),
              "copy an array");
  cuda::check(cudaStreamSynchronize(stream), "copy an array");
  return copy;
}

}  // namespace

int cuda_device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
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
  cudaStream_t& stream = context.state<StreamOwner>().stream;
  cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "make a stream");
  context.set_stream(stream);
  return context;
}

Array to_device(const Context& cuda, const Array& host, Purpose purpose) {
  return copied(cuda, host, purpose, cuda, cudaMemcpyHostToDevice);
}

Array to_host(const Context& host, const Context& cuda, const Array& array, Purpose purpose) {
  return copied(host, array, purpose, cuda, cudaMemcpyDeviceToHost);
}

}  // namespace jigsaw
