#include <atomic>
#include <csignal>

#include "base/text.h"
#include "commands.h"
#include "train/trainer.h"

namespace jigsaw {

namespace {

std::atomic<bool> stop_asked = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may set it");

/// SIGTERM and SIGUSR1 (what SLURM sends before a time limit) and Ctrl-C: end with a checkpoint; may come
/// several times. Installed when training begins: until then there is nothing to save, and they end it.
void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = [](int) { stop_asked.store(true); };
  for (const int number : {SIGTERM, SIGUSR1, SIGINT}) sigaction(number, &action, nullptr);
}

}  // namespace

ExitCode run_train(const TrainCommand& command) {
  return run_train(command, [&](Communicator& /*world*/) { return command.configuration; });
}

ExitCode run_train(const TrainCommand& command, const ChooseConfiguration& choose) {
  return run_job(choose, [&](Job& job) {
    RunOptions options;
    options.config_folder = job.folder;
    options.command_line = command.command_line;
    options.versions = {{"jigsaw-train", JIGSAW_VERSION}, {"compiler", concat("GCC ", __VERSION__)}};
    options.resume = command.resume;
    options.allow_change = command.allow_change;
    options.verify = command.no_verify ? Verify::kSizesOnly : Verify::kBytes;
    options.init_from = command.init_from;
    options.max_minutes = command.max_minutes;
    options.trace = {command.trace, command.profile, command.trace_steps};
    options.find_nan = command.find_nan;
    options.stop = &stop_asked;
    tell_mesh(job, job.world.size());
    Trainer trainer(job.configuration, options, job.world, job.log);
    install_signal_handlers();
    return trainer.run();
  });
}

}  // namespace jigsaw
