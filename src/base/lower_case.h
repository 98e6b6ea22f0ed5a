#pragma once
#include <string>
#include <string_view>

namespace jigsaw::inline base {

/// A to Z as a to z, whatever the language.
inline std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return lower;
}

}  // namespace jigsaw::inline base
