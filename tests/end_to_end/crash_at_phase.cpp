// In place of src/io/checkpoint/save_phase.cpp, in a jigsaw-train for tests:
// JIGSAW_CRASH="phase:rank:save:how" ends the process when that rank reaches that phase of its n-th save.
// `how` is "kill", for SIGKILL at once, or "stop": the file JIGSAW_CRASH_MARK is made and the process waits
// for whoever kills all. Or it goes on: "full", with the error of a full disk, "slow", after a fifth of a
// second.
// And in place of src/comm/call_hook.cpp: JIGSAW_FAULT="rank:number:how" does something to that rank before
// it makes its call of that number: "delay" it for a second, "stop" it for good, "kill" it, let it make a
// call "extra", so that it is one ahead of the others, or "spoil" the result of its next operation.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "array/transfer.h"
#include "autograd/output_watch.h"
#include "base/file.h"
#include "checkpoint/save_phase.h"
#include "comm/call_hook.h"
#include "comm/communicator.h"

namespace jigsaw::inline checkpoint {

void reached(SavePhase phase, int rank) {
  static std::atomic<int> seen = 0;
  int at = 0, who = 0, save = 0;
  char how[8] = "";
  const char* text = std::getenv("JIGSAW_CRASH");
  if (text == nullptr || std::sscanf(text, "%d:%d:%d:%7s", &at, &who, &save, how) != 4) return;
  if (static_cast<int>(phase) != at || rank != who || ++seen != save) return;
  if (std::strcmp(how, "full") == 0) throw FileError("No space left on device");
  if (std::strcmp(how, "slow") == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return;
  }
  if (std::strcmp(how, "stop") != 0) ::raise(SIGKILL);
  const int mark = ::open(std::getenv("JIGSAW_CRASH_MARK"), O_CREAT | O_WRONLY, 0666);
  ::close(mark);
  for (;;) ::pause();
}

}  // namespace jigsaw::inline checkpoint

namespace jigsaw::inline comm {

namespace {

/// Doubles one result of an operation of this process, the next that nobody else watches.
void spoil_a_result(Context& context) {
  static std::atomic<bool> spoilt = false;
  OutputWatch& watch = context.state<OutputWatch>();
  if (spoilt || watch.saw) return;
  watch.saw = [&context](const OutputWatch::Source&, const ShardedTensor& result) {
    if (spoilt.exchange(true)) return;
    std::vector<double> values = download_values(context, result.piece);
    for (double& value : values) value *= 2;
    write_values(context, result.piece, values);
  };
}

}  // namespace

void call_begins(Communicator& group, std::int64_t number) {
  static std::atomic<bool> done = false;
  int who = 0;
  long long at = 0;
  char how[8] = "";
  const char *text = std::getenv("JIGSAW_FAULT"), *rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (text == nullptr || std::sscanf(text, "%d:%lld:%7s", &who, &at, how) != 3) return;
  if (rank == nullptr || std::atoi(rank) != who || number < at) return;
  // The job begins with a context that runs no operations.
  if (std::strcmp(how, "spoil") == 0) return spoil_a_result(group.context());
  if (number != at || done.exchange(true)) return;
  if (std::strcmp(how, "kill") == 0) ::raise(SIGKILL);
  if (std::strcmp(how, "delay") == 0) ::sleep(1);
  if (std::strcmp(how, "extra") == 0) group.barrier();
  if (std::strcmp(how, "stop") != 0) return;
  for (;;) ::pause();
}

}  // namespace jigsaw::inline comm
