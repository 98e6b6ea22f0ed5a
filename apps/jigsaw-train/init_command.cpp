#include <fcntl.h>

#include <filesystem>
#include <iostream>

#include "base/error.h"
#include "base/file.h"
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
    throw ConfigError(concat("--output ", output, " cannot be written: ", error.what()));
  }
}

}  // namespace

void run_init(const InitCommand& command) {
  const fs::path output(command.output);
  std::error_code unreadable;
  if (fs::exists(fs::symlink_status(output, unreadable)))
    throw ConfigError(concat("--output ", command.output, " is there already, and is not written over"));
  FirstOptions options{command.files, task_of(command.task), command.recipe};
  options.name = output.stem().string();
  options.folder = output.has_parent_path() ? output.parent_path().string() : ".";
  const std::string text = first_configuration(options);
  parse<Configuration>(parse_json(text, command.output));
  write(command.output, text);
  std::cout << text << "\nwrote " << command.output << "; next:\n  jigsaw-train check --config "
            << command.output << "\n  jigsaw-train --config " << command.output << '\n';
}

}  // namespace jigsaw
