#include "support/fake_cuda/streams.h"

#include <atomic>

#include "cuda.h"
#include "support/fake_cuda/devices.h"
#include "support/fake_cuda/graphs.h"

namespace jigsaw::testing::fake_cuda {

namespace {

std::atomic<std::int64_t> events = 0;

}  // namespace

std::int64_t events_made() {
  return events;
}

void forget_work() {
  const std::lock_guard lock(mutex());
  for (FakeStream* const stream : FakeStream::all) stream->forget();
}

std::shared_ptr<FakeStream> share(cudaStream_t stream) {
  return stream->shared_from_this();
}
void mark(FakeEvent& event, FakeStream& stream) {
  event.stream = stream.shared_from_this();
  event.number = stream.put;
  event.place = WorkOrder::all().place(stream.number);
}
cudaError_t wait(FakeStream& stream, const FakeEvent& event) {
  WorkOrder::all().stream_waits(stream.number, event.place);
  return put(&stream,
             FakeWork{0, [there = event.stream, number = event.number] { return run(*there, number); }});
}

}  // namespace jigsaw::testing::fake_cuda

using namespace jigsaw::testing::fake_cuda;  // NOLINT(google-build-using-namespace)

/// The host may look at it at any time, so that it is no access that needs an order.
CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr at, unsigned value, unsigned flags) {
  const std::lock_guard lock(mutex());
  if (capturing(stream)) {
    const auto put_again = [=](cudaStream_t into) { cuStreamWriteValue32(into, at, value, flags); };
    return record(stream, "a number written", put_again) == cudaErrorStreamCaptureInvalidated
               ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
               : CUDA_SUCCESS;
  }
  if (const cudaError_t before = result(cudaSuccess); before != cudaSuccess)
    return static_cast<CUresult>(before);
  put(stream, FakeWork{0, [=] {
                         std::atomic_ref(*reinterpret_cast<unsigned*>(at)).store(value);
                         return true;
                       }});
  return CUDA_SUCCESS;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  const std::lock_guard lock(mutex());
  const auto made = std::make_shared<FakeStream>(current_device());
  made->of_program = made;
  *stream = made.get();
  return result(cudaSuccess);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return result(cudaSuccess);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  if (priority > 0 || priority < -5) return result(cudaErrorInvalidValue);
  const cudaError_t status = cudaStreamCreateWithFlags(stream, flags);
  (*stream)->priority = priority;
  return status;
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  *priority = stream->priority;
  return result(cudaSuccess);
}
/// What nobody waited for never runs.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(mutex());
  if (capturing(stream)) leave_capture(*stream);
  const std::shared_ptr<FakeStream> last = std::exchange(stream->of_program, nullptr);
  last->forget();
  return cudaSuccess;
}
/// What can run does so. A mistake that it finds is the call's error: destructors ask.
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const std::lock_guard lock(mutex());
  if (capturing(stream)) return refuse(*stream, "cudaStreamQuery");
  if (!kernels_can_run()) return cudaErrorCudartUnloading;
  try {
    if (!run(*stream, stream->put)) return cudaErrorNotReady;
  } catch (const std::exception&) {
    return cudaErrorOfTheFake;
  }
  WorkOrder::all().host_waited(WorkOrder::all().place(stream->number));
  return result(cudaSuccess);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  std::unique_lock lock(mutex());
  if (capturing(stream)) return refuse(*stream, "cudaStreamSynchronize");
  run_all(*stream, stream->put, lock);
  WorkOrder::all().host_waited(WorkOrder::all().place(stream->number));
  return result(cudaSuccess);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  const std::lock_guard lock(mutex());
  if (event->capture == nullptr && event->stream == nullptr) return result(cudaSuccess);
  if (capturing(stream) || event->capture != nullptr) return record_wait(*stream, *event);
  return wait(*stream, *event);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  ++events;
  *event = new FakeEvent{.timed = (flags & cudaEventDisableTiming) == 0};
  return result(cudaSuccess);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const std::lock_guard lock(mutex());
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(mutex());
  if (capturing(stream)) return record_event(*event, *stream);
  const auto time = std::make_shared<std::optional<std::chrono::steady_clock::time_point>>();
  if (event->timed) {
    put(stream, FakeWork{0, [time] {
                           *time = std::chrono::steady_clock::now();
                           return true;
                         }});
  }
  *event = {.timed = event->timed, .time = time};
  mark(*event, *stream);
  return result(cudaSuccess);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  std::unique_lock lock(mutex());
  if (event->capture != nullptr) return refuse(*event, "cudaEventSynchronize");
  if (event->stream == nullptr) return result(cudaSuccess);
  const std::shared_ptr<FakeStream> stream = event->stream;
  run_all(*stream, event->number, lock);
  WorkOrder::all().host_waited(event->place);
  return result(cudaSuccess);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const std::lock_guard lock(mutex());
  for (const cudaEvent_t event : {start, end}) {
    if (event->capture != nullptr) return refuse(*event, "cudaEventElapsedTime");
  }
  if (!start->timed || !end->timed || start->time == nullptr || end->time == nullptr)
    return result(cudaErrorInvalidResourceHandle);
  if (!*start->time || !*end->time) return result(cudaErrorNotReady);
  *milliseconds = std::chrono::duration<float, std::milli>(**end->time - **start->time).count();
  return result(cudaSuccess);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::lock_guard lock(mutex());
  if (event->capture != nullptr) return refuse(*event, "cudaEventQuery");
  const bool past = event->stream == nullptr || event->stream->done >= event->number;
  if (past) WorkOrder::all().host_waited(event->place);
  return past ? result(cudaSuccess) : cudaErrorNotReady;
}
