#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace jigsaw::inline base {

/// How what is said to people looks where they read it.
struct Terminal {
  bool rewrites = false;  ///< a line can be replaced by the next one in its place
  bool colours = false;
  bool quiet = false;  ///< nothing is shown but warnings and errors
  int columns = 0;     ///< longer lines are broken at blanks; 0: never

  /// Of this process: nothing but plain lines unless stdout and stderr are terminals (Open MPI gives ranks a
  /// terminal for stdout wherever its own output goes, but not for stderr); no colours where NO_COLOR is set
  /// (no-color.org) or TERM is dumb.
  static Terminal of_process(bool quiet);
};

enum class Colour { kNone, kBold, kFaint, kRed, kGreen, kYellow };

/// The text in a colour, where the terminal has any.
std::string painted(const Terminal& terminal, Colour colour, std::string_view text);
/// The text without colours.
std::string without_colours(std::string_view text);
/// Columns that the text takes: UTF-8, without colours, a column for each code point.
int columns_of(std::string_view text);
/// The text broken at blanks into lines of at most so many columns, all but the first behind `indent` blanks;
/// a longer word stands alone. One line if `columns` is 0.
std::vector<std::string> wrapped(const std::string& text, int columns, int indent);

}  // namespace jigsaw::inline base
