#pragma once
#include <string>
#include <string_view>

namespace jigsaw::inline base {

/// The text fit to stand in one line of a terminal: control characters, and bytes that are no UTF-8, become
/// "\\x1b".
std::string printable(std::string_view text);
/// Whether all bytes are those of UTF-8.
bool is_utf8(std::string_view text);
/// The text itself where it is UTF-8, else what it says in Latin-1.
std::string as_utf8(const std::string& text);

}  // namespace jigsaw::inline base
