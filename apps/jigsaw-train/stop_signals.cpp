#include "stop_signals.h"

#include <csignal>

namespace jigsaw {

namespace {

std::atomic<bool> stop_was_asked = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may set it");

}  // namespace

const std::atomic<bool>& stop_asked() {
  return stop_was_asked;
}

const std::atomic<bool>& install_stop_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { stop_was_asked.store(true); };
  for (const int number : {SIGTERM, SIGUSR1, SIGINT}) sigaction(number, &action, nullptr);
  struct sigaction before {};
  sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
  return stop_was_asked;
}

}  // namespace jigsaw
