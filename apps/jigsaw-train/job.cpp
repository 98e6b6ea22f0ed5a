#include "job.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "base/cores.h"
#include "base/exit_file.h"
#include "base/heartbeat.h"
#include "base/host.h"
#include "base/overdue.h"
#include "base/printable.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "comm/from_first.h"
#include "comm/mpi/mpi_session.h"
#include "commands.h"
#include "config/config.h"
#include "estimate/mesh_choice.h"
#include "kernels/cuda_context.h"
#include "kernels/flush_to_zero.h"
#include "kernels/remarks.h"
#include "samples/shared_chunks.h"
#include "stop_signals.h"
#include "task/device.h"

namespace jigsaw {

namespace {

/// OMP_NUM_THREADS, or this rank's share of the cores that it may run on.
/// @param ranks  that may run on the same ones.
int threads_per_rank(int ranks) {
  if (const char* value = std::getenv("OMP_NUM_THREADS"); value != nullptr && std::atoi(value) > 0) {
    return std::atoi(value);
  }
  return std::max(1, usable_cores() / ranks);
}

/// A rank on which something failed may take so long to tell of it, and then ends all others: before that it
/// lets go of its device and its connections.
constexpr std::chrono::seconds kMostUntilTold(15);

/// While the driver of this machine's GPUs is asked, before the watchdog watches: on a broken node it never
/// answers, and all ranks would wait for that one. Such a rank says so, and ends the job when it has waited
/// as long as the watchdog would.
/// @param limit  Configuration::watchdog_seconds
/// @param rank   of so many `ranks`.
/// @param end    ends the job.
Overdue driver_watch(double limit, int rank, int ranks, const std::function<void()>& end) {
  constexpr double kUntilTold = 30;
  const auto said = [host = host_name()](double seconds, const char* what) {
    return concat("the GPU driver of ", host, " has not answered for ", seconds, " seconds; ", what);
  };
  const double told = limit > 0 ? std::min(kUntilTold, limit / 2) : kUntilTold;
  std::vector<Overdue::Step> steps = {
      {told, [=] {
         print_warning(said(told, ranks > 1 ? "all ranks wait for this one" : "this run waits"), rank, ranks);
       }}};
  if (limit > 0) {
    steps.push_back({limit, [=] {
                       print_error(said(limit,
                                        "look at nvidia-smi and the kernel's log (dmesg) there, and "
                                        "start on other nodes"),
                                   rank, ranks);
                       end();
                     }});
  }
  return Overdue(std::move(steps));
}

Configuration parsed(const Json& json, std::vector<std::string>* idle) {
  auto configuration = parse<Configuration>(json);
  if (idle != nullptr) *idle = idle_keys(json, configuration);
  return configuration;
}

/// What a job begins with, equal on all ranks.
struct Start {
  Configuration configuration;
  std::filesystem::path folder;
  std::vector<std::string> idle;  ///< what is to be said of keys that do nothing
  bool quiet = false;
};
using MakeStart = std::function<Start(Communicator& everyone)>;

Start start_by(const ConfigArguments& arguments, Communicator& everyone) {
  const std::string json = from_first(everyone, [&] {
    const std::vector<std::uint8_t> bytes = Json::to_cbor(configuration_json(arguments));
    return std::string(bytes.begin(), bytes.end());
  });
  Start start;
  together(everyone, [&] { start.configuration = parsed(Json::from_cbor(json), &start.idle); });
  start.folder = std::filesystem::absolute(arguments.config).parent_path();
  start.quiet = arguments.quiet;
  return start;
}

Carrier carrier_of(const MpiSession& session) {
  if (session.size() == 1) return Carrier::kHost;
  if (nccl_library().built) return Carrier::kNccl;
  return session.cuda_aware() ? Carrier::kMpi : Carrier::kHost;
}

ExitCode run_on(MpiSession& session, const MakeStart& make_start, const std::function<ExitCode(Job&)>& work) {
  // Small messages of the start travel in a context of their own, before the configuration says what
  // computes.
  Context of_start = Context::make_host(Backend::kReference, 1);
  std::optional<Context> context;
  RankDevice device;
  ChosenDevice chosen;
  const int threads = threads_per_rank(session.on_machine().on_cores);
  const std::unique_ptr<Communicator> everyone = session.world(of_start);
  const Start start = make_start(*everyone);
  const Configuration& configuration = start.configuration;
  const Carrier carrier = carrier_of(session);
  std::vector<std::string> gpus;
  const bool asks_driver = configuration.device != DeviceChoice::kCpu && cuda_runtime_version() > 0;
  const auto of_driver = [&](const auto& ask) {
    if (!asks_driver) return ask();
    const Overdue watch = driver_watch(configuration.watchdog_seconds, session.rank(), session.size(), [&] {
      note_exit_code(static_cast<int>(ExitCode::kInternal));
      everyone->abort(static_cast<int>(ExitCode::kInternal));
    });
    ask();
  };
  together(*everyone, [&] {
    if (asks_driver) of_driver([&] { gpus = visible_gpus(); });
  });
  // A CUDA-aware MPI was told of one before ranks could speak to each other, see run_started().
  const int gpu = session.cuda_aware() ? session.on_machine().rank : choose_gpu(*everyone, gpus);
  together(*everyone, [&] {
    of_driver([&] {
      context = make_context(configuration.device, configuration.train, threads, gpu, &chosen, carrier);
      device = rank_device(*context);
    });
  });
  const WorksFor works_for(std::make_shared<Heartbeat>());
  std::unique_ptr<JobWatch> watch;
  if (session.size() > 1 && configuration.watchdog_seconds > 0)
    watch = std::make_unique<JobWatch>(*everyone, configuration.watchdog_seconds);
  together(*everyone, [&] { require_like_devices(*everyone, device, carrier); });
  set_flush_to_zero(threads);
  share_chunks(*everyone);
  const std::unique_ptr<Communicator> world =
      connect_devices(session.world(*context), configuration.reduction);
  Log log(session.rank() == 0, Terminal::of_process(start.quiet));
  for (const std::string& sentence : start.idle) log.warn(sentence);
  if (chosen.warns) {
    log.warn(chosen.remark);
  } else if (!chosen.remark.empty()) {
    log.info(chosen.remark);
  }
  if (carrier == Carrier::kMpi && context->backend() == Backend::kCuda)
    log.info("arrays that are not summed go from GPU to GPU by MPI (JIGSAW_CUDA_AWARE_MPI)");
  Job job{configuration, start.folder, *world, log, device, nullptr};
  job.watch = std::move(watch);
  if (job.watch) job.watch->follow(*world);
  try {
    const ExitCode code = work(job);
    for (const std::string& remark : take_remarks(world->context())) log.warn(remark);
    return code;
  } catch (const AgreedError& error) {
    log.end_status(true);  // what is said next stands on a line of its own
    log.record(printable(concat("error: ", error.what())));
    throw;
  } catch (const std::exception& error) {
    log.end_status(true);
    const bool of_peer = dynamic_cast<const PeerError*>(&error) != nullptr;
    if (of_peer) std::this_thread::sleep_for(kMostUntilTold);
    // This rank alone: the others wait for it somewhere, and are ended with it.
    const auto* known = dynamic_cast<const Error*>(&error);
    const ExitCode code = known != nullptr ? known->code() : ExitCode::kInternal;
    if (!of_peer) note_exit_code(static_cast<int>(code));
    log.record(printable(concat("error: ", error.what())));
    print_error(error.what(), session.rank(), session.size());
    job.watch.reset();  // the job ends without destructors
    world->abort(static_cast<int>(code));
    return ExitCode::kInternal;
  }
}

}  // namespace

void tell_mesh(Job& job, int ranks) {
  const std::string reason = choose_mesh(job.configuration, job.folder, job.world, ranks);
  if (!reason.empty()) job.log.info(concat("mesh \"auto\": ", reason));
}

Json configuration_json(const ConfigArguments& arguments) {
  Json json = load_config(arguments.config);
  if (json.is_object()) {
    for (const char* of_a_run : kKeysOfARun) json.erase(of_a_run);
  }
  for (const std::string& override_text : arguments.overrides) apply_override(json, override_text);
  return json;
}

Configuration load_configuration(const ConfigArguments& arguments, std::vector<std::string>* idle) {
  return parsed(configuration_json(arguments), idle);
}

ExitCode run_job(const ConfigArguments& arguments, const std::function<ExitCode(Job&)>& work) {
  return run_job([&](Communicator& /*world*/) { return arguments; }, work);
}

namespace {

ExitCode run_started(const MakeStart& make_start, const std::function<ExitCode(Job&)>& work) {
  // A file size limit is then an error of the write, as a full disk is.
  std::signal(SIGXFSZ, SIG_IGN);
  // Before MPI is initialised, when the launcher's number is all that a rank knows of those beside it.
  if (const auto here = launched_rank_on_machine(); here && wants_cuda_aware_mpi()) {
    const Overdue watch =
        driver_watch(Configuration().watchdog_seconds, launched_rank(), launched_ranks().value_or(1), [] {
          note_exit_code(static_cast<int>(ExitCode::kInternal));
          std::_Exit(static_cast<int>(ExitCode::kInternal));
        });
    choose_cuda_device(*here);
  }
  MpiSession session;
  try {
    return run_on(session, make_start, work);
  } catch (const AgreedError& error) {
    // Launchers end all ranks once one is at its end: then a signal is no stop any more.
    keep_stop_signals();
    if (session.rank() == error.speaker()) print_error(error.what(), error.speaker(), session.size());
    return error.code();
  }
}

}  // namespace

ExitCode run_job(const ChooseConfiguration& choose, const std::function<ExitCode(Job&)>& work) {
  return run_started([&](Communicator& everyone) { return start_by(choose(everyone), everyone); }, work);
}

ExitCode run_job(const Configuration& given, const std::function<ExitCode(Job&)>& work) {
  return run_started([&](Communicator& /*everyone*/) { return Start{given, {}, {}, false}; }, work);
}

}  // namespace jigsaw
