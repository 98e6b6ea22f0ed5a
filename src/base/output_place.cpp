#include "base/output_place.h"

#include <fcntl.h>

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

bool begins_with(const std::string& path, std::string_view text) {
  const File file(path, O_RDONLY);
  if (file.size() < std::ssize(text)) return false;
  std::string begin(text.size(), '\0');
  file.read(std::as_writable_bytes(std::span(begin)), 0);
  return begin == text;
}

}  // namespace jigsaw::inline base
