#pragma once
#include <string>
#include <vector>

#include "base/file.h"

namespace jigsaw::inline files {

/// A table of text that is written (RFC 4180, cells parted by commas), as TextTable reads it. Every failure
/// is a DataError.
class TextTableOutput {
 public:
  /// @param path  the file, which is there and empty
  explicit TextTableOutput(const std::string& path);

  /// A line of these cells; line breaks in them become blanks.
  static std::string line(const std::vector<std::string>& cells);
  void add(const std::string& lines);
  void add_line(const std::vector<std::string>& cells) { add(line(cells)); }
  /// Writes what is left.
  void close();

  /// A number to nine digits, as many as tell all of float32 apart; "" where it is not finite.
  static std::string number(double value);

 private:
  void flush();

  File file_;
  std::string pending_;
  std::int64_t bytes_ = 0;
};

}  // namespace jigsaw::inline files
