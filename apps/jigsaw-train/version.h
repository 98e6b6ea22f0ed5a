#pragma once
#include <string>
#include <utility>
#include <vector>

namespace jigsaw {

/// What this executable is: its version and commit, the compiler, the backends that it holds, and the
/// libraries that it found at run time, each with its version. config.json of every run holds the same.
std::vector<std::pair<std::string, std::string>> versions();

/// As `--version` prints it: a line each.
std::string version_text();

}  // namespace jigsaw
