#include <iostream>

#include "commands.h"
#include "train/configuration.h"

namespace jigsaw {

void run_config(const ConfigCommand& command) {
  if (command.schema) {
    std::cout << schema<Configuration>().dump(2) << '\n';
  } else if (command.reference) {
    std::cout << reference<Configuration>();
  } else {
    std::cout << explain<Configuration>(command.explain) << '\n';
  }
}

}  // namespace jigsaw
