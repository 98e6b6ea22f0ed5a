#include <algorithm>
#include <optional>

#include "base/progress_bar.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "comm/thread/run_ranks.h"
#include "commands.h"
#include "config/config.h"
#include "kernels/flush_to_zero.h"
#include "task/device.h"
#include "verify/verification.h"

namespace jigsaw {

namespace {

struct VerifyArguments {
  ConfigArguments configuration;
  std::string against;  ///< a mesh as in a configuration; empty: one rank
  int ranks = 0;        ///< as threads of this process; 0: those that were started
  int steps = 3;
};

/// Longer than any run: others wait while some ranks run another mesh.
constexpr double kForever = 1e7;

VerifyOptions verify_options(const VerifyArguments& options) {
  VerifyOptions verify;
  verify.steps = options.steps;
  if (options.against.empty()) return verify;
  try {
    verify.against = parse<MeshOptions>(parse_json(options.against, "the mesh"), "the mesh");
  } catch (const ConfigError& error) {
    throw ConfigError(concat("--against: ", error.what()));
  }
  return verify;
}

bool verify_on(const Job& job, const VerifyOptions& options, Communicator& world, Log& log) {
  VerifyOptions shown = options;
  std::optional<ProgressBar> bar;
  shown.progress = [&](double part) {
    if (!bar) bar.emplace(log, "verify");
    bar->update(part);
  };
  const Verification result = verify_run(job.configuration, job.folder, world, shown);
  bar.reset();
  for (const std::string& line : split(result.report, '\n')) {
    if (!line.empty()) log.info(line);
  }
  log.info(result.passed ? concat("verified: ", world.size(), " ranks give what the other mesh gives, in ",
                                  counted(options.steps, "step"))
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
        [&](int rank) { return make_context(config.device, config.train, threads, rank); },
        [&](Communicator& world) {
          set_flush_to_zero(threads);
          Log log(world.rank() == 0, job.log.terminal());
          const bool mine = verify_on(job, options, world, log);
          if (world.rank() == 0) passed = mine;
        });
  } catch (const AgreedError& error) {
    throw AgreedError(error.code(), 0, error.what());  // this process speaks for all
  }
  return passed;
}

/// Compares the first steps of a run on these ranks with those on one rank or on another mesh; kInternal
/// unless all is within tolerance.
ExitCode run_verify(const VerifyArguments& options) {
  return run_job(options.configuration, [&](Job& job) {
    VerifyOptions how;
    const int started = job.world.size();
    together(job.world, [&] {
      how = verify_options(options);
      if (started > 1 && options.ranks > 0 && options.ranks != started) {
        throw ConfigError(concat("command line: --ranks ", options.ranks,
                                 " runs ranks as threads of one process; ", started, " were started"));
      }
      if (started == 1 && options.ranks <= 1) {
        throw ConfigError(
            "command line: one rank has nothing to be compared with; start several, or give --ranks N");
      }
    });
    tell_mesh(job, started > 1 ? started : options.ranks);
    const bool passed =
        started > 1 ? verify_on(job, how, job.world, job.log) : verify_on_threads(job, how, options.ranks);
    return passed ? ExitCode::kDone : ExitCode::kInternal;
  });
}

}  // namespace

std::function<ExitCode()> declare_verify(const CommandOptions& command, const Invocation& /*invocation*/) {
  auto options = std::make_shared<VerifyArguments>();
  add_configuration(command, options->configuration).required();
  command.add_option("--against", options->against,
                     "The other mesh, as in a configuration: {\"domain\":[2,1]}");
  command.add_option("--ranks", options->ranks, "Without a launcher: so many ranks as threads")
      .within(1, 1024);
  command.add_option("--steps", options->steps, "How many; default 3").within(1, 1000);
  return [options] { return run_verify(*options); };
}

}  // namespace jigsaw
