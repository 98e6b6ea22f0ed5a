#pragma once
#include <atomic>
#include <string>

namespace jigsaw {

/// SIGTERM and SIGUSR1 (what SLURM sends before a time limit), Ctrl-C, and SIGHUP of a terminal that is gone
/// ask a training or a forecast to stop; they may come several times. nohup's SIGHUP stays ignored.
///
/// From now on they end the process at once, with exit code 75 and a line by the first rank, for there is
/// nothing to save yet. To be called first thing: what comes before that ends it as any program.
void install_stop_signals();
/// They end the process as any program again.
void remove_stop_signals();
/// From now on they only set what is returned, to the signal's number; 0: none has come.
const std::atomic<int>& keep_stop_signals();
/// Where one of them ends the process, this file and then its folder go first; "": nothing, as at the start.
void remove_on_stop(const std::string& file);

}  // namespace jigsaw
