#include "files/text_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/next_line.h"
#include "base/printable.h"
#include "base/text.h"

namespace jigsaw::inline files {

namespace {

char small(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

bool equal_letters(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, small, small);
}

/// Without blanks at both ends, no-break ones, too.
std::string trimmed(std::string text) {
  constexpr std::string_view kNoBreak = "\xc2\xa0";
  for (std::size_t at = text.find(kNoBreak); at != std::string::npos; at = text.find(kNoBreak, at))
    text.replace(at, kNoBreak.size(), " ");
  constexpr const char* kBlanks = " \t\r";
  text.erase(0, std::min(text.find_first_not_of(kBlanks), text.size()));
  text.erase(text.find_last_not_of(kBlanks) + 1);
  return text;
}

bool stands_unquoted(std::string_view line, char sign) {
  bool quoted = false;
  for (const char letter : line) {
    if (letter == '"') quoted = !quoted;
    if (letter == sign && !quoted) return true;
  }
  return false;
}

}  // namespace

TextTable::TextTable(const std::string& path) : path_(path), text_(path) {
  if (!text_) throw DataError(concat("cannot read ", path));
  if (!next_cells()) refuse("it is empty; its first line must name the columns");
  columns_ = cells_;
}

std::string TextTable::place() const {
  return concat(path_, " line ", line_);
}

void TextTable::refuse(const std::string& why) const {
  throw DataError(concat(place(), ": ", why));
}

std::optional<std::size_t> TextTable::column(const std::vector<std::string_view>& names) const {
  for (const std::string_view name : names) {
    const auto found =
        std::ranges::find_if(columns_, [&](const std::string& own) { return equal_letters(own, name); });
    if (found != columns_.end()) return static_cast<std::size_t>(found - columns_.begin());
  }
  return std::nullopt;
}

/// The cells of the next line that says anything.
bool TextTable::next_cells() {
  std::string line;
  do {
    ++line_;
    if (!next_line(text_, line)) {
      if (text_.bad()) refuse("it cannot be read on");
      return false;
    }
    if (line_ == 1 && (line.starts_with("\xff\xfe") || line.starts_with("\xfe\xff")))
      refuse("it is UTF-16; save it as UTF-8");
    if (line_ == 1 && line.starts_with("\x1f\x8b")) refuse("it is compressed by gzip; unpack it with gunzip");
    if (line_ == 1 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
    line = as_utf8(line);
    if (separator_ == 0 && line.starts_with("sep=") && line.size() > 4) {
      separator_ = line[4];
      line.clear();
    }
    if (line.starts_with("#")) line.clear();
    if (separator_ == 0 && line.find_first_not_of(" \t\r") != std::string::npos) {
      separator_ = ',';
      for (const char sign : {';', '\t'})
        if (stands_unquoted(line, sign)) separator_ = sign;
    }
    cells_ = cells_of(line);
  } while (std::ranges::all_of(cells_, [](const std::string& cell) { return cell.empty(); }));
  return true;
}

bool TextTable::next() {
  if (!next_cells()) return false;
  while (cells_.size() > columns_.size() && cells_.back().empty()) cells_.pop_back();
  if (cells_.size() != columns_.size())
    refuse(
        concat("it has ", counted(std::ssize(cells_), "column"), ", and the first line ", columns_.size()));
  return true;
}

/// Two quotes in quotes are one.
std::vector<std::string> TextTable::cells_of(std::string_view line) const {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      const bool doubled = quoted && i + 1 < line.size() && line[i + 1] == '"';
      if (doubled) cells.back() += line[i++];
      if (!doubled) quoted = !quoted;
    } else if (line[i] == separator_ && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  if (quoted) refuse("a quote (\") is not closed");
  for (std::string& cell : cells) cell = trimmed(std::move(cell));
  return cells;
}

std::optional<double> TextTable::parsed(std::size_t column) const {
  std::string cell = cells_[column];
  if (separator_ != ',') std::ranges::replace(cell, ',', '.');
  if (cell.starts_with("+")) cell.erase(0, 1);
  if (cell.starts_with("\xe2\x88\x92")) cell.replace(0, 3, "-");  // −
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size()) return std::nullopt;
  return value;
}

double TextTable::number(std::size_t column) const {
  const std::optional<double> value = parsed(column);
  if (!value || !std::isfinite(*value))
    refuse(concat(printable(columns_[column]), " must be a number, not \"", printable(cells_[column]), "\""));
  return *value;
}

double TextTable::number_or_nan(std::size_t column) const {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const std::string& cell = cells_[column];
  if (cell.empty() || equal_letters(cell, "NaN") || cell == "NA" || cell == "N/A") return kNone;
  return number(column);
}

}  // namespace jigsaw::inline files
