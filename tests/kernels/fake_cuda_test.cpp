// What the fake CUDA runtime finds: each kind of mistake is made here once. Only in the program that has it.
#include "support/fake_cuda/fake_cuda.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "array/raw_memory.h"
#include "array/transfer.h"
#include "base/error.h"
#include "cuda_runtime.h"
#include "kernels/backend.h"
#include "kernels/contraction.h"
#include "kernels/copy.h"
#include "kernels/cuda/error.h"
#include "kernels/cuda/pinned_ring.h"
#include "kernels/fake_cuda_finds.h"
#include "kernels/optimizer.h"
#include "kernels/pointwise.h"
#include "support/arrays.h"
#include "support/backends.h"
#include "support/error_of.h"
#include "support/fake_cuda/devices.h"

namespace jigsaw {
namespace {

namespace fake_cuda = testing::fake_cuda;
using testing::error_of;
using testing::FakeCudaFinds;
using testing::kThreads;
using testing::values_of;

/// Turns each block's numbers round by way of shared memory; with `waits` false as it must not be done.
__global__ void turn_round(float* x, bool waits) {
  __shared__ float shared[kThreads];
  float* const block = x + static_cast<std::int64_t>(blockIdx.x) * kThreads;
  shared[threadIdx.x] = block[threadIdx.x];
  if (waits) __syncthreads();
  block[threadIdx.x] = shared[kThreads - 1 - threadIdx.x];
}

/// What ThreadOrder finds, and of memory what an index is beyond; with none of these each thread writes its
/// own number.
enum class Fault { kNone, kTwoBlocksWrite, kABlockReads, kNobodyWrote, kBeyond };
__global__ void commit(Fault fault, float* x) {
  __shared__ float shared[kThreads], never[kThreads];
  const unsigned thread = threadIdx.x, of = blockIdx.x * kThreads + thread;
  shared[thread] = 1;
  x[fault == Fault::kTwoBlocksWrite ? thread : of] =
      shared[fault == Fault::kBeyond ? thread + kThreads : thread];
  if (fault == Fault::kABlockReads && blockIdx.x == 1) x[of] += x[thread];
  if (fault == Fault::kNobodyWrote) x[of] += never[thread];
  if (thread == kThreads) never[0] = 0;
}

/// Some threads leave before a barrier that the others come to.
__global__ void leave_others_waiting() {
  if (threadIdx.x % 2 == 0) __syncthreads();
}

__global__ void take_a_while() {
  if (threadIdx.x == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

__global__ void count_one(int* count) {
  if (threadIdx.x == 0) ++*count;
}

struct alignas(16) Words {
  float word[4];
};
/// Reads 16 bytes at once, wherever they begin; other threads wait for those that do.
__global__ void sum_words(const float* x, float* y) {
  __shared__ float sums[kThreads];
  const Words words = reinterpret_cast<const Words*>(x)[threadIdx.x];
  sums[threadIdx.x] = words.word[0] + words.word[1] + words.word[2] + words.word[3];
  __syncthreads();
  y[threadIdx.x] = sums[threadIdx.x];
}

/// Work before it has failed by then: the launch that says so is not to blame.
TEST_F(FakeCudaFinds, WhichLaunchFailed) {
  const Array x = numbers(4), square = x.reshaped({2, 2});
  const ContractionSpec spec = ContractionSpec::parse("mk,nk->mn");
  contract(context_, spec, square, square, DType::kFloat32);
  const std::vector<std::function<void()>> launches = {
      [&] { add(context_, x, x); }, [&] { contract(context_, spec, square, square, DType::kFloat32); }};
  for (const std::function<void()>& launch : launches) {
    fake_cuda::fail_next(cudaErrorIllegalAddress);
    add(context_, x, x);
    cudaStreamSynchronize(cuda::stream_of(context_));
    const std::string said = error_of(launch);
    EXPECT_NE(said.find("CUDA failed in work between operations, or beside it (JIGSAW_CUDA_SYNC=1"),
              std::string::npos)
        << said;
    fake_cuda::fail_next(cudaSuccess);
  }
}

/// Communication goes before computation, so that it begins while kernels run that fill the device, and what
/// somebody waits for goes before what nobody waits for yet.
TEST_F(FakeCudaFinds, StreamsGoBeforeOthers) {
  const auto priority_of = [&](Stream stream) {
    const StreamScope here(context_, stream);
    int priority = 1;
    EXPECT_EQ(cudaStreamGetPriority(cuda::stream_of(context_), &priority), cudaSuccess);
    return priority;
  };
  EXPECT_LT(priority_of(Stream::kCommunication), priority_of(Stream::kBackground));
  EXPECT_LT(priority_of(Stream::kBackground), priority_of(Stream::kCompute));
  EXPECT_EQ(priority_of(Stream::kUpload), priority_of(Stream::kCompute));
}

/// A list of copies is one kernel, and its table is on the device after the first.
TEST_F(FakeCudaFinds, OneKernelForManyBoxes) {
  const Array x = numbers(60);
  Array y = numbers(66), sum = numbers(60);
  BoxTable moves, sums;
  for (std::int64_t i = 0; i < 5; ++i) {
    moves.copy(0, {0, {6, 10}, {{0, 2 * i}, {6, 2}}}, {12 * i, {6, 2}, {{0, 0}, {6, 2}}});
    sums.copy(0, {0, {6, 10}, {{i, i}, {1, 2}}}, {0, {6, 10}, {{3, 4}, {1, 2}}});
  }
  moves.clear(60, {6});
  sums.clear(0, {6, 10});
  const auto kernels = [&](const BoxTable& table, Array& target) {
    context_.runtime()->synchronise(Stream::kCompute);
    const std::int64_t before = fake_cuda::kernels_run();
    copy_boxes(context_, table, std::span(&x, 1), target);
    context_.runtime()->synchronise(Stream::kCompute);
    return fake_cuda::kernels_run() - before;
  };
  EXPECT_EQ(kernels(moves, y), 1);
  EXPECT_EQ(kernels(sums, sum), 1);
  const std::int64_t tables = context_.arena().current_bytes(Purpose::kWorkspace);
  EXPECT_EQ(kernels(moves, y), 1);
  EXPECT_EQ(kernels(BoxTable(sums), sum), 1);
  EXPECT_EQ(context_.arena().current_bytes(Purpose::kWorkspace), tables);
  EXPECT_EQ(values_of(y)[13], 3);
  EXPECT_EQ(values_of(y)[65], 0);
  EXPECT_EQ(values_of(sum)[34], 0 + 11 + 22 + 33 + 44);
}

/// Where the host gives no more it waits until the oldest block was read, and not for work behind that.
TEST_F(FakeCudaFinds, NoWaitForWorkBehindABlock) {
  constexpr std::int64_t kBlock = cuda::PinnedRing::kBlockBytes / sizeof(float);
  Context host = Context::make_host(Backend::kReference, 1);
  const Array x = numbers(3);  // by way of a block that is filled on
  context_.runtime()->synchronise(Stream::kCompute);
  fake_cuda::machine().pinned = fake_cuda::pinned_bytes() + cuda::PinnedRing::kBlockBytes;
  const Array ones = filled(host, {kBlock}, DType::kFloat32, 1.0, Purpose::kWorkspace);
  const Array first = upload(context_, ones);
  const Array sum = add(context_, x, x);
  const std::int64_t run = fake_cuda::kernels_run();
  const Array second = upload(context_, ones);
  EXPECT_EQ(fake_cuda::kernels_run(), run);
  for (const Array& up : {first, second}) EXPECT_EQ(values_of(up), std::vector<double>(kBlock, 1.0));
  EXPECT_EQ(values_of(sum), (std::vector<double>{0, 2, 4}));
}

/// Of however many parameters: one kernel updates them, three add up the squares of their gradients. Which
/// elements are whose goes up once.
TEST_F(FakeCudaFinds, AKernelMoreForAParameterMore) {
  constexpr std::int64_t kRuns = 60, kEach = 700;
  std::vector<TrainedRun> runs;
  for (std::int64_t i = 0; i < kRuns; ++i) runs.push_back({i * kEach, kEach, 1e-3, 0.1});
  Array p = numbers(kRuns * kEach), m = numbers(kRuns * kEach), v = numbers(kRuns * kEach);
  const Array gradient = numbers(kRuns * kEach);
  Array sum = filled(context_, {1}, DType::kFloat64, 0.0);
  std::int64_t held = 0;
  for (int step = 1; step <= 2; ++step) {
    context_.runtime()->synchronise(Stream::kCompute);
    const std::int64_t run = fake_cuda::kernels_run();
    add_squares_of_runs(context_, runs, gradient, sum);
    context_.runtime()->synchronise(Stream::kCompute);
    EXPECT_EQ(fake_cuda::kernels_run(), run + 3);
    adamw(context_, {}, runs, filled(context_, {UpdateNumbers::kKinds}, DType::kFloat64, 1.0), p, gradient, m,
          v);
    context_.runtime()->synchronise(Stream::kCompute);
    EXPECT_EQ(fake_cuda::kernels_run(), run + 5);  // one fills the numbers
    const std::int64_t before = std::exchange(held, context_.arena().current_bytes(Purpose::kWorkspace));
    EXPECT_TRUE(step == 1 || held == before) << held << " bytes after " << before;
  }
}

/// Each order gives other numbers, and where accesses are seen every one of them is told.
TEST_F(FakeCudaFinds, AMissingBarrier) {
  constexpr unsigned kBlocks = 3;
  std::vector<double> wanted(kBlocks * kThreads);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    wanted[i] = static_cast<double>(i / kThreads * kThreads + kThreads - 1 - i % kThreads);
  for (const fake_cuda::Order order :
       {fake_cuda::Order::kForward, fake_cuda::Order::kBackward, fake_cuda::Order::kShuffled}) {
    fake_cuda::set_order(order);
    for (const bool waits : {true, false}) {
      Array x = numbers(kBlocks * kThreads);
      start(kBlocks, turn_round, x.data<float>(), waits);
      const std::string said = error_of([&] { EXPECT_EQ(values_of(x) == wanted, waits); });
      if (waits || !fake_cuda::sees_accesses()) {
        EXPECT_EQ(said, "");
        continue;
      }
      // The first thread reads what another one has written by then, or will.
      const bool written =
          said.find(" in shared memory, without a barrier between them") != std::string::npos;
      const bool to_be =
          said.find(" reads shared memory that no thread of its block has written") != std::string::npos;
      EXPECT_TRUE(written || to_be) << said;
      EXPECT_NE(said.find("kernel void (float*, bool)"), std::string::npos) << said;
      fake_cuda::fail_next(cudaSuccess);
    }
  }
}

TEST_F(FakeCudaFinds, ThreadsWithoutAnOrder) {
  if (!fake_cuda::sees_accesses()) GTEST_SKIP() << "a sanitizer is in the hooks' place";
  const auto said = [&](Fault fault) {
    Array x = numbers(2 * kThreads);
    start(2, commit, fault, x.data<float>());
    const std::string found = error_of([&] { context_.runtime()->synchronise(Stream::kCompute); });
    fake_cuda::fail_next(cudaSuccess);
    return found;
  };
  EXPECT_EQ(said(Fault::kNone), "");
  EXPECT_NE(said(Fault::kTwoBlocksWrite).find(": two of its blocks write the same memory"),
            std::string::npos);
  EXPECT_NE(said(Fault::kABlockReads).find(": one of its blocks reads what another one writes"),
            std::string::npos);
  EXPECT_NE(said(Fault::kNobodyWrote).find(" reads shared memory that no thread of its block has written"),
            std::string::npos);
  const std::string beyond = said(Fault::kBeyond);
  EXPECT_NE(beyond.find("'float [64]' with "), std::string::npos) << beyond;
  EXPECT_NE(beyond.find("fake_cuda_test.cpp:"), std::string::npos) << beyond;
}

TEST_F(FakeCudaFinds, ABarrierThatSomeThreadsMiss) {
  start(1, leave_others_waiting);
  EXPECT_THROW(context_.runtime()->synchronise(Stream::kCompute), Error);
}

TEST_F(FakeCudaFinds, AccessFromTheHost) {
  Array x = numbers(3);
  context_.runtime()->synchronise(Stream::kCompute);
  EXPECT_DEATH({ EXPECT_EQ(x.data<float>()[0], 1); }, "");
  EXPECT_DEATH({ x.data<float>()[0] = 1; }, "");
}

/// Numbers of one stream that another reads: what is missing is said whichever of the two runs first, by
/// name, and alike each time.
TEST_F(FakeCudaFinds, WorkWithoutAnOrder) {
  if (!fake_cuda::sees_accesses()) GTEST_SKIP() << "a sanitizer is in the hooks' place";
  const auto said = [&](bool waits, Stream first) {
    Array sent(context_, {3}, DType::kFloat32);
    const Array summand = numbers(3), x = add(context_, summand, summand);
    const DeviceRuntime::Ticket there = context_.runtime()->ticket(Stream::kCompute);
    if (waits) context_.runtime()->wait(Stream::kCommunication, there);
    context_.set_stream(Stream::kCommunication);
    copy_elements(context_, x, 0, sent, 0, 3);
    context_.set_stream(Stream::kCompute);
    const Stream second = first == Stream::kCompute ? Stream::kCommunication : Stream::kCompute;
    return error_of([&] {
      context_.runtime()->synchronise(first);
      context_.runtime()->synchronise(second);
      EXPECT_EQ(values_of(sent), (std::vector<double>{0, 2, 4}));
    });
  };
  for (const Stream first : {Stream::kCompute, Stream::kCommunication}) {
    EXPECT_EQ(said(true, first), "");
    const std::string found = said(false, first);
    EXPECT_NE(found.find("kernel void (long, "), std::string::npos) << found;
    EXPECT_NE(found.find(" writes what a copy of 12 bytes within the device in stream "), std::string::npos)
        << found;
    EXPECT_NE(found.find(" reads, and neither waits for the other"), std::string::npos) << found;
    fake_cuda::fail_next(cudaSuccess);
    EXPECT_EQ(said(false, first), found);
    fake_cuda::fail_next(cudaSuccess);
  }
}

/// The kernel ends there, as on a GPU, and who did what is said alike each time.
TEST_F(FakeCudaFinds, MisalignedWords) {
  if (!fake_cuda::sees_accesses()) GTEST_SKIP() << "a sanitizer is in the hooks' place";
  const Array x = numbers(4 * kThreads + 4);
  const auto said = [&](std::int64_t first) {
    Array y(context_, {kThreads}, DType::kFloat32);
    start(1, sum_words, x.slice(first, {4 * kThreads}).data<float>(), y.data<float>());
    return error_of([&] {
      const auto of = static_cast<double>(4 * first);
      EXPECT_EQ(values_of(y)[3], 4 * 12 + of + 6);
    });
  };
  EXPECT_EQ(said(0), "");
  for (const std::int64_t first : {1, 2, 3}) {
    const std::string found = said(first);
    EXPECT_NE(found.find("kernel void (float const*, float*) touches "), std::string::npos) << found;
    EXPECT_NE(found.find("Words' at no multiple of 16 bytes ("), std::string::npos) << found;
    EXPECT_NE(found.find("fake_cuda_test.cpp:"), std::string::npos) << found;
    fake_cuda::fail_next(cudaSuccess);
    EXPECT_EQ(said(0), "") << "the next kernel";
  }
  EXPECT_EQ(said(4), "");
}

/// Events are used again, and an old ticket still orders two streams.
TEST_F(FakeCudaFinds, NoMoreEventsThanAreInUse) {
  DeviceRuntime& runtime = *context_.runtime();
  const auto many = [&] {
    for (int i = 0; i < 5000; ++i) runtime.ticket(Stream::kCompute);
  };
  const Array summand = numbers(3), x = add(context_, summand, summand);
  const std::int64_t before = fake_cuda::events_made();
  const DeviceRuntime::Ticket there = runtime.ticket(Stream::kCompute);
  many();
  const std::int64_t made = fake_cuda::events_made();
  EXPECT_LE(made - before, 4096);
  many();
  EXPECT_EQ(fake_cuda::events_made(), made);
  Array sent(context_, {3}, DType::kFloat32);
  runtime.wait(Stream::kCommunication, there);
  context_.set_stream(Stream::kCommunication);
  copy_elements(context_, x, 0, sent, 0, 3);
  context_.set_stream(Stream::kCompute);
  runtime.synchronise(Stream::kCommunication);
  EXPECT_EQ(values_of(sent), (std::vector<double>{0, 2, 4}));
}

/// Its memory goes with it, so that what is in its streams comes first. What waits for ranks that are gone is
/// given up, and all that it may use left.
TEST_F(FakeCudaFinds, AContextThatEndsUnderItsWork) {
  int count = 0;
  const auto start_and_end = [&] {
    Context context = testing::kernel_context(Backend::kCuda, 1);
    testing::cuda_test_runtime() = context_;  // nothing else holds the new one
    cudaLaunchConfig_t configuration{};
    configuration.gridDim = dim3(1);
    configuration.blockDim = dim3(kThreads);
    configuration.stream = cuda::stream_of(context);
    cuda::check(cudaLaunchKernelEx(&configuration, count_one, &count), "start a kernel");
    EXPECT_EQ(count, 0);
    return fake_cuda::put_when_ready(cuda::stream_of(context), "what never comes", [] { return false; });
  };
  EXPECT_EQ(start_and_end(), cudaSuccess);
  EXPECT_EQ(count, 1);
  fake_cuda::forget_work();
}

/// The device says how long it stood still for transfers, each time that work runs which waits for them.
TEST_F(FakeCudaFinds, HowLongItStandsStill) {
  DeviceRuntime& runtime = *context_.runtime();
  const auto transfer = [&] {
    runtime.wait(Stream::kCommunication, runtime.ticket(Stream::kCompute));
    context_.set_stream(Stream::kCommunication);
    start(1, take_a_while);
    context_.set_stream(Stream::kCompute);
    return runtime.ticket(Stream::kCommunication);
  };
  const auto transfer_and_wait = [&] { runtime.wait(Stream::kCompute, transfer()); };
  const auto stalled = [&](const std::function<void()>& work) {
    work();
    runtime.synchronise(Stream::kCompute);
    return runtime.take_stalled_seconds();
  };
  constexpr double kSeconds = 0.02;
  EXPECT_GE(stalled(transfer_and_wait), kSeconds);
  EXPECT_EQ(stalled([&] { runtime.wait(Stream::kCommunication, runtime.ticket(Stream::kCompute)); }), 0);
  runtime.begin_recording();
  transfer_and_wait();
  const auto recording = runtime.end_recording();
  for (int i = 0; i < 2; ++i) EXPECT_GE(stalled([&] { runtime.replay(*recording); }), kSeconds);
  EXPECT_EQ(runtime.take_stalled_seconds(), 0);
  // Waited for in the next recording, as sums of gradients are: that comes behind all of the first one.
  runtime.begin_recording();
  const DeviceRuntime::Ticket there = transfer();
  const auto first = runtime.end_recording();
  runtime.replay(*first);
  runtime.begin_recording();
  runtime.wait(Stream::kCompute, there);
  const auto second = runtime.end_recording();
  for (int i = 0; i < 2; ++i) {
    EXPECT_GE(stalled([&] {
                if (i > 0) runtime.replay(*first);
                runtime.replay(*second);
              }),
              kSeconds);
  }
}

/// Any thread can ask how far a stream has come, and needs nothing of the device for it.
TEST_F(FakeCudaFinds, MilestonesThatAStreamHasPassed) {
  DeviceRuntime& runtime = *context_.runtime();
  const Milestone first = runtime.milestone(Stream::kCompute), other = runtime.milestone(Stream::kUpload);
  runtime.synchronise(Stream::kCompute);
  const Milestone second = runtime.milestone(Stream::kCompute);
  std::thread([&] {
    EXPECT_TRUE(first.passed());
    EXPECT_FALSE(second.passed());
    EXPECT_FALSE(other.passed());
  }).join();
  runtime.synchronise(Stream::kCompute);
  EXPECT_TRUE(second.passed());
  EXPECT_FALSE(other.passed());
  EXPECT_TRUE(Milestone().passed());
}

/// Those within recorded work are passed once in each replay.
TEST_F(FakeCudaFinds, MilestonesOfEachReplay) {
  DeviceRuntime& runtime = *context_.runtime();
  runtime.begin_recording();
  start(1, take_a_while);
  const Milestone recorded = runtime.milestone(Stream::kCompute);
  const auto recording = runtime.end_recording();
  for (int i = 0; i < 3; ++i) {
    runtime.replay(*recording);
    const Milestone here = runtime.again(recorded, *recording);
    EXPECT_FALSE(here.passed()) << i;
    runtime.synchronise(Stream::kCompute);
    EXPECT_TRUE(here.passed()) << i;
  }
}

/// A replay comes behind what other streams were given before it, also where no work in it waits for that.
TEST_F(FakeCudaFinds, AReplayBehindWorkOfOtherStreams) {
  DeviceRuntime& runtime = *context_.runtime();
  Array x = numbers(3), sum = numbers(3);
  const Array step = filled(context_, {3}, DType::kFloat32, 1.0, Purpose::kWorkspace);
  runtime.synchronise(Stream::kCompute);
  runtime.begin_recording();
  accumulate(context_, sum, x);
  const auto recording = runtime.end_recording();
  for (const Stream stream : {Stream::kCommunication, Stream::kBackground}) {
    runtime.wait(stream, runtime.ticket(Stream::kCompute));
    context_.set_stream(stream);
    accumulate(context_, x, step);
    context_.set_stream(Stream::kCompute);
    runtime.replay(*recording);
  }
  EXPECT_EQ(values_of(sum), (std::vector<double>{0 + 1 + 2, 1 + 2 + 3, 2 + 3 + 4}));
}

/// An array goes back to the arena while another stream still reads it, and its memory becomes another's.
TEST_F(FakeCudaFinds, ABlockThatIsFreedTooEarly) {
  for (const bool waits : {true, false}) {
    Array sent(context_, {3}, DType::kFloat32);
    std::optional<Array> x = numbers(3);
    context_.runtime()->synchronise(Stream::kCompute);
    const void* const before = x->identity();
    context_.set_stream(Stream::kCommunication);
    copy_elements(context_, *x, 0, sent, 0, 3);
    const DeviceRuntime::Ticket read = context_.runtime()->ticket(Stream::kCommunication);
    context_.set_stream(Stream::kCompute);
    x.reset();
    if (waits) context_.runtime()->wait(Stream::kCompute, read);
    const std::string found = error_of([&] {
      const Array other = numbers(3);
      EXPECT_EQ(other.identity(), before);
      context_.runtime()->synchronise(Stream::kCompute);
      context_.runtime()->synchronise(Stream::kCommunication);
    });
    EXPECT_EQ(found.find("a copy of 12 bytes within the device") == std::string::npos, waits) << found;
    EXPECT_EQ(found.find("reads what a copy of 12 bytes to the device") == std::string::npos, waits) << found;
    fake_cuda::fail_next(cudaSuccess);
  }
}

/// The workspace of a product is given to another before it has run.
TEST_F(FakeCudaFinds, AWorkspaceOfTwoProductsWithoutAnOrder) {
  const ContractionSpec spec = ContractionSpec::parse("mk,nk->mn");
  const Array square = numbers(4).reshaped({2, 2});
  context_.runtime()->synchronise(Stream::kCompute);
  for (const bool waits : {true, false}) {
    const Array first = contract(context_, spec, square, square, DType::kFloat32);
    const DeviceRuntime::Ticket there = context_.runtime()->ticket(Stream::kCompute);
    if (waits) context_.runtime()->wait(Stream::kCommunication, there);
    context_.set_stream(Stream::kCommunication);
    const Array second = contract(context_, spec, square, square, DType::kFloat32);
    context_.set_stream(Stream::kCompute);
    const std::string found = error_of([&] {
      context_.runtime()->synchronise(Stream::kCommunication);
      context_.runtime()->synchronise(Stream::kCompute);
    });
    EXPECT_EQ(found.find(" writes what a product of 2 x 2 numbers in stream ") == std::string::npos, waits)
        << found;
    fake_cuda::fail_next(cudaSuccess);
  }
}

}  // namespace
}  // namespace jigsaw
