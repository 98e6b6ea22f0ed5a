#pragma once
#include <string>

namespace jigsaw::testing {

/// A word for the shell, whatever characters it has.
inline std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace jigsaw::testing
