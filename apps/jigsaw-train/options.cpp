#include "options.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw {

CommandOption add_configuration(const CommandOptions& command, ConfigArguments& arguments) {
  command
      .add_option("--set", arguments.overrides,
                  "KEY=VALUE: overrides one key by its dotted path; may be repeated")
      .one_at_a_time();
  command.add_flag("--quiet", arguments.quiet, "Show warnings and errors only; log.txt gets all");
  return command
      .add_option("-c,--config,configuration", arguments.config,
                  "The configuration (JSON) of a run; the word --config itself may be left out")
      .not_empty();
}

CommandOption add_model(const CommandOptions& command, ModelArguments& arguments) {
  add_configuration(command, arguments.configuration).required();
  command
      .add_option("--average", arguments.average,
                  "The moving average of the weights: auto, where there is one; always; never")
      .one_of({"auto", "always", "never"});
  return command.add_option("--checkpoint", arguments.checkpoints,
                            "The checkpoint's folder, or a run directory for its newest; of images several, "
                            "such as those of folds, whose predictions are averaged");
}

void keep_configuration(const ConfigArguments& arguments,
                        const std::vector<std::pair<const char*, std::string>>& outputs) {
  for (const auto& [option, path] : outputs) {
    std::error_code ignored;
    if (path.empty() || !std::filesystem::equivalent(path, arguments.config, ignored)) continue;
    throw ConfigError(
        concat("command line: ", option, " ", path, " is read, and is not replaced; name another file"));
  }
}

void require_one_checkpoint(const ModelArguments& arguments) {
  if (arguments.checkpoints.size() <= 1) return;
  throw ConfigError(concat("command line: --checkpoint names ", arguments.checkpoints.size(),
                           " checkpoints, whose predictions are averaged of images alone; forecasts are of "
                           "one: run the command for each"));
}

void add_windows(const CommandOptions& command, WindowArguments& arguments) {
  command
      .add_option("--overlap", arguments.overlap,
                  "Of images: the part of their extent by which neighbouring windows overlap; default 0.25")
      .within(0.0, 0.95);
  command
      .add_option("--mirror", arguments.mirror,
                  "Of images: spatial dims along which windows are mirrored, too, in all combinations, and "
                  "what the model says of them is averaged: 2, 4 or 8 times the work")
      .one_of({"depth", "height", "width"});
}

WindowOptions windows_of(const WindowArguments& arguments, const DataOptions& data) {
  WindowOptions windows;
  windows.overlap = arguments.overlap.value_or(windows.overlap);
  std::vector<std::string> dims;
  for (const ImageDim dim : data.space()) dims.emplace_back(name(dim));
  for (const std::string& dim : arguments.mirror) {
    const auto place = std::ranges::find(dims, dim);
    if (place == dims.end())
      throw ConfigError(concat("command line: --mirror ", dim, ": images have ", join(dims, " and ")));
    windows.mirror |= 1U << (place - dims.begin());
  }
  return windows;
}

void add_members(const CommandOptions& command, int& members) {
  command
      .add_option("--members", members,
                  "Of a model with noise in its input: how many forecasts from each start; default: "
                  "ensemble.members")
      .within(1, 1024);
}

void set_members(int members, Configuration& configuration) {
  if (members == 0) return;
  if (members > 1 && configuration.ensemble.noise_channels() == 0) {
    throw ConfigError(concat("command line: --members ", members,
                             " would be equal forecasts, for by this configuration the model takes no noise: "
                             "ensemble.local_noise and ensemble.global_noise are 0"));
  }
  configuration.ensemble.members = members;
}

}  // namespace jigsaw
