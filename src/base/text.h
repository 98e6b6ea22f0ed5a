#pragma once
#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace jigsaw::inline base {

/// The arguments written one after the other, as by operator<<.
template <typename... Args>
std::string concat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}

/// The items joined by a separator, as by operator<<: join({1, 2}, ", ") is "1, 2".
template <typename Range>
std::string join(const Range& items, std::string_view separator) {
  std::ostringstream out;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out << separator;
    out << item;
    first = false;
  }
  return out.str();
}

/// The parts of `text` between separators; empty parts are kept.
std::vector<std::string> split(std::string_view text, char separator);

/// A text as one cell of a table of text (RFC 4180): in quotes where it holds a comma, a quote or a line
/// break, or begins with #.
std::string csv_cell(const std::string& text);

/// `*` stands for any run of characters, everything else for itself.
bool matches_pattern(std::string_view text, std::string_view pattern);

/// The candidate that is the word in other capitals, or whose initials it is ("lr": learning_rate), or else
/// the nearest in edit distance (Damerau-Levenshtein), or "" when none is near enough to be a likely typing
/// error.
std::string closest(std::string_view word, std::span<const std::string> candidates);
/// Whether the word is the name but for one edit, capitals or an end that is left out, or its initials.
bool differs_by_a_slip(std::string_view word, std::string_view name);

/// " (did you mean \"x\"?)" for the closest candidate, or "".
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

/// "1 step", "2 steps". @param one  the noun, whose plural has an s behind it.
std::string counted(std::int64_t count, std::string_view one);

/// "a.nc", "a.nc and 1 more file", "a.nc and 2 more files": what is first, and how many more of its kind.
std::string first_and_more(std::string_view first, std::int64_t more, std::string_view kind);

/// "1.5 GiB", "317 MiB", "12 B".
std::string human_bytes(std::int64_t bytes);

/// "1:02:03" or "2:03" for a number of seconds.
std::string human_seconds(double seconds);

/// FNV-1a, 64 bit: a stable hash of a name, equal on every machine.
std::uint64_t stable_hash(std::string_view text);

}  // namespace jigsaw::inline base
