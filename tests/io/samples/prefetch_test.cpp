#include "samples/prefetch.h"

#include <atomic>

#include "array/host_view.h"
#include "base/error.h"
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

/// What runs report as data_wait_seconds: nothing at all where batches are there before they are asked for.
TEST(Prefetch, WaitsForNothingThatIsThere) {
  const Context context = Context::make_host(Backend::kReference, 1);
  std::atomic<int> calls = 0;
  Prefetch prefetch(
      [&](std::int64_t step) {
        ++calls;
        return numbered(context, step);
      },
      0, 100);
  for (int step = 0; step < 20; ++step) {
    // The one worker begins a step when the step before is there.
    while (calls < step + 2) std::this_thread::yield();
    prefetch.next();
  }
  EXPECT_EQ(prefetch.seconds_waited(), 0);
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
