#include "kernels/cuda/recorder.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace jigsaw::inline kernels::cuda {

GraphRecording::~GraphRecording() {
  if (std::uncaught_exceptions() <= exceptions_) cudaStreamSynchronize(stream_);
  cudaGraphExecDestroy(graph_);
}

Recorder::~Recorder() {
  std::ranges::for_each(events_, cudaEventDestroy);
}

/// Relaxed, because libraries may make calls that captures in other modes forbid.
cudaError_t Recorder::begin(std::span<const cudaStream_t> streams) {
  std::ranges::copy(streams, streams_.begin());
  const cudaError_t status = cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeRelaxed);
  if (status != cudaSuccess) return status;
  origin_ = streams[0];
  inside_ = {};
  inside(Stream::kCompute) = true;
  used_ = 0;
  counts_ = {};
  ++recording_;
  return cudaSuccess;
}

cudaError_t Recorder::record_event(Stream stream, std::int64_t& number) {
  if (used_ == std::ssize(events_)) {
    cudaEvent_t event = nullptr;
    const cudaError_t status = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (status != cudaSuccess) return status;
    events_.push_back(event);
  }
  number = used_++;
  return cudaEventRecord(events_[static_cast<std::size_t>(number)], native(stream));
}

cudaError_t Recorder::ticket(Stream stream, DeviceRuntime::Ticket& ticket) {
  ticket = {stream, kNothing, recording_};
  return inside(stream) ? record_event(stream, ticket.number) : cudaSuccess;
}

cudaError_t Recorder::wait(Stream stream, const DeviceRuntime::Ticket& ticket) {
  if (!waits(stream, ticket)) return cudaSuccess;
  inside(stream) = true;
  return cudaStreamWaitEvent(native(stream), events_[static_cast<std::size_t>(ticket.number)], 0);
}

cudaError_t Recorder::milestone(Stream stream, const StreamCounter& counter, Milestone& milestone) {
  milestone = {};
  if (!inside(stream)) return cudaSuccess;
  GraphRecording::Count& count = counts_[static_cast<std::size_t>(stream)];
  if (count.counts++ == 0) count.first = counter.last();
  milestone = counter.milestone().later(count.counts);
  return counter.record_count(native(stream));
}

/// Joins the other streams, so that their work ends before the recording does.
cudaError_t Recorder::join() {
  cudaError_t status = cudaSuccess;
  for (int i = 0; i < kStreams && status == cudaSuccess; ++i) {
    const auto stream = static_cast<Stream>(i);
    if (!inside(stream) || stream == Stream::kCompute) continue;
    std::int64_t number = 0;
    status = record_event(stream, number);
    if (status == cudaSuccess)
      status = cudaStreamWaitEvent(origin_, events_[static_cast<std::size_t>(number)], 0);
  }
  return status;
}

cudaError_t Recorder::so_far(Stream stream) const {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  const cudaError_t status = cudaStreamIsCapturing(native(stream), &capture);
  return status == cudaSuccess && capture == cudaStreamCaptureStatusInvalidated
             ? cudaErrorStreamCaptureInvalidated
             : status;
}

cudaError_t Recorder::end(std::shared_ptr<GraphRecording>& recording) {
  cudaError_t status = join();
  cudaStream_t const origin = std::exchange(origin_, nullptr);
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(origin, &graph);
  if (status == cudaSuccess) status = ended;
  cudaGraphExec_t executable = nullptr;
  if (status == cudaSuccess)
    status = cudaGraphInstantiate(&executable, graph, cudaGraphInstantiateFlagUseNodePriority);
  if (graph != nullptr) cudaGraphDestroy(graph);
  // The device may need memory for it: found out here, where the first part of a step can be done without.
  if (status == cudaSuccess) {
    status = cudaGraphUpload(executable, origin);
    if (status != cudaSuccess) cudaGraphExecDestroy(executable);
  }
  if (status == cudaSuccess) recording = std::make_shared<GraphRecording>(executable, origin, counts_);
  return status;
}

void Recorder::drop() {
  if (origin_ != nullptr) {
    join();
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(std::exchange(origin_, nullptr), &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
  }
  cudaGetLastError();
}

}  // namespace jigsaw::inline kernels::cuda
