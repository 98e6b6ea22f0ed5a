#pragma once
#include <optional>
#include <string>
#include <vector>

#include "command_options.h"
#include "predict/image_run.h"
#include "task/configuration.h"

namespace jigsaw {

/// Which configuration a command works on.
struct ConfigArguments {
  std::string config;                  ///< its file
  std::vector<std::string> overrides;  ///< KEY=VALUE each
  bool quiet = false;                  ///< show warnings and errors only
};
/// --config, also without its name, --set and --quiet. @return  the option that names the file.
CommandOption add_configuration(const CommandOptions& command, ConfigArguments& arguments);

/// The model of a checkpoint, as predict and evaluate are told.
struct ModelArguments {
  ConfigArguments configuration;
  std::vector<std::string> checkpoints;  ///< of images those whose predictions are averaged
  std::string average = "auto";          ///< or always or never
};
/// --config, --set, --quiet, --checkpoint and --average. @return  --checkpoint.
CommandOption add_model(const CommandOptions& command, ModelArguments& arguments);
/// @param outputs  options and what they name; "" for nothing.
/// @throws ConfigError  where one is the configuration that is read.
void keep_configuration(const ConfigArguments& arguments,
                        const std::vector<std::pair<const char*, std::string>>& outputs);
/// @throws ConfigError  for several checkpoints of a model of forecasts.
void require_one_checkpoint(const ModelArguments& arguments);

/// How windows over images are laid.
struct WindowArguments {
  std::optional<double> overlap;
  std::vector<std::string> mirror;  ///< names of spatial dims
};
/// --overlap and --mirror.
void add_windows(const CommandOptions& command, WindowArguments& arguments);
/// @throws ConfigError  for a dim that the images do not have.
WindowOptions windows_of(const WindowArguments& arguments, const DataOptions& data);

/// --members of an ensemble; 0: as the configuration says.
void add_members(const CommandOptions& command, int& members);
/// @throws ConfigError  for several members of a model that has nothing by which they could differ.
void set_members(int members, Configuration& configuration);

}  // namespace jigsaw
