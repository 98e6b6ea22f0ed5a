#include <iostream>

#include "commands.h"
#include "job.h"
#include "task/configuration.h"

namespace jigsaw {

std::function<ExitCode()> declare_config(const CommandOptions& command, const Invocation& /*invocation*/) {
  struct Options {
    bool schema = false;
    bool reference = false;
    std::string explain;
  };
  auto options = std::make_shared<Options>();
  command.add_flag("--schema", options->schema, "Print its JSON Schema");
  command.add_option("--explain", options->explain, "Explain one key, by its dotted path");
  command.add_flag("--markdown", options->reference, "Print all keys as docs/configuration.md has them");
  return [options] {
    if (options->schema) {
      Json all = schema<Configuration>();
      for (const char* name : kKeysOfARun)
        all["properties"][name] = {{"description", "A run writes it into its config.json; it is not read."}};
      std::cout << all.dump(2) << '\n';
    } else if (options->reference) {
      std::cout << reference<Configuration>();
    } else {
      std::cout << explain<Configuration>(options->explain) << '\n';
    }
    return ExitCode::kDone;
  };
}

}  // namespace jigsaw
