#include "base/printable.h"

#include <algorithm>
#include <cstdio>

namespace jigsaw::inline base {

namespace {

/// Bytes of the UTF-8 character that `text` begins with; 0 when it begins with none, or with a control
/// character.
std::size_t printable_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
  }
  const bool second_set_of_controls = first == 0xc2 && byte(1) < 0xa0;
  return second_set_of_controls ? 0 : length;
}

/// Bytes of one of the controls beyond ASCII, U+0080 to U+009F; 0 of anything else.
std::size_t control_bytes(std::string_view text) {
  const bool is_one =
      text.size() > 1 && text[0] == '\xc2' && (static_cast<unsigned char>(text[1]) & 0xe0U) == 0x80;
  return is_one ? 2 : 0;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const bool ascii = static_cast<unsigned char>(text[0]) < 0x80;
    const std::size_t bytes = ascii ? 1 : std::max(printable_bytes(text), control_bytes(text));
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string as_utf8(const std::string& text) {
  if (is_utf8(text)) return text;
  std::string converted;
  for (const char byte : text) {
    const auto code = static_cast<unsigned char>(byte);
    if (code < 0x80) {
      converted += byte;
    } else {
      converted += static_cast<char>(0xC0U | code >> 6U);
      converted += static_cast<char>(0x80U | (code & 0x3FU));
    }
  }
  return converted;
}

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t bytes = printable_bytes(text);
    if (bytes > 0) {
      result += text.substr(0, bytes);
    } else {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned char>(text[0]));
      result += escaped;
    }
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return result;
}

}  // namespace jigsaw::inline base
