#include "support/fake_cuda/graphs.h"

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#include "base/text.h"
#include "support/fake_cuda/devices.h"

namespace jigsaw::testing::fake_cuda {

namespace {

/// What was put into the streams of a capture, in the order of the calls. A *lane* is what one stream was
/// given. A launch gives each lane a stream, so that work is ordered within lanes and by marks that lanes
/// wait for, and by nothing else.
struct Graph {
  enum class Kind : std::uint8_t { kWork, kMark, kWait };
  struct Step {
    Kind kind;
    std::size_t lane;
    std::size_t mark = 0;
    std::string name;
    std::function<void(cudaStream_t)> put_again;
    bool of_nccl = false;
  };
  std::vector<Step> steps;
  std::vector<int> devices;  ///< by lane
  std::size_t marks = 0;
};

std::string fault;

/// What JIGSAW_FAKE_CUDA_SPOILS says of a device, besides a number.
constexpr int kNothing = -1, kUpload = -2, kNccl = -3;
int spoilt_at(int device) {
  const char* const text = std::getenv("JIGSAW_FAKE_CUDA_SPOILS");
  char* behind = nullptr;
  if (text == nullptr || std::strtol(text, &behind, 10) != device || *behind != ':') return kNothing;
  if (behind[1] == 'u') return kUpload;
  return behind[1] == 'n' ? kNccl : static_cast<int>(std::strtol(behind + 1, nullptr, 10));
}

}  // namespace

/// From cudaStreamBeginCapture on; events that were recorded in it know it longer.
struct Capture {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;  ///< none: it has ended
  cudaStreamCaptureMode mode;
  std::thread::id thread = std::this_thread::get_id();
  std::vector<FakeStream*> streams;  ///< by lane, the one that began first; null once destroyed
  Graph graph;
  int spoilt_in;  ///< pieces of work from now on

  Capture(cudaStreamCaptureMode how, int device) : mode(how), spoilt_in(spoilt_at(device)) {}
  void add(FakeStream& stream, const std::shared_ptr<Capture>& self) {
    stream.capture = self;
    stream.lane = streams.size();
    streams.push_back(&stream);
    graph.devices.push_back(stream.device);
  }
  cudaError_t add(Graph::Step step) {
    if (status != cudaStreamCaptureStatusActive) return result(cudaErrorStreamCaptureInvalidated);
    if (step.kind == Graph::Kind::kWork && spoils(step))
      return invalidate(cudaErrorStreamCaptureUnsupported, step.name + ", as the test wants it");
    graph.steps.push_back(std::move(step));
    return result(cudaSuccess);
  }
  /// Whether the test wants this piece of work to spoil it.
  bool spoils(const Graph::Step& step) {
    if (spoilt_in == kNccl) return step.of_nccl;
    if (spoilt_in <= 0 || (spoilt_in == 1 && step.of_nccl)) return false;
    return --spoilt_in == 0;
  }
  /// What it does not allow has been done.
  cudaError_t invalidate(cudaError_t error, const std::string& why) {
    if (status == cudaStreamCaptureStatusActive) {
      status = cudaStreamCaptureStatusInvalidated;
      fault = why;
    }
    return result(error);
  }
  void end() {
    status = cudaStreamCaptureStatusNone;
    for (FakeStream* const stream : std::exchange(streams, {})) {
      if (stream != nullptr) stream->capture.reset();
    }
  }
};

namespace {

/// Work that no wait of the first lane is behind, the last; null where there is none. Backwards, a lane is
/// joined from a mark on that a joined lane waits for.
const Graph::Step* unjoined(const Graph& graph) {
  std::vector<bool> lanes(graph.devices.size()), marks(graph.marks);
  lanes[0] = true;
  for (auto step = graph.steps.rbegin(); step != graph.steps.rend(); ++step) {
    if (step->kind == Graph::Kind::kWork && !lanes[step->lane]) return &*step;
    if (step->kind == Graph::Kind::kWait && lanes[step->lane]) marks[step->mark] = true;
    if (step->kind == Graph::Kind::kMark && marks[step->mark]) lanes[step->lane] = true;
  }
  return nullptr;
}

}  // namespace

const std::string& capture_fault() {
  return fault;
}

bool capturing(cudaStream_t stream) {
  const std::lock_guard lock(mutex());
  return stream != nullptr && stream->capture != nullptr;
}
cudaError_t record(cudaStream_t stream, std::string name, std::function<void(cudaStream_t)> put_again,
                   bool of_nccl) {
  const std::lock_guard lock(mutex());
  if (!capturing(stream)) return result(cudaErrorInvalidValue);
  return stream->capture->add({.kind = Graph::Kind::kWork,
                               .lane = stream->lane,
                               .name = std::move(name),
                               .put_again = std::move(put_again),
                               .of_nccl = of_nccl});
}

cudaError_t record_event(FakeEvent& event, FakeStream& stream) {
  Capture& capture = *stream.capture;
  event = {.timed = event.timed, .capture = stream.capture, .mark = capture.graph.marks++};
  return capture.add({.kind = Graph::Kind::kMark, .lane = stream.lane, .mark = event.mark});
}

cudaError_t record_wait(FakeStream& stream, const FakeEvent& event) {
  const bool inside = event.capture != nullptr && event.capture->status != cudaStreamCaptureStatusNone;
  if (!inside && stream.capture == nullptr) return result(cudaErrorCapturedEvent);
  if (!inside) {
    return stream.capture->invalidate(cudaErrorStreamCaptureIsolation,
                                      "a captured stream waits for an event of outside the capture");
  }
  if (stream.capture != nullptr && stream.capture != event.capture) {
    const std::string why = "a captured stream waits for an event of another capture";
    event.capture->invalidate(cudaErrorStreamCaptureMerge, why);
    return stream.capture->invalidate(cudaErrorStreamCaptureMerge, why);
  }
  Capture& capture = *event.capture;
  if (stream.capture == nullptr && capture.status == cudaStreamCaptureStatusActive)
    capture.add(stream, event.capture);
  return capture.add({.kind = Graph::Kind::kWait, .lane = stream.lane, .mark = event.mark});
}

cudaError_t refuse(const FakeStream& stream, const std::string& call) {
  return stream.capture->invalidate(cudaErrorStreamCaptureUnsupported, call + " of a captured stream");
}
cudaError_t refuse(const FakeEvent& event, const std::string& call) {
  return event.capture->invalidate(cudaErrorCapturedEvent, call + " of a captured event");
}

void leave_capture(FakeStream& stream) {
  const std::shared_ptr<Capture> capture = std::exchange(stream.capture, nullptr);
  capture->streams[stream.lane] = nullptr;
  capture->invalidate(cudaSuccess, "a captured stream is destroyed");
  if (stream.lane == 0) capture->end();
}

}  // namespace jigsaw::testing::fake_cuda

using namespace jigsaw::testing::fake_cuda;  // NOLINT(google-build-using-namespace)

struct FakeGraph {
  std::shared_ptr<const Graph> graph;
};
struct FakeGraphExec {
  std::shared_ptr<const Graph> graph;
  std::vector<std::shared_ptr<FakeStream>> streams;  ///< of the lanes behind the first
  FakeEvent end;                                     ///< of the launch before
};

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const std::lock_guard lock(mutex());
  if (stream == nullptr) return result(cudaErrorStreamCaptureUnsupported);
  if (stream->capture != nullptr) return result(cudaErrorIllegalState);
  const auto capture = std::make_shared<Capture>(mode, stream->device);
  capture->add(*stream, capture);
  return result(cudaSuccess);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const std::lock_guard lock(mutex());
  *status = capturing(stream) ? stream->capture->status : cudaStreamCaptureStatusNone;
  return result(cudaSuccess);
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard lock(mutex());
  *graph = nullptr;
  if (!capturing(stream)) return result(cudaErrorIllegalState);
  if (stream->lane != 0) return result(cudaErrorStreamCaptureUnmatched);
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id())
    return result(cudaErrorStreamCaptureWrongThread);
  const bool invalid = capture->status != cudaStreamCaptureStatusActive;
  capture->end();
  Graph recorded = std::exchange(capture->graph, {});
  if (invalid) return result(cudaErrorStreamCaptureInvalidated);
  if (const Graph::Step* const left = unjoined(recorded)) {
    fault =
        jigsaw::concat(left->name, " in a forked stream is behind the last place that is waited for there");
    return result(cudaErrorStreamCaptureUnjoined);
  }
  *graph = new FakeGraph{std::make_shared<const Graph>(std::move(recorded))};
  return result(cudaSuccess);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  const std::lock_guard lock(mutex());
  if (graph == nullptr || (flags & ~cudaGraphInstantiateFlagUseNodePriority) != 0)
    return result(cudaErrorInvalidValue);
  if (spoilt_at(graph->graph->devices[0]) == 0) return result(cudaErrorNotSupported);
  *exec = new FakeGraphExec{graph->graph, {}, {}};
  for (std::size_t lane = 1; lane < graph->graph->devices.size(); ++lane)
    (*exec)->streams.push_back(std::make_shared<FakeStream>(graph->graph->devices[lane]));
  return result(cudaSuccess);
}
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  const std::lock_guard lock(mutex());
  if (exec == nullptr || stream == nullptr) return result(cudaErrorInvalidValue);
  if (capturing(stream)) return refuse(*stream, "a graph's upload");
  return result(spoilt_at(stream->device) == kUpload ? cudaErrorMemoryAllocation : cudaSuccess);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  const std::lock_guard lock(mutex());
  if (exec == nullptr || stream == nullptr) return result(cudaErrorInvalidValue);
  if (capturing(stream)) return refuse(*stream, "a graph's launch");  // CUDA puts graphs into graphs
  const Graph& graph = *exec->graph;
  if (stream->device != graph.devices[0]) return result(cudaErrorInvalidValue);
  if (exec->end.stream != nullptr) wait(*stream, exec->end);
  std::vector<FakeEvent> marks(graph.marks);
  for (const Graph::Step& step : graph.steps) {
    FakeStream& into = step.lane == 0 ? *stream : *exec->streams[step.lane - 1];
    if (step.kind == Graph::Kind::kWork) step.put_again(&into);
    if (step.kind == Graph::Kind::kMark) mark(marks[step.mark], into);
    if (step.kind == Graph::Kind::kWait) wait(into, marks[step.mark]);
  }
  mark(exec->end, *stream);
  return result(cudaSuccess);
}
/// Its work goes on: the stream that it was launched in waits for the other streams, and so keeps them.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  const std::lock_guard lock(mutex());
  delete exec;
  return result(cudaSuccess);
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const std::lock_guard lock(mutex());
  delete graph;
  return result(cudaSuccess);
}
