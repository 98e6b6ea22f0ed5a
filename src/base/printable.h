#pragma once
#include <string>
#include <string_view>

namespace jigsaw::inline base {

/// The text fit to stand in one line of a terminal: control characters, and bytes that are no UTF-8, become
/// "\\x1b".
std::string printable(std::string_view text);

}  // namespace jigsaw::inline base
