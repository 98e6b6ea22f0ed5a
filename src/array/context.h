#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <typeindex>

#include "array/arena.h"
#include "array/device_runtime.h"

namespace jigsaw::inline array {

/// Which implementation of the kernel contracts a rank runs.
/// `kSimulated`: those of the host behind the queues of a
/// HostKernelRuntime, which hides its memory from the program.
enum class Backend : std::uint8_t { kReference, kCpu, kCuda, kMeta, kSimulated };

/// Work done by kernels: counted by every backend, at the contract.
struct Tally {
  double flops = 0;
  double bytes = 0;
};

/// What every kernel needs to know of the rank it runs on. One per rank, so that N ranks can be
/// N threads of a process. Not thread-safe.
class Context {
 public:
  Context(Backend backend, std::shared_ptr<Arena> arena, int threads)
      : backend_(backend), arena_(std::move(arena)), threads_(threads) {}

  /// A context on the host: plain loops (`reference`) or the fast kernels.
  static Context make_host(Backend backend, int threads) { return {backend, Arena::make_host(), threads}; }
  static Context make_meta() { return {Backend::kMeta, Arena::make_meta(), 1}; }

  Backend backend() const { return backend_; }
  Device device() const { return arena_->device(); }
  Arena& arena() const { return *arena_; }
  /// OpenMP threads a kernel may use.
  int threads() const { return threads_; }
  /// The device, when work runs there later; null on the host, where kernels are synchronous, and on meta.
  DeviceRuntime* runtime() const { return runtime_.get(); }
  void set_runtime(std::shared_ptr<DeviceRuntime> runtime) {
    runtime_ = std::move(runtime);
    set_host_threads(threads_);
  }
  /// Threads that host() has of a context on a device.
  void set_host_threads(int threads) {
    host_ = std::make_shared<Context>(make_host(Backend::kReference, threads));
  }
  /// The stream into which work is put.
  Stream stream() const { return stream_; }
  void set_stream(Stream stream) { stream_ = stream; }
  /// A context on the host for what is read from files or sent by the host: this one if it is there.
  Context& host() { return host_ == nullptr ? *this : *host_; }
  const Context& host() const { return host_ == nullptr ? *this : *host_; }
  /// Whether a device may take the factors of float32 products as TensorFloat-32, of 11 bits; sums stay
  /// float32.
  bool tf32() const { return tf32_; }
  void set_tf32(bool tf32) { tf32_ = tf32; }
  /// Whether sums on a device repeat bit for bit. Only libraries on it have faster ones that do not.
  bool deterministic() const { return deterministic_; }
  void set_deterministic(bool deterministic) { deterministic_ = deterministic; }
  Tally& tally() { return tally_; }

  /// State that a backend keeps between calls (library handles, primitives, packed weights);
  /// made at first use.
  template <typename State>
  State& state() {
    return *shared_state<State>();
  }
  /// For other state that may not outlive it.
  template <typename State>
  std::shared_ptr<State> shared_state() {
    std::shared_ptr<void>& slot = states_[std::type_index(typeid(State))];
    if (!slot) slot = std::make_shared<State>();
    return std::static_pointer_cast<State>(slot);
  }

 private:
  Backend backend_;
  std::shared_ptr<Arena> arena_;
  int threads_;
  std::shared_ptr<DeviceRuntime> runtime_;
  std::shared_ptr<Context> host_;
  Stream stream_ = Stream::kCompute;
  bool tf32_ = false;
  bool deterministic_ = true;
  Tally tally_;
  std::map<std::type_index, std::shared_ptr<void>> states_;
};

/// While it lives work is put into this stream.
class StreamScope {
 public:
  StreamScope(Context& context, Stream stream) : context_(context), before_(context.stream()) {
    context_.set_stream(stream);
  }
  ~StreamScope() { context_.set_stream(before_); }
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  Context& context_;
  Stream before_;
};

}  // namespace jigsaw::inline array
