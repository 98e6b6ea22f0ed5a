// In place of src/io/checkpoint/save_phase.cpp, in a jigsaw-train for tests:
// JIGSAW_CRASH="phase:rank:save:how" ends the process when that rank reaches that phase of its n-th save.
// `how` is "kill", for SIGKILL at once, or "stop": the file JIGSAW_CRASH_MARK is made and the process waits
// for whoever kills all. Or it goes on: "full", with the error of a full disk, "slow", after a fifth of a
// second.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/file.h"
#include "checkpoint/save_phase.h"

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
