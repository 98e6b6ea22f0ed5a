#include <iostream>

#include "commands.h"
#include "shell_pages.h"

namespace jigsaw {

std::function<ExitCode()> declare_completion(const CommandOptions& command,
                                             const Invocation& /*invocation*/) {
  auto shell = std::make_shared<std::string>();
  command.add_option("shell", *shell, "bash or zsh").required().one_of({"bash", "zsh"});
  return [shell, &app = command.parent()] {
    std::cout << (*shell == "bash" ? bash_completion(app) : zsh_completion(app));
    return ExitCode::kDone;
  };
}

std::function<ExitCode()> declare_manual(const CommandOptions& command, const Invocation& /*invocation*/) {
  return [&app = command.parent()] {
    std::cout << manual_page(app, JIGSAW_VERSION);
    return ExitCode::kDone;
  };
}

}  // namespace jigsaw
