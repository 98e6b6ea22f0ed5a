#include "base/output_place.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace jigsaw::inline base {

void check_output_place(const std::string& option, const std::string& path, const std::string& is_not,
                        const std::function<bool(const std::string& path)>& is_alike) {
  std::error_code unreadable;  // what cannot be looked at is told where it is written
  if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(path, unreadable))) return;
  try {
    if (is_alike(path)) return;
  } catch (const Error&) {
    // What cannot be read may be anything.
  }
  throw ConfigError(concat("command line: ", option, " ", path, " is there already and ", is_not,
                           "; name another file, or remove that one first"));
}

void check_placeholders(const std::string& option, const std::string& path,
                        const std::vector<std::string>& known) {
  const auto refuse = [&](const std::string& what, const std::string& hint) {
    std::vector<std::string> names;
    for (const std::string& name : known) names.push_back("{" + name + "}");
    throw ConfigError(concat("command line: ", option, " ", path, ": ", what, " is no placeholder", hint,
                             names.empty() ? "; here there are none" : "; there is " + join(names, ", ")));
  };
  const std::size_t folder = path.find_last_of('/');
  for (std::size_t at = path.find_first_of("{}", folder == std::string::npos ? 0 : folder);
       at != std::string::npos; at = path.find_first_of("{}", at)) {
    const std::size_t end = path.find_first_of("{}", at + 1);
    if (path[at] == '}' || end == std::string::npos || path[end] == '{') refuse("a brace alone", "");
    const std::string word = path.substr(at + 1, end - at - 1);
    if (std::ranges::find(known, word) == known.end()) refuse("{" + word + "}", did_you_mean(word, known));
    at = end + 1;
  }
}

bool begins_with(const std::string& path, std::string_view text) {
  const File file(path, O_RDONLY);
  if (file.size() < std::ssize(text)) return false;
  std::string begin(text.size(), '\0');
  file.read(std::as_writable_bytes(std::span(begin)), 0);
  return begin == text;
}

}  // namespace jigsaw::inline base
