#pragma once
#include <optional>
#include <string>
#include <vector>

#include "command_options.h"
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
  std::string checkpoint;
  std::string average = "auto";  ///< or always or never
};
/// --config, --set, --quiet, --checkpoint and --average.
void add_model(const CommandOptions& command, ModelArguments& arguments);

/// --overlap of windows over images.
void add_overlap(const CommandOptions& command, std::optional<double>& overlap);

/// --members of an ensemble; 0: as the configuration says.
void add_members(const CommandOptions& command, int& members);
/// @throws ConfigError  for several members of a model that has nothing by which they could differ.
void set_members(int members, Configuration& configuration);

}  // namespace jigsaw
