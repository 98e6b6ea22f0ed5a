#pragma once
#include <string>

namespace CLI {
class App;
}

namespace jigsaw {

/// What makes bash complete commands, options and the words that an option takes, made of what the parser
/// declares. To be read by bash (`source`), or installed as share/bash-completion/completions/jigsaw-train.
std::string bash_completion(const CLI::App& app);

/// The same for zsh: share/zsh/site-functions/_jigsaw-train.
std::string zsh_completion(const CLI::App& app);

/// The manual page in troff's man macros: commands, options, exit codes.
std::string manual_page(const CLI::App& app, const std::string& version);

}  // namespace jigsaw
