#include "files/glob.h"

#include <glob.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/file_kind.h"
#include "base/text.h"

namespace jigsaw::inline files {

namespace {

namespace fs = std::filesystem;

/// What a pattern names: files, and what else there is of that name.
struct Matches {
  std::vector<std::string> files, folders;
  bool denied = false;  ///< where we may not look there may be more

  bool empty() const { return files.empty() && folders.empty(); }
};

/// @param literally  what it names if none of its characters stands for others.
Matches matches(const std::string& pattern, const fs::path& literally) {
  glob_t found{};
  std::vector<std::string> paths;
  Matches result;
  const auto exists = [&](const fs::path& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    result.denied = result.denied || error == std::errc::permission_denied;
    return fs::exists(status);
  };
  if (exists(literally)) {
    paths = {literally.string()};
  } else if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  } else {
    globfree(&found);
    const auto is_denied = [](const char* /*folder*/, int error) { return error == EACCES ? 1 : 0; };
    result.denied = result.denied || ::glob(pattern.c_str(), 0, is_denied, &found) == GLOB_ABORTED;
  }
  globfree(&found);
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (!exists(path)) continue;
    if (fs::is_regular_file(path, ignored) || is_zarr_store(path)) {
      result.files.push_back(path);
    } else if (fs::is_directory(path, ignored)) {
      result.folders.push_back(path);
    }
  }
  return result;
}

/// The ending of most files and stores in a folder that have one of a format; "" where none has.
std::string ending_in(const fs::path& folder) {
  static constexpr std::array kEndings = {".nii.gz", ".nii", ".nc",    ".h5",   ".hdf5", ".nc4",
                                          ".zarr",   ".grb", ".grib2", ".grb2", ".grib"};
  std::map<std::string, std::int64_t> counts;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const auto* const found =
        std::ranges::find_if(kEndings, [&](const char* ending) { return name.ends_with(ending); });
    if (found != kEndings.end()) ++counts[*found];
  }
  const auto most = std::ranges::max_element(counts, {}, [](const auto& counted) { return counted.second; });
  return most == counts.end() ? "" : most->first;
}

/// Whether one of its first files is DICOM.
bool holds_dicom(const fs::path& folder) {
  constexpr int kLookedAt = 20;
  std::error_code error;
  int looked_at = 0;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end && looked_at++ < kLookedAt;
       entry.increment(error)) {
    const std::optional<FileKind> kind = kind_of_file(entry->path().string());
    if (kind && kind->name == "a DICOM file") return true;
  }
  return false;
}

[[noreturn]] void refuse_folder(const std::string& path) {
  const std::string ending = ending_in(path);
  const fs::path folder = fs::path(path) / "";  // whether a / ends its name or not
  if (ending.empty() && holds_dicom(path)) {
    const std::string converted = concat(folder.parent_path().string(), "_nifti");
    throw DataError(concat(path, " is a folder of DICOM files; convert them with: mkdir ",
                           shell_word(converted), " && dcm2niix -z y -o ", shell_word(converted), " ",
                           shell_word(path)));
  }
  throw DataError(concat(path, " is a folder, not a file; name the files in it, as \"",
                         (folder / concat("*", ending.empty() ? ".nc" : ending)).string(), "\""));
}

/// A pattern of glob() in which these characters stand for themselves.
std::string escaped(const std::string& text, std::string_view characters) {
  std::string result;
  for (const char c : text) {
    if (characters.find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

/// In the name of the folder of a configuration all characters are plain, in patterns all but * and ?.
constexpr std::string_view kPlain = "[]\\", kPlainInFolder = "*?[]\\";

constexpr std::size_t kLongestPattern = 2000;

/// As shells have it: what begins with ~/ lies in the home of this user.
std::string from_home(const std::string& pattern) {
  const char* const home = std::getenv("HOME");
  return pattern.starts_with("~/") && home != nullptr && *home == '/' ? concat(home, pattern.substr(1))
                                                                      : pattern;
}

}  // namespace

std::vector<std::string> expand_patterns(const std::vector<std::string>& patterns, const fs::path& folder) {
  std::vector<std::string> files;
  std::set<std::string> seen;                              // what files are, wherever links lead
  std::vector<std::pair<std::string, std::string>> links;  // and where each leads
  for (const std::string& given : patterns) {
    const std::string pattern = from_home(given);
    const bool relative = fs::path(pattern).is_relative() && !folder.empty();
    Matches found;
    if (pattern.size() > kLongestPattern) {  // glob() calls itself for each folder of it
      throw DataError(concat("a pattern of ", pattern.size(), " characters, \"", pattern.substr(0, 40),
                             "…\", is too long"));
    }
    const std::string escaped_pattern = escaped(pattern, kPlain);
    if (relative)
      found = matches(concat(escaped(folder.string(), kPlainInFolder), "/", escaped_pattern),
                      concat(folder.string(), "/", pattern));
    const bool denied = found.denied;
    if (found.empty()) found = matches(escaped_pattern, pattern);
    if (found.empty() && pattern.find("://") != std::string::npos)
      throw DataError(
          concat(pattern, " cannot be read: files and stores are read where they stand in folders"));
    if (found.empty()) {
      throw DataError(
          concat("no file matches \"", pattern, "\"", relative ? " in " : "",
                 relative ? folder.string() + " or the working folder" : "",
                 denied || found.denied ? " as far as this user may look: a folder denies permission" : ""));
    }
    if (found.files.empty()) refuse_folder(found.folders.front());
    for (const std::string& path : found.files) {
      std::error_code error;
      const fs::path canonical = fs::weakly_canonical(path, error);
      if (error) {
        throw DataError(concat("the file ", path, ", which \"", pattern,
                               "\" matches, cannot be reached: ", error.message()));
      }
      if (fs::is_symlink(path, error)) {
        links.emplace_back(path, canonical.string());
      } else if (seen.insert(canonical.string()).second) {
        files.push_back(path);
      }
    }
  }
  // Stores of data have one copy of what is alike, to which links of several names lead, each a file of its
  // own; not so links to a file, or link, that is named, too.
  const auto absolute = [](const fs::path& path) { return fs::absolute(path).lexically_normal(); };
  std::set<fs::path> named;
  for (const auto& [path, target] : links) named.insert(absolute(path));
  for (const auto& [path, target] : links) {
    std::error_code error;
    const fs::path next = absolute(fs::path(path).parent_path() / fs::read_symlink(path, error));
    const std::string name = concat(target, "/", fs::path(path).filename().string());
    if (!seen.contains(target) && !named.contains(next) && seen.insert(name).second) files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace jigsaw::inline files
