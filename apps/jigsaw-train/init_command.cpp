#include <fcntl.h>

#include <charconv>
#include <filesystem>
#include <iostream>

#include "base/disk.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "commands.h"
#include "config/config.h"
#include "config/override.h"
#include "init/first_configuration.h"
#include "kernels/cuda_context.h"
#include "task/configuration.h"

namespace jigsaw {

namespace {

namespace fs = std::filesystem;

constexpr const char* kSegment = "segment";  ///< a map whose targets are labels

std::optional<Task> task_of(const std::string& name) {
  if (name == "forecast") return Task::kForecast;
  if (name == "denoise") return Task::kDenoise;
  if (name == "map" || name == kSegment) return Task::kMap;
  return {};
}

MemberChoice member_of(const std::string& text) {
  if (text.empty()) return {};
  if (text == "all") return {.all = true};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw ConfigError(concat("command line: --member ", text,
                             " must be the number of a member, as the files have it, or all"));
  }
  return {.number = number};
}

/// A new file; what cannot be written whole leaves none behind.
void write(const std::string& output, const std::string& text) {
  try {
    File file(output, O_WRONLY | O_CREAT | O_EXCL);
    try {
      file.write(std::as_bytes(std::span(text)), 0);
    } catch (const FileError&) {
      std::error_code ignored;
      fs::remove(output, ignored);
      throw;
    }
  } catch (const FileError& error) {
    refuse_output<ConfigError>(error, concat("--output ", output, " cannot be written: ", error.what()));
  }
}

struct InitArguments {
  std::vector<std::string> files, targets;
  std::string task;    ///< forecast, denoise, segment, map; or what the files look like
  std::string member;  ///< of an ensemble: a number or "all"; "": there is none
  std::string recipe = "unet";
  std::string plans, plans_configuration;
  std::string output = "first.json";
};

/// Writes a first configuration for data files, see init/first_configuration.h. @throws ConfigError,
/// DataError
ExitCode run_init(const InitArguments& options) {
  const fs::path output(options.output);
  std::error_code unreadable;
  if (fs::exists(fs::symlink_status(output, unreadable)))
    throw ConfigError(concat("--output ", options.output, " is there already, and is not written over"));
  require_utf8(options.output, "--output");
  for (const std::string& pattern : options.files) require_utf8(pattern, "--data");
  for (const std::string& pattern : options.targets) require_utf8(pattern, "--targets");
  FirstOptions first{options.files,
                     options.targets,
                     task_of(options.task),
                     options.task == kSegment,
                     member_of(options.member),
                     options.recipe};
  if (!options.targets.empty() && first.task != Task::kMap)
    throw ConfigError("--targets counts only with --task segment or map");
  if (!options.plans.empty() && !first.segment) throw ConfigError("--plans counts only with --task segment");
  if (!options.plans.empty() && options.recipe != "unet")
    throw ConfigError(concat("--plans says the model; leave out --from ", options.recipe));
  if (!options.plans_configuration.empty() && options.plans.empty())
    throw ConfigError("--plans-configuration counts only with --plans");
  first.plans = options.plans;
  if (!options.plans_configuration.empty()) first.plans_configuration = options.plans_configuration;
  first.name = output.stem().string();
  first.folder = output.has_parent_path() ? output.parent_path().string() : ".";
  const auto [text, notices] = first_configuration(first);
  parse<Configuration>(parse_json(text, options.output));
  write(options.output, text);
  for (const std::string& notice : notices) print_warning(notice, 0, 1);
  const int gpus = cuda_device_count();
  const std::string several = gpus > 1 ? concat("mpirun -n ", gpus, " --bind-to none ") : "";
  std::cout << text << "\nwrote " << options.output << "; next:\n  jigsaw-train check --config "
            << options.output << "\n  " << several << "jigsaw-train --config " << options.output
            << (gpus > 1   ? "    # one rank for each GPU here"
                : gpus > 0 ? "    # on the GPU here"
                           : "    # one rank with all cores here; on several machines see docs/cluster.md")
            << '\n';
  return ExitCode::kDone;
}

}  // namespace

std::function<ExitCode()> declare_init(const CommandOptions& command, const Invocation& /*invocation*/) {
  auto options = std::make_shared<InitArguments>();
  command.add_option("--data", options->files, "Files or patterns: NetCDF, HDF5, Zarr, NIfTI, GRIB")
      .required();
  command
      .add_option("--task", options->task,
                  "forecast, denoise, segment (targets are labels) or map; default: what the files look like")
      .one_of({"forecast", "denoise", "segment", "map"});
  command.add_option(
      "--targets", options->targets,
      "Files or patterns of the targets of segment and map, where they stand in files of their own");
  command.add_option(
      "--member", options->member,
      "Of an ensemble: the number of the member that is taken, or all, each a series of samples");
  command
      .add_option("--from", options->recipe,
                  "The model: unet (any grid), vit, swin, weathermixer, or sfno (around the globe)")
      .one_of({"unet", "vit", "swin", "weathermixer", "sfno"});
  command.add_option("--plans", options->plans,
                     "Of segment: nnUNetPlans.json, whose network, patches and spacing are taken");
  command.add_option("--plans-configuration", options->plans_configuration,
                     "That of nnU-Net's plans which is taken; default 3d_fullres");
  command.add_option("--output", options->output, "The file to write; default first.json");
  return [options] { return run_init(*options); };
}

}  // namespace jigsaw
