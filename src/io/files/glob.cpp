#include "files/glob.h"

#include <glob.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline files {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> matches(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  globfree(&found);
  std::erase_if(paths, [](const std::string& path) {
    std::error_code ignored;
    return !fs::is_regular_file(path, ignored);
  });
  return paths;
}

/// The folder's own name is no pattern, whatever characters it has.
std::string escaped(const std::string& folder) {
  std::string result;
  for (const char c : folder) {
    if (std::string_view("*?[]\\").find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

}  // namespace

std::vector<std::string> expand_patterns(const std::vector<std::string>& patterns, const fs::path& folder) {
  std::vector<std::string> files;
  std::set<std::string> seen;
  for (const std::string& pattern : patterns) {
    const bool relative = fs::path(pattern).is_relative() && !folder.empty();
    std::vector<std::string> found;
    if (relative) found = matches((escaped(folder.string()) + "/").append(pattern));
    if (found.empty()) found = matches(pattern);
    if (found.empty()) {
      throw DataError(concat("no file matches \"", pattern, "\"", relative ? " in " : "",
                             relative ? folder.string() + " or the working folder" : ""));
    }
    for (const std::string& path : found) {
      std::error_code error;
      const fs::path canonical = fs::weakly_canonical(path, error);
      if (error) {
        throw DataError(concat("the file ", path, ", which \"", pattern,
                               "\" matches, cannot be reached: ", error.message()));
      }
      if (seen.insert(canonical.string()).second) files.push_back(path);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace jigsaw::inline files
