#include "stop_signals.h"

#include <unistd.h>

#include <csignal>
#include <cstring>

#include "base/error.h"
#include "base/stop_signal.h"
#include "commands.h"

namespace jigsaw {

namespace {

std::atomic<int> stop_asked = 0;
std::atomic<bool> keeps = false, speaks = false;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free,
              "a signal handler may set them");

/// Calls what a handler may.
void handle(int number) {
  stop_asked.store(number);
  if (keeps.load()) return;
  if (speaks.load()) {
    const auto say = [](const char* text) { return ::write(STDERR_FILENO, text, std::strlen(text)) >= 0; };
    say("jigsaw-train: stopped early, before there was anything to save (") &&
        say(stop_signal_name(number)) && say("); start again to go on\n");
  }
  ::_exit(static_cast<int>(ExitCode::kStopped));
}

void set_handler(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  for (const int number : kStopSignals) {
    struct sigaction before {};
    sigaction(number, nullptr, &before);
    if (number != SIGHUP || before.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  }
}

}  // namespace

void install_stop_signals() {
  speaks = launched_rank() == 0;
  set_handler(handle);
}

void remove_stop_signals() {
  set_handler(SIG_DFL);
}

const std::atomic<int>& keep_stop_signals() {
  keeps = true;
  return stop_asked;
}

}  // namespace jigsaw
