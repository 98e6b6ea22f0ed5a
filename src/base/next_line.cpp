#include "base/next_line.h"

namespace jigsaw::inline base {

namespace {

/// Up to a line break, or the end.
bool take_line(std::istream& text, std::string& line, std::size_t longest) {
  using Traits = std::istream::traits_type;
  std::streambuf& buffer = *text.rdbuf();
  bool any = false, too_long = false;
  for (auto c = buffer.sbumpc(); c != Traits::eof(); c = buffer.sbumpc()) {
    any = true;
    if (c == '\n') return true;
    if (too_long) continue;
    line.push_back(Traits::to_char_type(c));
    too_long = line.size() > longest;
    if (too_long) line = std::string();
  }
  text.setstate(any ? std::ios::eofbit : std::ios::eofbit | std::ios::failbit);
  return any;
}

}  // namespace

bool next_line(std::istream& text, std::string& line, std::size_t longest) {
  line.clear();
  if (!text.good()) return false;
  try {
    return take_line(text, line, longest);
  } catch (const std::ios::failure&) {  // what a file that cannot be read throws, unlike std::getline()
    text.setstate(std::ios::badbit);
    return false;
  }
}

}  // namespace jigsaw::inline base
