#pragma once
#include <atomic>

namespace jigsaw {

/// From now on SIGTERM and SIGUSR1 (what SLURM sends before a time limit), Ctrl-C, and SIGHUP of a terminal
/// that is gone set what is returned, instead of ending the process; they may come several times. nohup's
/// SIGHUP stays ignored.
const std::atomic<bool>& install_stop_signals();
/// What they set, before they are installed, too.
const std::atomic<bool>& stop_asked();

}  // namespace jigsaw
