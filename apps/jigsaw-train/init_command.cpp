#include <filesystem>
#include <fstream>
#include <iostream>

#include "base/text.h"
#include "commands.h"
#include "config/config.h"
#include "train/configuration.h"
#include "train/first_configuration.h"

namespace jigsaw {

namespace {

namespace fs = std::filesystem;

std::optional<Task> task_of(const std::string& name) {
  if (name == "forecast") return Task::kForecast;
  if (name == "denoise") return Task::kDenoise;
  if (name == "map") return Task::kMap;
  return {};
}

}  // namespace

void run_init(const InitCommand& command) {
  const fs::path output(command.output);
  if (fs::exists(output)) {
    throw ConfigError(concat("--output ", command.output, " is there already, and is not written over"));
  }
  FirstOptions options{command.files, task_of(command.task), command.recipe};
  options.name = output.stem().string();
  options.folder = output.has_parent_path() ? output.parent_path().string() : ".";
  const std::string text = first_configuration(options);
  parse<Configuration>(parse_json(text, command.output));
  std::ofstream file(output);
  file << text;
  file.close();
  if (!file) throw ConfigError(concat("--output ", command.output, " cannot be written"));
  std::cout << text << "\nwrote " << command.output << "; next:\n  jigsaw-train check --config "
            << command.output << "\n  jigsaw-train --config " << command.output << '\n';
}

}  // namespace jigsaw
