// Each mistake that the fake NCCL knows, made once: two ranks that one thread plays.
#include "support/fake_nccl/fake_nccl.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <utility>

#include "array/raw_memory.h"
#include "array/transfer.h"
#include "comm/comm_cases.h"
#include "kernels/cuda/error.h"
#include "kernels/cuda_context.h"
#include "support/error_of.h"
#include "support/fake_cuda/fake_cuda.h"

namespace jigsaw {
namespace fake_nccl_test {

using testing::fake_nccl::take_mistakes;

/// A rank of one or two communicators, with its memory.
struct Rank {
  int number;
  Context context = make_cuda_context(number);
  ncclComm_t first = nullptr, second = nullptr;
  Array memory = make_array<float>(context, 8, [this](auto i) { return exact_value(number, i); });
  Array received{context, {8}, DType::kFloat32};

  explicit Rank(int rank) : number(rank) {}
  cudaStream_t stream() const { return kernels::cuda::stream_of(context); }
  ncclResult_t send(int peer, std::size_t count = 8) {
    return ncclSend(memory.raw(), count, ncclFloat32, peer, first, stream());
  }
  ncclResult_t receive(int peer, std::size_t count = 8) {
    return ncclRecv(received.raw(), count, ncclFloat32, peer, first, stream());
  }
  ncclResult_t gather(ncclComm_t comm) {
    return ncclAllGather(memory.raw(), received.raw(), 4, ncclFloat32, comm, stream());
  }
  std::vector<double> values() { return download_values(context, received); }
};

class FakeNccl : public ::testing::Test {
 protected:
  FakeNccl() {
    testing::fake_cuda::machine().devices = 2;
    testing::fake_nccl::start_anew();
    ranks_.push_back(std::make_unique<Rank>(0));
    ranks_.push_back(std::make_unique<Rank>(1));
    for (const auto& rank : ranks_) rank->context.runtime()->synchronise(Stream::kCompute);
    join(&Rank::first);
    join(&Rank::second);
  }
  /// Work without an order is made here on purpose.
  ~FakeNccl() override { testing::fake_cuda::fail_next(cudaSuccess); }
  void join(ncclComm_t Rank::*comm) {
    ncclUniqueId id{};
    ncclGetUniqueId(&id);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    for (const auto& rank : ranks_) {
      cudaSetDevice(rank->number);
      EXPECT_EQ(ncclCommInitRankConfig(&((*rank).*comm), 2, id, rank->number, &config), ncclInProgress);
      EXPECT_EQ(state((*rank).*comm), rank->number == 0 ? ncclInProgress : ncclSuccess);
    }
  }
  /// Also puts what was issued into its stream.
  static ncclResult_t state(ncclComm_t comm) {
    ncclResult_t error = ncclSuccess;
    ncclCommGetAsyncError(comm, &error);
    return error;
  }
  void settle() {
    for (const auto& rank : ranks_) {
      EXPECT_EQ(state(rank->first), ncclSuccess);
      EXPECT_EQ(state(rank->second), ncclSuccess);
    }
  }
  static void expect_mistake(const std::string& part) {
    const std::vector<std::string> all = take_mistakes();
    ASSERT_FALSE(all.empty()) << part;
    EXPECT_NE(all.front().find(part), std::string::npos) << all.front();
  }

  Rank& a() { return *ranks_[0]; }
  Rank& b() { return *ranks_[1]; }
  std::vector<std::unique_ptr<Rank>> ranks_;
};

TEST_F(FakeNccl, CarriesMessagesBothWays) {
  for (const auto& rank : ranks_) {
    ncclGroupStart();
    rank->send(1 - rank->number);
    rank->receive(1 - rank->number);
    EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
  }
  settle();
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(a().values()[i], exact_value(1, static_cast<std::int64_t>(i)));
    EXPECT_EQ(b().values()[i], exact_value(0, static_cast<std::int64_t>(i)));
  }
  for (const auto& rank : ranks_) ncclCommFinalize(rank->first);
  for (const auto& rank : ranks_) EXPECT_EQ(state(rank->first), ncclSuccess);
  cudaSetDevice(1);
  EXPECT_EQ(ncclCommDestroy(b().first), ncclSuccess);
  EXPECT_TRUE(take_mistakes().empty());
  EXPECT_EQ(ncclCommDestroy(a().first), ncclSuccess);
  expect_mistake("in a thread with another device");
}

TEST_F(FakeNccl, CountsThatDifferAreAMistake) {
  a().send(1, 8);
  EXPECT_EQ(b().receive(0, 7), ncclInvalidUsage);
  expect_mistake("rank 0 sends 8 elements to rank 1, which expects 7");
}

TEST_F(FakeNccl, AMessageThatNobodyExpectsIsAMistake) {
  a().send(1);
  settle();
  ncclCommFinalize(b().first);
  expect_mistake("a message from rank 0 to rank 1 is sent by one of them alone");
  EXPECT_EQ(state(a().first), ncclRemoteError);
}

TEST_F(FakeNccl, AnOrderThatDiffersIsAMistake) {
  a().gather(a().first);
  a().gather(a().second);
  EXPECT_TRUE(take_mistakes().empty());
  EXPECT_EQ(b().gather(b().second), ncclInvalidUsage);
  expect_mistake("rank 1 calls its communicators in another order than its peer 0");
}

/// Rank 1 goes on without waiting, on another stream, while rank 0 has begun to take what it sends.
TEST_F(FakeNccl, MemoryThatIsWrittenWhileItIsSentIsAMistake) {
  b().send(0);
  a().receive(1);
  settle();
  EXPECT_EQ(a().values()[3], exact_value(1, 3));
  b().context.set_stream(Stream::kUpload);
  write_values(b().context, b().memory, std::vector<double>(8, -1.0));
  b().context.runtime()->synchronise(Stream::kUpload);
  b().context.set_stream(Stream::kCompute);
  const std::string error = testing::error_of([&] { b().context.runtime()->synchronise(Stream::kCompute); });
  EXPECT_NE(error.find("rank 1 writes memory while it is sent to rank 0"), std::string::npos) << error;
  expect_mistake("rank 1 writes memory while it is sent");
}

/// The same of memory that something comes into.
TEST_F(FakeNccl, MemoryThatIsWrittenWhileItReceivesIsAMistake) {
  for (const auto& rank : ranks_) {
    ncclGroupStart();
    rank->send(1 - rank->number);
    rank->receive(1 - rank->number);
    ncclGroupEnd();
  }
  settle();
  a().values();
  b().context.set_stream(Stream::kUpload);
  EXPECT_TRUE(std::isnan(b().values()[0])) << "nobody has waited for it";
  write_values(b().context, b().received, std::vector<double>(8, -1.0));
  b().context.runtime()->synchronise(Stream::kUpload);
  b().context.set_stream(Stream::kCompute);
  const std::string error = testing::error_of([&] { b().context.runtime()->synchronise(Stream::kCompute); });
  EXPECT_NE(error.find("rank 1 writes memory into which rank 0 sends"), std::string::npos) << error;
  take_mistakes();
}

/// What is issued stands in its stream only after it was asked for.
TEST_F(FakeNccl, WorkThatWasNotSettledHasNotRun) {
  a().gather(a().first);
  b().gather(b().first);
  a().context.runtime()->synchronise(Stream::kCompute);
  EXPECT_TRUE(std::isnan(a().values()[0]));
  settle();
  EXPECT_EQ(a().values()[0], exact_value(0, 0));
}

TEST_F(FakeNccl, ADeviceThatTwoRanksShareIsRefused) {
  ncclUniqueId id{};
  ncclGetUniqueId(&id);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  cudaSetDevice(0);
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, id, 0, &config), ncclInProgress);
  EXPECT_EQ(ncclSend(a().memory.raw(), 1, ncclFloat32, 1, comm, a().stream()), ncclInvalidUsage);
  expect_mistake("used before all ranks have joined");
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, id, 1, &config), ncclInvalidUsage);
  EXPECT_NE(std::string(ncclGetLastError(comm)).find("duplicate GPU"), std::string::npos);
}

TEST_F(FakeNccl, ACommunicatorGoesWithItsWorkDone) {
  a().gather(a().first);
  b().gather(b().first);
  settle();
  EXPECT_EQ(ncclCommDestroy(a().first), ncclInvalidUsage);
  expect_mistake("was not finalised");
  ncclCommFinalize(a().first);
  expect_mistake("rank 0 ends a communicator with work under way");
}

/// What ranks call while their streams capture comes anew with each launch.
class FakeNcclGraphs : public FakeNccl {
 protected:
  ~FakeNcclGraphs() override { destroy_graphs(); }
  void destroy_graphs() {
    for (cudaGraphExec_t& exec : execs_) cudaGraphExecDestroy(std::exchange(exec, nullptr));
  }

  template <typename F>
  void capture(Rank& rank, const F& work) {
    cudaStream_t stream = rank.stream();
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
    work(rank);
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess) << testing::fake_cuda::capture_fault();
    cudaGraphInstantiate(&execs_[rank.number], graph, 0);
    cudaGraphDestroy(graph);
  }
  void replay(Rank& rank) { EXPECT_EQ(cudaGraphLaunch(execs_[rank.number], rank.stream()), cudaSuccess); }
  /// Numbers of both ranks in a step.
  void write(int step) {
    for (const auto& rank : ranks_) {
      std::vector<double> values;
      for (std::int64_t i = 0; i < 8; ++i) values.push_back(value(rank->number, step, i));
      write_values(rank->context, rank->memory, values);
      rank->context.runtime()->synchronise(Stream::kCompute);
    }
  }
  static double value(int rank, int step, std::int64_t i) { return exact_value(rank + 2 * step, i); }
  static void change_places(Rank& rank) {
    ncclGroupStart();
    rank.send(1 - rank.number);
    rank.receive(1 - rank.number);
    EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
    EXPECT_EQ(state(rank.first), ncclSuccess);
  }
  void expect_places_changed(int step) {
    for (const auto& rank : ranks_) {
      const std::vector<double> found = rank->values();
      for (std::int64_t i = 0; i < 8; ++i)
        EXPECT_EQ(found[static_cast<std::size_t>(i)], value(1 - rank->number, step, i)) << step;
    }
  }

  cudaGraphExec_t execs_[2] = {};
};

TEST_F(FakeNcclGraphs, ReplaysCarryNewNumbers) {
  const Array gathered[] = {{a().context, {8}, DType::kFloat32}, {b().context, {8}, DType::kFloat32}};
  for (const auto& rank : ranks_) {
    capture(*rank, [&](Rank& self) {
      EXPECT_EQ(self.gather(self.second), ncclInProgress);
      EXPECT_EQ(state(self.second), ncclSuccess);
      cudaMemcpyAsync(const_cast<std::byte*>(gathered[self.number].raw()), self.received.raw(), 32,
                      cudaMemcpyDeviceToDevice, self.stream());
      change_places(self);
    });
  }
  testing::fake_nccl::take_work();
  for (int step = 0; step < 3; ++step) {
    write(step);
    for (const auto& rank : ranks_) replay(*rank);
    EXPECT_EQ(testing::fake_nccl::take_work().launches, 0);
    expect_places_changed(step);
    for (const auto& rank : ranks_) {
      const std::vector<double> found = download_values(rank->context, gathered[rank->number]);
      for (std::int64_t i = 0; i < 8; ++i)
        EXPECT_EQ(found[static_cast<std::size_t>(i)], value(i < 4 ? 0 : 1, step, i % 4)) << step;
    }
    const testing::fake_nccl::Work work = testing::fake_nccl::take_work();
    EXPECT_EQ(work.messages, 2);
    EXPECT_EQ(work.collectives, 2);
  }
  EXPECT_TRUE(take_mistakes().empty());
}

/// A peer cannot tell, whether it is in a graph or not.
TEST_F(FakeNcclGraphs, OneRankReplaysBesidesPlainCalls) {
  capture(a(), change_places);
  for (int step = 0; step < 3; ++step) {
    write(step);
    replay(a());
    change_places(b());
    expect_places_changed(step);
    write(step + 1);
    for (const auto& rank : ranks_) change_places(*rank);
    expect_places_changed(step + 1);
  }
  EXPECT_TRUE(take_mistakes().empty());
}

TEST_F(FakeNcclGraphs, AnOrderThatDiffersIsAMistakeOfTheReplay) {
  for (const auto& rank : ranks_) {
    capture(*rank, [](Rank& self) {
      for (ncclComm_t comm :
           self.number == 0 ? std::array{self.first, self.second} : std::array{self.second, self.first}) {
        self.gather(comm);
        EXPECT_EQ(state(comm), ncclSuccess);
      }
    });
  }
  replay(a());
  EXPECT_TRUE(take_mistakes().empty());
  replay(b());
  expect_mistake("rank 1 calls its communicators in another order than its peer 0");
}

/// Its stream for communication begins to send before the numbers are there.
TEST_F(FakeNcclGraphs, AMissingWaitBeforeACall) {
  for (const auto& rank : ranks_) {
    capture(*rank, [](Rank& self) {
      DeviceRuntime& runtime = *self.context.runtime();
      const DeviceRuntime::Ticket early = runtime.ticket(Stream::kCompute);
      cudaMemsetAsync(self.memory.raw(), 0, 32, self.stream());
      runtime.wait(Stream::kCommunication, self.number == 0 ? early : runtime.ticket(Stream::kCompute));
      self.context.set_stream(Stream::kCommunication);
      change_places(self);
      self.context.set_stream(Stream::kCompute);
      runtime.wait(Stream::kCompute, runtime.ticket(Stream::kCommunication));
    });
  }
  for (const auto& rank : ranks_) replay(*rank);
  const std::string error = testing::error_of([&] {
    for (const auto& rank : ranks_) rank->context.runtime()->synchronise(Stream::kCompute);
  });
  EXPECT_NE(error.find("clearing 32 bytes in stream "), std::string::npos) << error;
  EXPECT_NE(error.find(" writes what a launch of NCCL on rank 0 in stream "), std::string::npos) << error;
}

/// NCCL waits for the graphs.
TEST_F(FakeNcclGraphs, AGraphThatOutlivesItsCommunicatorIsAMistake) {
  for (const auto& rank : ranks_) capture(*rank, change_places);
  ncclCommFinalize(a().first);
  expect_mistake("rank 0 ends a communicator that a graph calls");
  destroy_graphs();
  ncclCommFinalize(b().first);
  EXPECT_TRUE(take_mistakes().empty());
}

TEST_F(FakeNcclGraphs, ACaptureThatEndsBeforeItsCallsAreRecordedIsAMistake) {
  capture(a(), [](Rank& self) { self.gather(self.first); });
  EXPECT_EQ(state(a().first), ncclSuccess);
  expect_mistake("rank 0 ends a capture before what was called in it is recorded");
}

}  // namespace fake_nccl_test
}  // namespace jigsaw
