#pragma once
#include <cuda_runtime_api.h>

#include <array>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "array/device_runtime.h"
#include "kernels/cuda/stream_counter.h"

namespace jigsaw::inline kernels::cuda {

/// Work of several streams as a CUDA graph.
class GraphRecording : public DeviceRuntime::Recording {
 public:
  /// How often a stream counts, and what its counter had come to before a replay.
  struct Count {
    std::uint32_t counts = 0, first = 0, last = 0;
  };
  using Counts = std::array<Count, kStreams>;

  GraphRecording(cudaGraphExec_t graph, cudaStream_t stream, const Counts& counts)
      : graph_(graph), stream_(stream), counts_(counts) {}
  /// Waits until it no longer runs, unless an error is on its way.
  ~GraphRecording() override;

  cudaError_t launch() { return cudaGraphLaunch(graph_, stream_); }
  Count& count(int stream) { return counts_[static_cast<std::size_t>(stream)]; }
  const Count& count(int stream) const { return counts_[static_cast<std::size_t>(stream)]; }

 private:
  cudaGraphExec_t graph_;
  cudaStream_t stream_;
  Counts counts_;
  int exceptions_ = std::uncaught_exceptions();
};

/// Records what is put into the streams of a context by stream capture. Order between streams is kept by
/// tickets of its own: what was put in before a recording comes before all of it, and so needs none.
class Recorder {
 public:
  Recorder() = default;
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  bool records() const { return origin_ != nullptr; }
  /// @param streams  of the context, the one for computation first.
  cudaError_t begin(std::span<const cudaStream_t> streams);
  /// DeviceRuntime's tickets and waits, while it records.
  cudaError_t ticket(Stream stream, DeviceRuntime::Ticket& ticket);
  cudaError_t wait(Stream stream, const DeviceRuntime::Ticket& ticket);
  /// Whether wait() would add an order that is not there yet.
  bool waits(Stream stream, const DeviceRuntime::Ticket& ticket) const {
    return ticket.recording == recording_ && ticket.number != kNothing && ticket.stream != stream;
  }
  /// A milestone of the counter, which is the stream's.
  cudaError_t milestone(Stream stream, const StreamCounter& counter, Milestone& milestone);
  /// The error, if any, that has ended the recording of the stream.
  cudaError_t so_far(Stream stream) const;
  cudaError_t end(std::shared_ptr<GraphRecording>& recording);
  /// Ends a recording that failed, if it has not ended, and forgets its error.
  void drop();

 private:
  static constexpr std::int64_t kNothing = -1;  ///< a ticket's number where nothing was recorded before it

  cudaError_t record_event(Stream stream, std::int64_t& number);
  cudaError_t join();
  cudaStream_t native(Stream stream) const { return streams_[static_cast<std::size_t>(stream)]; }
  bool& inside(Stream stream) { return inside_[static_cast<std::size_t>(stream)]; }

  std::array<cudaStream_t, kStreams> streams_{};
  std::array<bool, kStreams> inside_{};  ///< streams that take part in the recording
  cudaStream_t origin_ = nullptr;
  std::vector<cudaEvent_t> events_;  ///< of tickets, by number
  std::int64_t used_ = 0, recording_ = 0;
  GraphRecording::Counts counts_;
};

}  // namespace jigsaw::inline kernels::cuda
