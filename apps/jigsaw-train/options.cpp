#include "options.h"

namespace jigsaw {

CLI::Option* add_configuration(CLI::App& command, ConfigArguments& arguments) {
  command
      .add_option("--set", arguments.overrides,
                  "KEY=VALUE: overrides one key by its dotted path; may be repeated")
      ->take_all()
      ->allow_extra_args(false);
  command.add_flag("--quiet", arguments.quiet, "Show warnings and errors only; log.txt gets all");
  return command
      .add_option("-c,--config,configuration", arguments.config,
                  "The configuration (JSON) of a run; --config may be left out")
      ->check(refuse_empty);
}

void add_model(CLI::App& command, ModelArguments& arguments) {
  add_configuration(command, arguments.configuration)->required();
  command
      .add_option("--checkpoint", arguments.checkpoint,
                  "The checkpoint's folder, or a run directory for its newest")
      ->required();
  command
      .add_option("--average", arguments.average,
                  "The moving average of the weights: auto, where there is one; always; never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
}

void add_overlap(CLI::App& command, std::optional<double>& overlap) {
  command
      .add_option("--overlap", overlap,
                  "Of images: the part of their extent by which neighbouring windows overlap; default 0.25")
      ->check(CLI::Range(0.0, 0.95));
}

std::string refuse_empty(const std::string& text) {
  return text.empty() ? "must not be empty" : "";
}

}  // namespace jigsaw
