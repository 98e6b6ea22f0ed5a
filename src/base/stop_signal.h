#pragma once
#include <array>
#include <csignal>

namespace jigsaw::inline base {

/// Those that ask a run to end early.
inline constexpr std::array<int, 4> kStopSignals = {SIGTERM, SIGUSR1, SIGINT, SIGHUP};

/// "SIGTERM"; may be called by a signal handler.
constexpr const char* stop_signal_name(int number) {
  switch (number) {
    case SIGTERM:
      return "SIGTERM";
    case SIGUSR1:
      return "SIGUSR1";
    case SIGINT:
      return "SIGINT";
    case SIGHUP:
      return "SIGHUP";
    default:
      return "a signal";
  }
}

}  // namespace jigsaw::inline base
