#include "options.h"

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

void add_model(const CommandOptions& command, ModelArguments& arguments) {
  add_configuration(command, arguments.configuration).required();
  command
      .add_option("--checkpoint", arguments.checkpoint,
                  "The checkpoint's folder, or a run directory for its newest")
      .required();
  command
      .add_option("--average", arguments.average,
                  "The moving average of the weights: auto, where there is one; always; never")
      .one_of({"auto", "always", "never"});
}

void add_overlap(const CommandOptions& command, std::optional<double>& overlap) {
  command
      .add_option("--overlap", overlap,
                  "Of images: the part of their extent by which neighbouring windows overlap; default 0.25")
      .within(0.0, 0.95);
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
