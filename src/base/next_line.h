#pragma once
#include <cstddef>
#include <istream>
#include <string>

namespace jigsaw::inline base {

inline constexpr std::size_t kLongestLine = std::size_t{1} << 24;

/// The next line of a text, without its line break, as std::getline() reads it; "" in place of one that is
/// longer than any line that this program writes, of which nothing is held.
/// @return  whether there was one; eof() is set with the last, where no line break ends it.
bool next_line(std::istream& text, std::string& line, std::size_t longest = kLongestLine);

}  // namespace jigsaw::inline base
