#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "cuda_runtime_api.h"
#include "support/fake_cuda/work_order.h"

// What streams and events are, for the sources of the fake runtime alone.

namespace jigsaw::testing::fake_cuda {
struct Capture;
}

/// A kernel or a copy; with id 0 a wait, which touches nothing.
struct FakeWork {
  jigsaw::testing::fake_cuda::WorkOrder::Id id = 0;
  std::function<bool()> run;  ///< false: it cannot yet
  bool of_all_devices = false;
};

/// Work that was put in, and how much of it has run. What waits for it shares it, for the program may destroy
/// it meanwhile.
struct FakeStream : std::enable_shared_from_this<FakeStream> {
  explicit FakeStream(int of_device) : device(of_device) { all.insert(this); }
  ~FakeStream() {
    all.erase(this);
    forget();
    jigsaw::testing::fake_cuda::WorkOrder::all().close_stream(number);
  }
  FakeStream(const FakeStream&) = delete;
  FakeStream& operator=(const FakeStream&) = delete;

  /// What waits never runs.
  void forget() {
    all_waiting -= std::ssize(work);
    work.clear();
    done = put;
  }

  const int device, number = jigsaw::testing::fake_cuda::WorkOrder::all().open_stream();
  int priority = 0;
  std::deque<FakeWork> work;
  static inline std::set<FakeStream*> all;
  static inline std::int64_t all_waiting = 0;  ///< work in all streams
  std::int64_t put = 0, done = 0;
  std::shared_ptr<FakeStream> of_program;  ///< itself, until the program destroys it
  /// What is put in now is recorded there, as part of that lane; null: it is not.
  std::shared_ptr<jigsaw::testing::fake_cuda::Capture> capture = nullptr;
  std::size_t lane = 0;
};

/// A place in a stream, or in a capture.
struct FakeEvent {
  std::shared_ptr<FakeStream> stream = nullptr;
  std::int64_t number = 0;
  jigsaw::testing::fake_cuda::WorkOrder::Clock place;
  bool timed = false;
  /// When it came to pass; none yet.
  std::shared_ptr<std::optional<std::chrono::steady_clock::time_point>> time = nullptr;
  std::shared_ptr<jigsaw::testing::fake_cuda::Capture> capture = nullptr;
  std::size_t mark = 0;  ///< among those of the capture
};

namespace jigsaw::testing::fake_cuda {

/// What a call says that has come to this.
cudaError_t result(cudaError_t error);
/// Memory of devices comes in multiples of it.
std::size_t page_bytes();
cudaError_t put(cudaStream_t stream, FakeWork work, std::int64_t* number = nullptr);
/// Runs work of the stream up to that number. What waits for the work of others lets go of the lock
/// meanwhile.
void run_all(FakeStream& stream, const std::int64_t& until, std::unique_lock<std::recursive_mutex>& lock);
/// The event is behind what stands in the stream by now.
void mark(FakeEvent& event, FakeStream& stream);
/// What is put into the stream from now on comes behind the event, which was recorded in a stream.
cudaError_t wait(FakeStream& stream, const FakeEvent& event);

}  // namespace jigsaw::testing::fake_cuda
