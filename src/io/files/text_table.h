#pragma once
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace jigsaw::inline files {

/// A table of text whose first line names the columns, parted by tabs, or else by semicolons, or else by
/// commas, as spreadsheets and pandas write them. Cells may stand in quotes (RFC 4180). Passed over are a
/// byte order mark, a first line "sep=;", lines without anything in their cells and those that begin with #,
/// and empty cells behind the last column. Text that is no UTF-8 is taken for Latin-1. Where commas do not
/// part columns they may be those of decimals (47,38).
///
/// Every failure is a DataError that names the file and the line.
class TextTable {
 public:
  explicit TextTable(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<std::string>& columns() const { return columns_; }
  /// The first column with one of these names, in letters of either case.
  std::optional<std::size_t> column(const std::vector<std::string_view>& names) const;
  /// The next line with anything in it; false behind the last one.
  bool next();
  const std::string& text(std::size_t column) const { return cells_[column]; }
  /// @throws DataError  for what is no finite number
  double number(std::size_t column) const;
  /// The same, NaN where the cell is empty or NaN or NA.
  double number_or_nan(std::size_t column) const;
  /// "obs.csv line 3", for errors.
  std::string place() const;
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  bool next_cells();
  std::vector<std::string> cells_of(std::string_view line) const;
  std::optional<double> parsed(std::size_t column) const;

  std::string path_;
  std::ifstream text_;
  char separator_ = 0;  ///< 0: not known yet
  std::int64_t line_ = 0;
  std::vector<std::string> columns_, cells_;
};

}  // namespace jigsaw::inline files
