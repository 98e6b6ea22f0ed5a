// GoogleTest on all ranks of an MPI job: rank 0 reports as usual, other ranks only what failed, and the job
// fails when any rank does.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>

#include "base/text.h"
#include "comm/mpi/mpi_session.h"
#include "comm/ranks.h"
#include "support/test_context.h"

namespace jigsaw {

namespace {

MpiSession* session = nullptr;

class Failures : public ::testing::EmptyTestEventListener {
 public:
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    const char* const file = result.file_name() != nullptr ? result.file_name() : "";
    std::cerr << concat("[rank ", session->rank(), "] ", file, ":", result.line_number(), ": ",
                        result.message(), "\n");
  }
};

int run_tests() {
  if (session->size() < 2) {
    std::cerr << "this test needs more than one rank\n";
    return 1;
  }
  if (session->rank() != 0) {
    ::testing::TestEventListeners& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new Failures);
  }
  const double failed = RUN_ALL_TESTS();
  double worst = failed;
  on_ranks([&](Communicator& world) { worst = world.all_reduce(std::vector{failed}, ReduceOp::kMax)[0]; });
  return worst == 0 ? 0 : 1;
}

/// The plugins of Open MPI that this process holds in memory.
std::set<std::string> plugins() {
  std::set<std::string> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (const std::size_t at = line.find("/mca_"); at != std::string::npos) found.insert(line.substr(at));
  return found;
}

}  // namespace

const MpiSession& test_session() {
  return *session;
}

void on_ranks(const std::function<void(Communicator&)>& body) {
  Context context = testing::test_context(Backend::kReference, 1);
  const std::unique_ptr<Communicator> world = session->world(context);
  try {
    body(*world);
  } catch (const std::exception& error) {
    std::cerr << concat("[rank ", session->rank(), "] ", error.what(), "\n");
    world->abort(1);
  }
}

}  // namespace jigsaw

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  jigsaw::MpiOptions options;
  if (const char* largest = std::getenv("JIGSAW_TEST_LARGEST_COUNT"))
    options.largest_count = std::atoi(largest);
  int code = 1;
  std::set<std::string> held;
  {
    jigsaw::MpiSession session(options);
    jigsaw::session = &session;
    code = jigsaw::run_tests();
    held = jigsaw::plugins();
  }
  if (jigsaw::plugins() == held) return code;
  std::cerr << "plugins of MPI are gone behind its end, whatever their threads still do\n";
  return 1;
}
