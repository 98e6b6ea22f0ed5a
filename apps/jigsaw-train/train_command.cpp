#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "base/text.h"
#include "comm/agreement.h"
#include "comm/mpi/mpi_session.h"
#include "commands.h"
#include "kernels/flush_to_zero.h"
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

/// Ranks on this machine, as launchers say.
int ranks_on_node(int ranks) {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}) {
    if (const char* value = std::getenv(name)) return std::max(1, std::atoi(value));
  }
  return ranks;
}

/// OMP_NUM_THREADS, or this rank's share of the cores: those it is bound to, or all divided among the ranks
/// here.
int threads_per_rank(int ranks) {
  if (const char* value = std::getenv("OMP_NUM_THREADS"); value != nullptr && std::atoi(value) > 0) {
    return std::atoi(value);
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  const int all = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const int bound = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : all;
  const bool is_bound = bound < static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  return is_bound ? bound : std::max(1, bound / ranks_on_node(ranks));
}

Configuration load(const TrainCommand& command) {
  Json json = load_config(command.config);
  for (const std::string& override_text : command.overrides) apply_override(json, override_text);
  return parse<Configuration>(json);
}

ExitCode train(const TrainCommand& command, MpiSession& session) {
  // Small messages of the start travel in a context of their own, before the configuration says what
  // computes.
  Context start = Context::make_host(Backend::kReference, 1);
  Configuration configuration;
  together(*session.world(start), [&] { configuration = load(command); });
  const int threads = threads_per_rank(session.size());
  Context context = Context::make_host(types_of(configuration.train.precision).backend, threads);
  set_flush_to_zero(threads);
  const std::unique_ptr<Communicator> world = session.world(context);
  Log log(session.rank() == 0);
  RunOptions options;
  options.config_folder = std::filesystem::absolute(command.config).parent_path();
  options.command_line = command.command_line;
  options.versions = {{"jigsaw-train", JIGSAW_VERSION}, {"compiler", concat("GCC ", __VERSION__)}};
  options.resume = command.resume;
  options.allow_change = command.allow_change;
  options.verify = command.no_verify ? Verify::kSizesOnly : Verify::kBytes;
  options.init_from = command.init_from;
  options.max_minutes = command.max_minutes;
  options.stop = &stop_asked;
  try {
    Trainer trainer(configuration, options, *world, log);
    install_signal_handlers();
    return trainer.run();
  } catch (const AgreedError&) {
    throw;
  } catch (const std::exception& error) {
    // This rank alone: the others wait for it somewhere, and are ended with it.
    const auto* known = dynamic_cast<const Error*>(&error);
    print_error(error.what(), session.rank(), session.size());
    world->abort(static_cast<int>(known != nullptr ? known->code() : ExitCode::kInternal));
    return ExitCode::kInternal;
  }
}

}  // namespace

ExitCode run_train(const TrainCommand& command) {
  // A file size limit is then an error of the write, as a full disk is.
  std::signal(SIGXFSZ, SIG_IGN);
  MpiSession session;
  try {
    return train(command, session);
  } catch (const AgreedError& error) {
    if (session.rank() == error.speaker()) print_error(error.what(), error.speaker(), session.size());
    return error.code();
  }
}

}  // namespace jigsaw
