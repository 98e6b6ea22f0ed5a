#include "config/override.h"

#include <charconv>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline config {
namespace {

Json override_value(std::string_view text, const std::string& source) {
  try {
    return parse_json(text, source);
  } catch (const ConfigError&) {
    const bool meant_as_json = text.starts_with('{') || text.starts_with('[') || text.starts_with('"');
    if (meant_as_json) throw;
    return Json(text);
  }
}

/// The entry of `list` that `part` names; `path` is the path of the list.
Json& list_entry(Json& list, const std::string& part, const std::string& path) {
  std::size_t index = 0;
  const char* end = part.data() + part.size();
  const auto [stop, error] = std::from_chars(part.data(), end, index);
  if (error != std::errc() || stop != end || index >= list.size()) {
    const std::string allowed =
        list.empty() ? "it has no entries" : concat("an index from 0 to ", list.size() - 1, " is needed");
    throw ConfigError(
        concat("--set: ", path, " is a list, and ", quote(part), " is no entry of it: ", allowed));
  }
  return list[index];
}

}  // namespace

void apply_override(Json& config, std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    throw ConfigError(concat("--set needs KEY=VALUE, not ", quote(assignment)));
  }
  const std::string_view path = assignment.substr(0, equals);
  const std::vector<std::string> parts = split_path(path);
  if (parts.size() > static_cast<std::size_t>(kMaxJsonDepth)) {
    throw ConfigError(concat("--set: the key ", quote(path), " is deeper than ", kMaxJsonDepth, " levels"));
  }
  Json value = override_value(assignment.substr(equals + 1), concat("--set ", path));
  Json* place = &config;
  std::string walked;
  for (const std::string& part : parts) {
    if (part.empty()) throw ConfigError(concat("--set: the key ", quote(path), " has an empty part"));
    if (place->is_array()) {
      place = &list_entry(*place, part, walked);
    } else {
      if (!place->is_object()) *place = Json::object();
      place = &(*place)[part];
    }
    walked += (walked.empty() ? "" : ".") + part;
  }
  *place = std::move(value);
}

}  // namespace jigsaw::inline config
