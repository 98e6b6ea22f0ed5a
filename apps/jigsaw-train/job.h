#pragma once
#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "comm/communicator.h"
#include "job_watch.h"
#include "options.h"
#include "task/configuration.h"
#include "task/device.h"

namespace jigsaw {

/// What a run's config.json holds beside its configuration.
inline constexpr std::array<const char*, 2> kKeysOfARun = {"versions", "command_line"};

/// As the file has it, with what the command line overrides. It may be the config.json of a run, without what
/// that says of the run. @throws ConfigError
Json configuration_json(const ConfigArguments& arguments);

/// Reads it. @throws ConfigError
/// @param idle  gets what is to be said of keys that do nothing for now; may be null.
Configuration load_configuration(const ConfigArguments& arguments, std::vector<std::string>* idle = nullptr);

/// Names the configuration once ranks are there to agree on it. Collective over `world`.
using ChooseConfiguration = std::function<ConfigArguments(Communicator& world)>;

/// What a command gets that runs on all ranks that the launcher started.
struct Job {
  Configuration configuration;
  std::filesystem::path folder;  ///< the configuration's, from which relative data files start
  Communicator& world;
  Log& log;
  RankDevice device;                ///< what this rank computes on
  std::unique_ptr<JobWatch> watch;  ///< null for a rank alone, and where watchdog_seconds is 0
};

/// Starts MPI, has rank 0 read the configuration for all (or takes that which is given: no file, no folder),
/// makes the context that it asks for and calls `work`. An error of all ranks ends in a line on stderr by one
/// of them and in its exit code on all; one of a rank alone ends the job, for the others wait for that rank
/// somewhere.
ExitCode run_job(const ChooseConfiguration& choose, const std::function<ExitCode(Job&)>& work);
ExitCode run_job(const ConfigArguments& arguments, const std::function<ExitCode(Job&)>& work);
ExitCode run_job(const Configuration& given, const std::function<ExitCode(Job&)>& work);

/// Where the mesh is "auto", chooses one for so many ranks and says which and why. Collective.
void tell_mesh(Job& job, int ranks);

}  // namespace jigsaw
