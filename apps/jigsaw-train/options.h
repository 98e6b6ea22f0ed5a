#pragma once
#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace jigsaw {

/// Which configuration a command works on.
struct ConfigArguments {
  std::string config;                  ///< its file
  std::vector<std::string> overrides;  ///< KEY=VALUE each
  bool quiet = false;                  ///< show warnings and errors only
};
/// --config, also without its name, --set and --quiet. @return  the option that names the file.
CLI::Option* add_configuration(CLI::App& command, ConfigArguments& arguments);

/// The model of a checkpoint, as predict and evaluate are told.
struct ModelArguments {
  ConfigArguments configuration;
  std::string checkpoint;
  std::string average = "auto";  ///< or always or never
};
/// --config, --set, --quiet, --checkpoint and --average.
void add_model(CLI::App& command, ModelArguments& arguments);

/// --overlap of windows over images.
void add_overlap(CLI::App& command, std::optional<double>& overlap);

/// For options that name a file or folder: an empty name is a variable that a script forgot to set.
std::string refuse_empty(const std::string& text);

}  // namespace jigsaw
