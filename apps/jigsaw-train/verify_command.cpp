#include <algorithm>
#include <thread>

#include "base/text.h"
#include "comm/agreement.h"
#include "comm/thread/run_ranks.h"
#include "commands.h"
#include "config/config.h"
#include "kernels/flush_to_zero.h"
#include "train/device.h"
#include "verify/verification.h"

namespace jigsaw {

namespace {

/// Longer than any run: others wait while some ranks run another mesh.
constexpr double kForever = 1e7;

VerifyOptions options_of(const VerifyCommand& command) {
  VerifyOptions options;
  options.steps = command.steps;
  if (command.against.empty()) return options;
  try {
    options.against = parse<MeshOptions>(parse_json(command.against, "the mesh"));
  } catch (const ConfigError& error) {
    throw ConfigError(concat("--against: ", error.what()));
  }
  return options;
}

bool verify_on(const Job& job, const VerifyOptions& options, Communicator& world, Log& log) {
  const Verification result = verify_run(job.configuration, job.folder, world, options);
  for (const std::string& line : split(result.report, '\n')) {
    if (!line.empty()) log.info(line);
  }
  log.info(result.passed ? concat("verified: ", world.size(), " ranks give what the other mesh gives, in ",
                                  options.steps, " steps")
                         : "not verified: the meshes differ");
  return result.passed;
}

/// The ranks as threads of this process.
bool verify_on_threads(Job& job, const VerifyOptions& options, int ranks) {
  const Configuration& config = job.configuration;
  const int threads = std::max(1, job.world.context().threads() / ranks);
  bool passed = false;  // as rank 0 says
  try {
    run_ranks(
        ranks, {.time_limit_seconds = kForever},
        [&](int rank) { return make_context(config.device, config.train.precision, threads, rank); },
        [&](Communicator& world) {
          set_flush_to_zero(threads);
          Log log(world.rank() == 0);
          const bool mine = verify_on(job, options, world, log);
          if (world.rank() == 0) passed = mine;
        });
  } catch (const AgreedError& error) {
    throw AgreedError(error.code(), 0, error.what());  // this process speaks for all
  }
  return passed;
}

}  // namespace

ExitCode run_verify(const VerifyCommand& command) {
  return run_job(command.configuration, [&](Job& job) {
    VerifyOptions options;
    const int started = job.world.size();
    together(job.world, [&] {
      options = options_of(command);
      if (started > 1 && command.ranks > 0 && command.ranks != started) {
        throw ConfigError(concat("command line: --ranks ", command.ranks,
                                 " runs ranks as threads of one process; ", started, " were started"));
      }
      if (started == 1 && command.ranks <= 1) {
        throw ConfigError(
            "command line: one rank has nothing to be compared with; start several, or give --ranks N");
      }
    });
    tell_mesh(job, started > 1 ? started : command.ranks);
    const bool passed = started > 1 ? verify_on(job, options, job.world, job.log)
                                    : verify_on_threads(job, options, command.ranks);
    return passed ? ExitCode::kDone : ExitCode::kInternal;
  });
}

}  // namespace jigsaw
