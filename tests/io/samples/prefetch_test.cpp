#include "samples/prefetch.h"

#include <atomic>
#include <memory>

#include "array/host_view.h"
#include "base/error.h"
#include "base/trace.h"
#include "io/fixtures.h"

namespace jigsaw {
namespace prefetch_test {

Batch numbered(const Context& context, std::int64_t step) {
  Batch batch;
  batch.input = Array::zeros(context, {1}, DType::kFloat64, Purpose::kInput);
  HostView<double>(batch.input)[0] = static_cast<double>(step);
  return batch;
}

TEST(Prefetch, GivesTheStepsInOrderAndNoMore) {
  const Context context = Context::make_host(Backend::kReference, 1);
  Prefetch prefetch([&](std::int64_t step) { return numbered(context, step); }, 5, 12);
  for (int step = 5; step < 12; ++step) EXPECT_EQ(HostView<double>(prefetch.next().input)[0], step);
  EXPECT_THROW(prefetch.next(), Error);
}

TEST(Prefetch, ReadsAheadByItsDepthOnly) {
  const Context context = Context::make_host(Backend::kReference, 1);
  std::atomic<int> calls = 0;
  Prefetch prefetch(
      [&](std::int64_t step) {
        ++calls;
        return numbered(context, step);
      },
      0, 100);
  prefetch.next();
  constexpr int kAhead = 1 + static_cast<int>(Prefetch::kDepth);
  while (calls < kAhead) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(calls, kAhead);
}

/// What runs report as data_wait_seconds is what a trace of the same steps shows, also of batches that are
/// there before they are asked for.
TEST(Prefetch, WaitsAsLongAsTheTraceSays) {
  const Context context = Context::make_host(Backend::kReference, 1);
  const auto trace = std::make_shared<EventTrace>();
  trace->record(true);
  const TracesFor traced(trace, "training");
  std::atomic<int> calls = 0;
  Prefetch prefetch(
      [&](std::int64_t step) {
        ++calls;
        return numbered(context, step);
      },
      0, 100);
  for (int step = 0; step < 20; ++step) {
    // The one worker begins a step when the step before is there.
    while (step % 2 == 0 && calls < step + 2) std::this_thread::yield();
    prefetch.next();
  }
  int spans = 0;
  double seconds = 0;
  for (const auto& [thread, events] : trace->events()) {
    for (const TraceEvent& event : events) {
      if (event.kind != TraceKind::kDataWait) continue;
      ++spans;
      seconds += 1e-9 * static_cast<double>(event.end - event.begin);
    }
  }
  EXPECT_EQ(spans, 20);
  // The clock is read before a span begins and after it has ended.
  EXPECT_GE(prefetch.seconds_waited(), (1 - 1e-9) * seconds);
}

TEST(Prefetch, SeveralWorkersGiveTheStepsInOrderWithinTheDepth) {
  const Context context = Context::make_host(Backend::kReference, 1);
  std::atomic<int> loading = 0, most = 0;
  std::atomic<std::int64_t> given = 0;
  std::atomic<bool> too_far = false;
  Prefetch prefetch(
      [&](std::int64_t step) {
        const int now = ++loading;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        if (step > given + 4) too_far = true;
        // The first waits for another to be read at the same time.
        while (step == 0 && most < 2) std::this_thread::yield();
        --loading;
        if (step == 20) throw DataError("the disk is gone");
        return numbered(context, step);
      },
      0, 100, {4, 3});
  for (int step = 0; step < 20; ++step) {
    EXPECT_EQ(HostView<double>(prefetch.next().input)[0], step);
    ++given;
  }
  EXPECT_THROW(prefetch.next(), DataError);
  EXPECT_THROW(prefetch.next(), DataError);
  EXPECT_GE(most, 2);
  EXPECT_LE(most, 3);
  EXPECT_FALSE(too_far);
}

TEST(Prefetch, WorkersGetPlacesAsMemoryAllows) {
  const auto of = [](std::int64_t bytes, std::int64_t workers) {
    const ReadAhead ahead = ReadAhead::within_budget(bytes, workers);
    return std::pair(ahead.depth, ahead.workers);
  };
  using Pair = std::pair<std::size_t, std::size_t>;
  EXPECT_EQ(of(1, 8), Pair(9, 8));
  EXPECT_EQ(of(1, 1), Pair(4, 1));
  EXPECT_EQ(of(ReadAhead::kBudget / 5, 8), Pair(5, 5));
  EXPECT_EQ(of(ReadAhead::kBudget, 8), Pair(2, 2));
  EXPECT_EQ(of(1, 0).first, 4U);
  EXPECT_LE(of(1, 0).second, 2U);
}

TEST(Prefetch, ThrowsErrorsWhereTheyBelong) {
  const Context context = Context::make_host(Backend::kReference, 1);
  Prefetch prefetch(
      [&](std::int64_t step) {
        if (step == 1) throw DataError("the disk is gone");
        return numbered(context, step);
      },
      0, 100);
  EXPECT_EQ(HostView<double>(prefetch.next().input)[0], 0);
  EXPECT_THROW(prefetch.next(), DataError);
  EXPECT_THROW(prefetch.next(), DataError);
}

TEST(Prefetch, EndsAtAnyTimeAndMeasuresTheWait) {
  const Context context = Context::make_host(Backend::kReference, 1);
  for (int taken = 0; taken < 4; ++taken) {
    std::atomic<bool> asked = false;
    Prefetch prefetch(
        [&](std::int64_t step) {
          while (step == 0 && taken > 0 && !asked) std::this_thread::yield();
          std::this_thread::sleep_for(std::chrono::milliseconds(step == 0 ? 250 : 5));
          return numbered(context, step);
        },
        0, 100);
    asked = true;
    for (int i = 0; i < taken; ++i) prefetch.next();
    EXPECT_EQ(prefetch.seconds_waited() > 0, taken > 0);
  }
}

}  // namespace prefetch_test
}  // namespace jigsaw
