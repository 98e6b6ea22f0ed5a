// Aborts that wait for others, or for ever: failures are told, and the process goes on.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "comm/comm_cases.h"
#include "comm/nccl/ranks_nccl.h"
#include "nccl/group.h"
#include "support/fake_cuda/fake_cuda.h"
#include "support/fake_nccl/fake_nccl.h"

namespace jigsaw {
namespace nccl_abort_test {

using testing::fake_nccl::Aborts;
using testing::fake_nccl::set_aborts;
using testing::fake_nccl::take_mistakes;

constexpr std::int64_t kCount = 3000;
constexpr double kNever = 3600;  // longer than tests may take

class NcclAbort : public ::testing::Test {
 protected:
  ~NcclAbort() override { set_aborts(Aborts::kAtOnce); }

  /// What a run of three ranks ends with.
  static std::string error_of_run(double most_abort_seconds, const std::function<void(Communicator&)>& body) {
    return within_a_minute([&] {
      try {
        run_nccl_ranks(3, {.poll_seconds = 0.02, .most_abort_seconds = most_abort_seconds}, body);
      } catch (const Error& error) {
        return std::string(error.what());
      }
      return std::string("no error");
    });
  }
  /// What hangs is let go after a minute.
  static std::string within_a_minute(const std::function<std::string()>& work) {
    auto done = std::async(std::launch::async, work);
    if (done.wait_for(std::chrono::minutes(1)) == std::future_status::timeout) {
      ADD_FAILURE() << "an abort that does not come back keeps the job";
      set_aborts(Aborts::kAtOnce);
    }
    return done.get();
  }
  static void add(Communicator& comm) {
    const Array send = make_array<float>(comm.context(), kCount, [](auto i) { return exact_value(1, i); });
    Pending background =
        comm.start_all_reduce(send, ReduceOp::kSum, Purpose::kGradients, Urgency::kBackground);
    to_vector<float>(comm, comm.all_reduce(send));
    to_vector<float>(comm, background.wait());
  }
  static void expect_no_mistaken_abort() {
    for (const std::string& mistake : take_mistakes())
      EXPECT_EQ(mistake.find("abort"), std::string::npos) << mistake;
  }
  /// The next job of the process has nothing of the one before.
  static void expect_to_go_on() {
    EXPECT_EQ(error_of_run(kNever,
                           [](Communicator& comm) {
                             const Array send = make_array<float>(
                                 comm.context(), kCount, [&](auto i) { return rough_value(comm.rank(), i); });
                             EXPECT_TRUE(same_bits(to_vector<float>(comm, comm.all_reduce(send)),
                                                   reference_sum<float>(3, kCount)));
                           }),
              "no error");
    EXPECT_EQ(take_mistakes(), std::vector<std::string>());
  }
};

/// The network of one breaks, while the rank has others on its device.
TEST_F(NcclAbort, CommunicatorsAreAbortedTogether) {
  const std::string error = error_of_run(kNever, [](Communicator& comm) {
    const auto group = comm.split("pair", [](int rank) { return std::pair(0, rank); });
    add(comm);
    add(*group);
    comm.barrier();
    if (comm.rank() == 0) {
      set_aborts(Aborts::kTogether);
      testing::fake_nccl::fail_next_work(2);
    }
    comm.barrier();
    add(comm);
    add(*group);
    comm.barrier();
  });
  EXPECT_TRUE(error.find("the network broke") != std::string::npos ||
              error.find("has gone") != std::string::npos)
      << error;
  expect_no_mistaken_abort();
  expect_to_go_on();
}

/// The communicators of a rank whose exception passes them go one after the other.
TEST_F(NcclAbort, AnExceptionAbortsAllTogether) {
  const std::string error = error_of_run(kNever, [](Communicator& comm) {
    const auto group = comm.split("pair", [](int rank) { return std::pair(0, rank); });
    add(comm);
    add(*group);
    comm.barrier();
    if (comm.rank() == 0) set_aborts(Aborts::kTogether);
    comm.barrier();
    if (comm.rank() == 2) throw DataError("rank 2 alone found no file");
    add(*group);
    comm.barrier();
  });
  EXPECT_TRUE(error == "rank 2 alone found no file" || error.find("has gone") != std::string::npos) << error;
  expect_no_mistaken_abort();
  expect_to_go_on();
}

/// What fails first says so although its abort never comes back.
TEST_F(NcclAbort, AnAbortThatNeverEndsIsNotWaitedForLong) {
  std::atomic<int> failed = 0;
  const std::string error = error_of_run(0.05, [&](Communicator& comm) {
    add(comm);
    comm.barrier();
    if (comm.rank() == 0) {
      set_aborts(Aborts::kNever);
      testing::fake_nccl::fail_next_work(1);
    }
    comm.barrier();
    try {
      add(comm);
      add(comm);
    } catch (const CommError&) {
      ++failed;
      throw;
    }
  });
  EXPECT_EQ(failed, 3);
  EXPECT_TRUE(error.find("the network broke") != std::string::npos ||
              error.find("has gone") != std::string::npos)
      << error;
  expect_no_mistaken_abort();
  expect_to_go_on();
}

/// While somebody still waits for the abort, calls say what went wrong.
TEST_F(NcclAbort, CallsThrowWhileAnAbortIsUnderWay) {
  const std::string heard = within_a_minute([] {
    std::string said;
    run_nccl_ranks(1, {.groups_of_one = true, .most_abort_seconds = kNever}, [&](Communicator& comm) {
      add(comm);
      set_aborts(Aborts::kNever);
      const std::jthread watchdog([&] { comm.abort(7); });
      try {
        for (;;) add(comm);
      } catch (const CommError& error) {
        said = error.what();
      }
      set_aborts(Aborts::kAtOnce);
    });
    return said;
  });
  EXPECT_EQ(heard, "the job was aborted with exit code 7");
  expect_to_go_on();
}

/// Nor does an orderly end wait for ever.
TEST_F(NcclAbort, AnEndThatNeverComesBackIsNotWaitedForLong) {
  EXPECT_EQ(error_of_run(0.05,
                         [](Communicator& comm) {
                           add(comm);
                           comm.barrier();
                           set_aborts(Aborts::kNever);
                         }),
            "no error");
  EXPECT_EQ(take_mistakes(), std::vector<std::string>());
  expect_to_go_on();
}

/// One of three ranks never asks for the communicator. NCCL, whose thread still stores it then, is done with
/// the abort before the groups are gone, or long after.
TEST_F(NcclAbort, RanksThatConnectAreAborted) {
  constexpr int kRanks = 3, kJoined = 2;
  for (const Aborts aborts : {Aborts::kAtOnce, Aborts::kNever}) {
    testing::fake_cuda::machine().devices = kRanks;
    testing::fake_nccl::start_anew();
    set_aborts(aborts);
    const NcclOptions options{.poll_seconds = 0.02,
                              .most_abort_seconds = aborts == Aborts::kNever ? 0.05 : kNever};
    std::vector<std::shared_ptr<NcclJob>> jobs;
    for (int rank = 0; rank < kJoined; ++rank) {
      cudaSetDevice(rank);
      jobs.push_back(std::make_shared<NcclJob>(options, true));
    }
    cudaSetDevice(0);
    std::promise<std::string> name;
    const std::shared_future<std::string> named = name.get_future().share();
    const auto error_on = [&](int rank) {
      cudaSetDevice(rank);
      NcclGroup group(jobs[static_cast<std::size_t>(rank)], "world", rank, kRanks);
      try {
        group.open([&](std::string text) {
          if (rank == 0) name.set_value(std::move(text));
          return named.get();
        });
      } catch (const CommError& error) {
        return std::string(error.what());
      }
      return std::string("no error");
    };
    std::vector<std::future<std::string>> errors;
    for (int rank = 0; rank < kJoined; ++rank)
      errors.push_back(std::async(std::launch::async, error_on, rank));
    while (testing::fake_nccl::connecting() < kJoined) std::this_thread::yield();
    jobs[0]->abort("rank 2 did not come");
    EXPECT_EQ(errors[0].get(), "rank 2 did not come");
    const std::string heard = errors[1].get();
    EXPECT_NE(heard.find("rank 0 has gone"), std::string::npos) << heard;
    EXPECT_EQ(take_mistakes(), std::vector<std::string>());
    set_aborts(Aborts::kAtOnce);
  }
  expect_to_go_on();
}

}  // namespace nccl_abort_test
}  // namespace jigsaw
