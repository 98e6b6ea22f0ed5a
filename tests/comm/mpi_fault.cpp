// Faults that end a whole MPI job, which no test inside it can live to see: `mpi_fault KIND` is run by ctest,
// which looks at what it says and that it ends.
#include <filesystem>
#include <iostream>
#include <string>
#include <thread>

#include "base/error.h"
#include "comm/mpi/mpi_session.h"
#include "comm/watchdog.h"

namespace jigsaw {

namespace {

Array zeros(const Communicator& comm, std::int64_t count) {
  return Array::zeros(comm.context(), {count}, DType::kFloat32);
}

/// One rank throws with a transfer under way that no peer takes part in.
void throw_alone(Communicator& comm) {
  if (comm.rank() == 1) {
    const Array send = zeros(comm, 5000);
    const Pending pending = comm.start_all_reduce(send);
    throw DataError("rank 1 alone found no file");
  }
  comm.barrier();
}

/// A message comes that is shorter than expected.
void disagree(Communicator& comm) {
  const Message send{1 - comm.rank(), 0, 2};
  const Message receive{1 - comm.rank(), 0, 3};
  comm.exchange(zeros(comm, 4), {&send, 1}, {&receive, 1}, 4);
}

/// One rank never comes.
void hang(Communicator& comm) {
  const WatchdogOptions options{.seconds = 0.5,
                                .grace_seconds = 600,
                                .folder = std::filesystem::current_path() / "mpi_fault_hang",
                                .rank = comm.rank(),
                                .size = comm.size()};
  Watchdog watchdog(options, comm.log(), [&](const std::string& report) {
    std::cerr << report << "\n";
    comm.abort(1);
  });
  watchdog.beat(7);
  if (comm.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(60));
  comm.all_reduce(zeros(comm, 5000));
}

void run(const std::string& kind, Communicator& comm) {
  if (kind == "throw") throw_alone(comm);
  if (kind == "disagree") disagree(comm);
  if (kind == "hang") hang(comm);
  if (kind == "abort" && comm.rank() == 1) comm.abort(75);
  comm.barrier();
}

}  // namespace

}  // namespace jigsaw

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "";
  jigsaw::MpiSession session;
  jigsaw::Context context = jigsaw::Context::make_host(jigsaw::Backend::kReference, 1);
  const auto world = session.world(context);
  try {
    jigsaw::run(kind, *world);
  } catch (const jigsaw::Error& error) {
    std::cerr << error.what() << "\n";
    world->abort(static_cast<int>(error.code()));
  }
  return 0;
}
