#include "images/case_names.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>

#include "base/text.h"

namespace jigsaw::inline images {

namespace {

using Names = std::vector<std::string>;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Of a path, from its end; those without a name are none.
Names components(const std::string& path) {
  Names parts = split(path, '/');
  std::erase(parts, "");
  std::reverse(parts.begin(), parts.end());
  return parts;
}

/// What the wildcards of a pattern stand for in the first `length` characters of a name, neighbours as one;
/// nothing where it is of another.
std::optional<Names> matched(const std::string& name, const std::string& pattern, std::size_t length) {
  if (name == pattern) return Names{};
  struct Wildcard {
    std::size_t begin, end;
  };
  std::vector<Wildcard> wildcards;
  std::size_t n = 0, p = 0, star = std::string::npos, before = 0;  // so many stand before the last star
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      before = wildcards.size();
      wildcards.push_back({n, n});
    } else if (p < pattern.size() && pattern[p] == '?') {
      wildcards.push_back({n, n + 1});
      ++n, ++p;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++n, ++p;
    } else if (star != std::string::npos) {
      wildcards.resize(before + 1);
      n = ++wildcards.back().end;
      p = star + 1;
    } else {
      return std::nullopt;
    }
  }
  for (; p < pattern.size(); ++p)
    if (pattern[p] != '*') return std::nullopt;
  Names result;
  std::size_t end = std::string::npos;
  for (const Wildcard& wildcard : wildcards) {
    const std::size_t begin = std::min(wildcard.begin, length);
    const std::string text = name.substr(begin, std::min(wildcard.end, length) - begin);
    if (wildcard.begin == end) {
      result.back() += text;
    } else {
      result.push_back(text);
    }
    end = wildcard.end;
  }
  return result;
}

/// How many characters of a file's name stand before the ending of its format.
std::size_t length_without_format(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kEnds = {".nii.gz", ".nii", ".h5",
                                                            ".hdf5",   ".nc",  ".zarr"};
  const auto* const end = std::ranges::find_if(
      kEnds, [&](std::string_view known) { return name.size() > known.size() && name.ends_with(known); });
  return name.size() - (end == kEnds.end() ? 0 : end->size());
}

/// The same of a path, whose end the pattern names, without the ending of its format.
std::optional<Names> matched_path(const std::string& path, const std::string& pattern) {
  const Names parts = components(path), patterns = components(pattern);
  if (patterns.size() > parts.size()) return std::nullopt;
  Names result;
  for (std::size_t i = patterns.size(); i-- > 0;) {
    const std::size_t length = i == 0 ? length_without_format(parts[i]) : parts[i].size();
    const std::optional<Names> found = matched(parts[i], patterns[i], length);
    if (!found) return std::nullopt;
    for (const std::string& text : *found)
      if (!text.empty() && std::ranges::find(result, text) == result.end()) result.push_back(text);
  }
  return result;
}

bool differ(const Names& names) {
  return std::set<std::string>(names.begin(), names.end()).size() == names.size() &&
         std::ranges::find(names, "") == names.end();
}

bool is_in_name(char c) {
  return c != '/';
}

/// Less what all begin and end with. @param stays  what is not cut in the middle of a run of it.
Names without_common_ends(Names names, bool (*stays)(char)) {
  const auto common = [&] {
    std::size_t length = names[0].size();
    for (const std::string& name : names) {
      const auto [end, ignored] = std::mismatch(names[0].begin(), names[0].end(), name.begin(), name.end());
      length = std::min(length, static_cast<std::size_t>(end - names[0].begin()));
    }
    while (length > 0 && stays(names[0][length - 1])) --length;
    return length;
  };
  for (int end = 0; end < 2; ++end) {  // from the front and from behind
    const std::size_t length = common();
    const bool leaves_none =
        std::ranges::any_of(names, [&](const std::string& name) { return name.size() == length; });
    for (std::string& name : names) {
      if (!leaves_none) name.erase(0, length);
      std::reverse(name.begin(), name.end());
    }
  }
  return names;
}

void drop_format(std::string& name) {
  name.resize(length_without_format(name));
}

/// nnU-Net's, which is the same in all files of a variable.
void drop_channel(Names& names) {
  constexpr std::size_t kDigits = 4;
  const std::string end =
      names[0].size() > kDigits + 1 ? names[0].substr(names[0].size() - kDigits - 1) : std::string();
  if (!end.starts_with("_00") || !std::all_of(end.begin() + 1, end.end(), is_digit)) return;
  if (!std::ranges::all_of(
          names, [&](const std::string& name) { return name.size() > end.size() && name.ends_with(end); }))
    return;
  for (std::string& name : names) name.resize(name.size() - end.size());
}

Names wildcards_of(const Names& paths, const Names& patterns) {
  Names names;
  for (const std::string& path : paths) {
    std::string name;
    for (const std::string& pattern : patterns) {
      const std::optional<Names> found = matched_path(path, pattern);
      if (!found) continue;
      name = join(*found, "_");
      break;
    }
    names.push_back(name);
  }
  return names;
}

}  // namespace

std::vector<std::string> case_names(const std::vector<std::string>& paths,
                                    const std::vector<std::string>& patterns) {
  if (paths.empty()) return {};
  Names names = wildcards_of(paths, patterns);
  if (!differ(names)) {
    Names whole = paths;
    for (std::string& path : whole) drop_format(path);
    names.clear();
    for (const std::string& path : paths) names.push_back(name_of_file(path));
    if (!differ(names)) {
      names = without_common_ends(std::move(whole), is_in_name);
    } else if (names.size() > 1) {
      names = without_common_ends(std::move(names), is_digit);
    }
  }
  drop_channel(names);
  return names;
}

std::vector<std::string> file_stems(const std::vector<std::string>& paths) {
  Names names;
  for (const std::string& path : paths) names.push_back(name_of_file(path));
  if (!names.empty()) drop_channel(names);
  return names;
}

std::string name_of_file(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  drop_format(name);
  return name;
}

std::string first_of(const std::vector<std::string>& names) {
  constexpr std::size_t kNamed = 3;
  const std::size_t named = std::min(names.size(), kNamed);
  const std::string list =
      join(Names(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(named)), ", ");
  return names.size() > named ? concat(list, " and ", names.size() - named, " more") : list;
}

}  // namespace jigsaw::inline images
