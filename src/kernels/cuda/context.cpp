#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/host.h"
#include "base/text.h"
#include "base/trace.h"
#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/ending.h"
#include "kernels/cuda/error.h"
#include "kernels/cuda/failures.h"
#include "kernels/cuda/identity.h"
#include "kernels/cuda/library.h"
#include "kernels/cuda/machine.h"
#include "kernels/cuda/pinned_ring.h"
#include "kernels/cuda/recorder.h"
#include "kernels/cuda/stall_clock.h"
#include "kernels/cuda/stream_counter.h"
#include "kernels/cuda_context.h"

namespace jigsaw::inline kernels {

namespace {

/// A kernel as its source names it.
std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                    std::free);
  return status == 0 ? text.get() : name;
}

/// Page-locked memory of the host.
class PageLocked : public MemorySource {
 public:
  explicit PageLocked(std::shared_ptr<const cuda::Failures> failures) : failures_(std::move(failures)) {}
  PageLocked(const PageLocked&) = delete;
  PageLocked& operator=(const PageLocked&) = delete;
  ~PageLocked() override {
    for (void* region : regions_) cudaFreeHost(region);
  }

  std::byte* allocate(std::size_t bytes) override {
    void* memory = nullptr;
    const cudaError_t status = cudaHostAlloc(&memory, bytes, cudaHostAllocDefault);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // it is told here
      throw OutOfMemoryError(
          concat("the host gives no more page-locked memory in ", failures_->work().text()));
    }
    failures_->check(status);
    regions_.push_back(memory);
    return static_cast<std::byte*>(memory);
  }
  bool joins() const override { return false; }

 private:
  std::shared_ptr<const cuda::Failures> failures_;
  std::vector<void*> regions_;
};

/// The streams of a context and what moves memory in them.
class CudaRuntime : public DeviceRuntime {
 public:
  /// @param memory  of the context: stays as long as the streams do.
  CudaRuntime(int device, std::shared_ptr<cuda::Failures> failures, std::shared_ptr<const Arena> memory)
      : device_(device), memory_(std::move(memory)), failures_(std::move(failures)) {
    const char* const wait = std::getenv("JIGSAW_CUDA_SYNC");
    launches_wait_ = wait != nullptr && std::string_view(wait) == "1";
    int last = 0, first = 0;  // the more urgent, the lower
    cuda::check(cudaDeviceGetStreamPriorityRange(&last, &first), "ask for the priorities of streams");
    std::array<int, kStreams> priorities;
    priorities.fill(last);
    priorities[static_cast<std::size_t>(Stream::kCommunication)] = first;
    priorities[static_cast<std::size_t>(Stream::kBackground)] = std::max(first, last - 1);
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      cuda::check(cudaStreamCreateWithPriority(&streams_[i], cudaStreamNonBlocking, priorities[i]),
                  "make a stream");
    }
    stalls_.emplace(native(Stream::kCompute));
    ending_ = std::make_shared<cuda::Ending>(streams_);
  }
  CudaRuntime(const CudaRuntime&) = delete;
  CudaRuntime& operator=(const CudaRuntime&) = delete;
  /// Runs once the work in its streams has ended; else the runtime is left as it is (Ending).
  ~CudaRuntime() override {
    for (const Places& places : places_) std::ranges::for_each(places.events, cudaEventDestroy);
    std::ranges::for_each(marks_.events, cudaEventDestroy);
    for (cudaEvent_t event : instants_) {
      if (event != nullptr) cudaEventDestroy(event);
    }
    for (cudaStream_t stream : streams_) {
      if (stream != nullptr) cudaStreamDestroy(stream);
    }
  }

  const std::shared_ptr<cuda::Ending>& ending() const { return ending_; }
  cudaStream_t native(Stream stream) const { return streams_[static_cast<std::size_t>(stream)]; }
  /// For one piece of work.
  cudaStream_t stream_for_work(Stream stream) {
    if (stream == Stream::kCompute && !recorder_.records()) failures_->progress().mark(native(stream));
    return native(stream);
  }

  bool launches_wait() const { return launches_wait_; }
  void launched(Stream stream, cudaError_t status, const char* work) {
    if (status == cudaSuccess && launches_wait_) status = cudaStreamSynchronize(native(stream));
    if (status == cudaSuccess) return;
    // Any call may report what work before it has done.
    if (!launches_wait_ && !cuda::Failures::is_of_the_call(status)) check(status);
    failures_->tell(status, concat("in the launch of ", demangled(work), ", "), failures_->work().text());
  }

  /// What the work of a stream has come to, or the recording of it: while it is recorded nothing runs.
  cudaError_t so_far(Stream stream) const {
    if (recorder_.records()) return recorder_.so_far(stream);
    const cudaError_t status = cudaStreamQuery(native(stream));
    return status == cudaErrorNotReady ? cudaSuccess : status;
  }
  void require_no_failure(Stream stream) const { check(so_far(stream)); }

  void upload(Stream stream, std::span<const std::byte> from, std::byte* to, int threads) override {
    not_recorded("numbers go up");
    ++host_steps_.uploads;
    check(uploads_.upload(stream_for_work(stream), from, to, threads));
    if (launches_wait_) launched(stream, cudaSuccess, "a copy");
  }
  void download(Stream stream, const std::byte* from, std::span<std::byte> to) override {
    not_recorded("numbers come down");
    move(stream, from, to.data(), to.size(), cudaMemcpyDeviceToHost);
    synchronise(stream);
  }
  void start_download(Stream stream, const std::byte* from, std::span<std::byte> to) override {
    not_recorded("numbers come down");
    ++host_steps_.waits;
    move(stream, from, to.data(), to.size(), cudaMemcpyDeviceToHost);
  }
  void choose_for_this_thread() override { cudaSetDevice(device_); }
  std::shared_ptr<Arena> page_locked() override {
    if (!page_locked_)
      page_locked_ = std::make_shared<Arena>(Device::kCpu, std::make_unique<PageLocked>(failures_));
    return page_locked_;
  }
  void copy(Stream stream, const std::byte* from, std::byte* to, std::size_t bytes) override {
    move(stream, from, to, bytes, cudaMemcpyDeviceToDevice);
  }

  Ticket ticket(Stream stream) override {
    if (recorder_.records()) {
      Ticket ticket;
      check(recorder_.ticket(stream, ticket));
      return ticket;
    }
    Places& places = places_[static_cast<std::size_t>(stream)];
    const auto place = static_cast<std::size_t>(places.last % kPlaces);
    if (place == places.events.size()) places.events.push_back(make_event(cudaEventDisableTiming));
    check(cudaEventRecord(places.events[place], native(stream)));
    return {stream, places.last++};
  }
  /// An event that was reused for a later place in its stream is waited for there: that is safe, for nothing
  /// there waits for what is put in from now on.
  void wait(Stream stream, const Ticket& ticket) override {
    if (ticket.recording != 0 && !recorder_.records()) {  // it stands in the stream for computation since
      if (stream != Stream::kCompute) wait(stream, this->ticket(Stream::kCompute));
      return;
    }
    wait_for(stream, {&ticket, 1});
  }
  void synchronise(Stream stream) override {
    not_recorded("the host waits");
    ++host_steps_.waits;
    check(cudaStreamSynchronize(native(stream)));
  }
  void synchronise(const Ticket& ticket) override {
    not_recorded("the host waits");
    require(ticket.recording == 0, "the host waits for a place in recorded work");
    ++host_steps_.waits;
    check(cudaEventSynchronize(event_of(ticket)));
  }

  Milestone milestone(Stream stream) override {
    auto& counter = counters_[static_cast<std::size_t>(stream)];
    if (!counter) counter.emplace();
    if (recorder_.records()) {
      Milestone milestone;
      check(recorder_.milestone(stream, *counter, milestone));
      return milestone;
    }
    return counter->count(native(stream)) ? counter->milestone() : Milestone();
  }
  double take_stalled_seconds() override { return stalls_->take_seconds(); }

  std::int64_t instant() override {
    cudaEvent_t& event = instants_[static_cast<std::size_t>(instants_taken_ % kInstants)];
    if (event == nullptr) event = make_event(cudaEventDefault);
    check(cudaEventRecord(event, native(Stream::kCompute)));
    return instants_taken_++;
  }
  double seconds_between(std::int64_t first, std::int64_t later) const override {
    return seconds_between(instants_[static_cast<std::size_t>(first % kInstants)],
                           instants_[static_cast<std::size_t>(later % kInstants)]);
  }

  std::int64_t mark(Stream stream) override { return static_cast<std::int64_t>(record(marks_, stream)); }
  /// CUDA only tells the time between two events: the host waits for the last one, and so knows its clock
  /// time.
  std::vector<std::int64_t> passed() override {
    const std::size_t count = marks_.used;
    for (std::size_t i = 0; i < count; ++i) check(cudaEventSynchronize(marks_.events[i]));
    const cudaEvent_t last = marks_.events[record(marks_, Stream::kCompute)];
    check(cudaEventSynchronize(last));
    const std::int64_t now = trace_now();
    std::vector<std::int64_t> times;
    for (std::size_t i = 0; i < count; ++i)
      times.push_back(now - std::llround(1e9 * seconds_between(marks_.events[i], last)));
    marks_.used = 0;
    return times;
  }

  bool records() const override { return !launches_wait_ && !cuda::memory_is_apart(); }
  HostSteps host_steps() const override { return host_steps_; }
  void begin_recording() override {
    come_behind_all();
    check_recording(recorder_.begin(streams_));
  }
  std::shared_ptr<Recording> end_recording() override {
    come_behind_all();  // here, where it is measured
    std::shared_ptr<cuda::GraphRecording> recording;
    check_recording(recorder_.end(recording));
    return recording;
  }
  void drop_recording() noexcept override { recorder_.drop(); }
  void replay(Recording& recording) override {
    come_behind_all();
    stream_for_work(Stream::kCompute);
    auto& graph = static_cast<cuda::GraphRecording&>(recording);
    check(graph.launch());
    for (int i = 0; i < kStreams; ++i) {
      cuda::GraphRecording::Count& count = graph.count(i);
      if (count.counts == 0) continue;
      cuda::StreamCounter& counter = *counters_[static_cast<std::size_t>(i)];
      count.last = counter.last();
      counter.advance(count.counts);
    }
  }
  Milestone again(const Milestone& milestone, const Recording& recording) const override {
    const auto& graph = static_cast<const cuda::GraphRecording&>(recording);
    for (int i = 0; i < kStreams; ++i) {
      const auto& counter = counters_[static_cast<std::size_t>(i)];
      if (counter && counter->counts(milestone))
        return milestone.later(graph.count(i).last - graph.count(i).first);
    }
    return milestone;
  }

 private:
  /// Orders the next work in the stream for computation behind all communication.
  void come_behind_all() {
    wait_for(Stream::kCompute, std::array{ticket(Stream::kCommunication), ticket(Stream::kBackground)});
  }
  /// For places outside of recordings, or in the one that is made.
  void wait_for(Stream stream, std::span<const Ticket> tickets) {
    const bool stalls = std::ranges::any_of(tickets, [&](const Ticket& ticket) {
      const bool transfers = ticket.stream == Stream::kCommunication || ticket.stream == Stream::kBackground;
      return stream == Stream::kCompute && transfers &&
             (!recorder_.records() || recorder_.waits(stream, ticket));
    });
    if (stalls) check(stalls_->begin());
    for (const Ticket& ticket : tickets) {
      check(recorder_.records() ? recorder_.wait(stream, ticket)
                                : cudaStreamWaitEvent(native(stream), event_of(ticket), 0));
    }
    if (stalls) check(stalls_->end());
  }
  void check_recording(cudaError_t status) const {
    if (status != cudaSuccess)
      fail(concat("CUDA could not record ", failures_->work().text(),
                  " as a graph: ", cudaGetErrorString(status)));
  }
  void not_recorded(const char* what) const {
    if (recorder_.records())
      fail(concat(what, " in ", failures_->work().text(), ", which is being recorded"));
  }
  void move(Stream stream, const std::byte* from, std::byte* to, std::size_t bytes, cudaMemcpyKind kind) {
    cudaStream_t native_stream = stream_for_work(stream);
    check(cudaMemcpyAsync(to, from, bytes, kind, native_stream));
    if (launches_wait_) launched(stream, cudaSuccess, "a copy");
  }
  /// Events of a stream, one for each ticket, reused in turn. More than a step takes, and the host waits for
  /// the end of each step within the next.
  static constexpr std::int64_t kPlaces = 4096;
  struct Places {
    std::vector<cudaEvent_t> events;
    std::int64_t last = 0;
  };
  cudaEvent_t event_of(const Ticket& ticket) const {
    return places_[static_cast<std::size_t>(ticket.stream)]
        .events[static_cast<std::size_t>(ticket.number % kPlaces)];
  }
  /// Events with times, kept to be used again.
  struct Times {
    std::vector<cudaEvent_t> events;
    std::size_t used = 0;
  };

  cudaEvent_t make_event(unsigned flags) const {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, flags));
    return event;
  }
  std::size_t record(Times& times, Stream stream) {
    if (times.used == times.events.size()) times.events.push_back(make_event(cudaEventDefault));
    check(cudaEventRecord(times.events[times.used], native(stream)));
    return times.used++;
  }
  double seconds_between(cudaEvent_t first, cudaEvent_t second) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, first, second));
    return 1e-3 * static_cast<double>(milliseconds);
  }
  void check(cudaError_t status) const { failures_->check(status); }

  int device_;
  std::shared_ptr<const Arena> memory_;
  std::shared_ptr<cuda::Failures> failures_;
  bool launches_wait_ = false;
  cuda::Recorder recorder_;
  HostSteps host_steps_;
  cuda::PinnedRing uploads_;
  std::shared_ptr<Arena> page_locked_;
  std::array<cudaStream_t, kStreams> streams_{};
  std::shared_ptr<cuda::Ending> ending_;
  std::array<Places, kStreams> places_;
  std::array<std::optional<cuda::StreamCounter>, kStreams> counters_;
  Times marks_;
  static constexpr std::int64_t kInstants = 8;
  std::array<cudaEvent_t, kInstants> instants_{};
  std::int64_t instants_taken_ = 0;
  std::optional<cuda::StallClock> stalls_;  ///< of waits for communication that the host does not know of
};

}  // namespace

void choose_cuda_device(int number) {
  const int devices = cuda_device_count();
  if (devices > 0 && cudaSetDevice(number % devices) == cudaSuccess) cudaFree(nullptr);
}

namespace {

/// Makes a GPU current; from then on the process holds memory there.
void choose(const CudaDevice& device) {
  const cudaError_t status = cudaSetDevice(device.number);
  const bool full = status == cudaErrorMemoryAllocation;
  if (!full && status != cudaErrorDevicesUnavailable) return cuda::check(status, "choose the device");
  cudaGetLastError();  // it is told here
  throw ConfigError(
      concat("the GPU ", device.name, " (", device.bus, " of ", host_name(), ") ",
             full ? "has no memory left for this process"
                  : "takes no other process, of this job or another, being in exclusive or prohibited "
                    "compute mode, or held by one that hangs",
             ": ", cuda::error_text(status), "; end what runs there (nvidia-smi), ",
             full ? "" : "set its compute mode (nvidia-smi -c DEFAULT), ",
             "or name another by CUDA_VISIBLE_DEVICES"));
}

}  // namespace

Context make_cuda_context(int device, bool for_other_processes) {
  const CudaDevice described = cuda_device(device);
  choose(described);
  cuda::require_code_for(described);
  const auto work = std::make_shared<CurrentWork>();
  const auto failures = std::make_shared<cuda::Failures>(cuda::identity_of(device), work);
  const auto memory = [&] { return cuda::make_device_memory(device, failures, for_other_processes); };
  const auto arena = std::make_shared<Arena>(Device::kCuda, memory(), memory());
  Context context(Backend::kCuda, arena, 1);
  context.state<SharedWork>().work = work;
  auto runtime = std::make_unique<CudaRuntime>(device, failures, arena);
  const cuda::AtTheEnd end{runtime->ending()};
  context.set_runtime(std::shared_ptr<CudaRuntime>(runtime.release(), end));
  return context;
}

namespace {

CudaRuntime& runtime_of(const Context& context) {
  require(context.runtime() != nullptr, "a CUDA kernel needs a context with a device");
  return static_cast<CudaRuntime&>(*context.runtime());
}

}  // namespace

cudaStream_t cuda::stream_of(const Context& context) {
  return runtime_of(context).stream_for_work(context.stream());
}
bool cuda::launches_wait(const Context& context) {
  return runtime_of(context).launches_wait();
}
void cuda::launched(const Context& context, cudaError_t status, const char* work) {
  runtime_of(context).launched(context.stream(), status, work);
}
void cuda::require_no_failure(const Context& context) {
  runtime_of(context).require_no_failure(context.stream());
}
void cuda::library_failed(const Context& context, const std::string& work, const LibraryError& error) {
  launched(context, runtime_of(context).so_far(context.stream()), work.c_str());
  const std::string full = full_device_text(context);
  if (!full.empty() || error.remedy().empty()) fail(error.what() + full);
  throw ConfigError(concat(error.what(), "; ", error.remedy()));
}
std::shared_ptr<cuda::Ending> cuda::ending_of(const Context& context) {
  return runtime_of(context).ending();
}
std::string cuda::full_device_text(const Context& context, double part) {
  std::size_t free = 0, total = 0;
  const bool told = cudaMemGetInfo(&free, &total) == cudaSuccess;
  if (!told || static_cast<double>(free) >= part * static_cast<double>(total)) return "";
  return concat("; ", human_bytes(static_cast<std::int64_t>(free)), " of ",
                human_bytes(static_cast<std::int64_t>(total)),
                " are free on the GPU: ", context.arena().uses_text());
}

}  // namespace jigsaw::inline kernels
