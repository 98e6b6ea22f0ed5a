#include "config/override.h"

#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline config {
namespace {

/// The value of a text without quotes: JSON, or else the text itself.
Json bare_value(const std::string& text, const std::string& source) {
  try {
    return parse_json(text, source);
  } catch (const ConfigError&) {
    return Json(text);
  }
}

/// A list whose texts stand without quotes, as shells leave them: [x.nc] or [2019-03-01, 2019-03-24]; nothing
/// when it holds other lists, objects or quotes.
std::optional<Json> bare_list(std::string_view text, const std::string& source) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::nullopt;
  const std::string_view inside = text.substr(1, text.size() - 2);
  if (inside.find_first_of("[]{}\"") != std::string_view::npos) return std::nullopt;
  Json list = Json::array();
  for (const std::string& part : split(inside, ',')) {
    const std::size_t begin = part.find_first_not_of(' '), end = part.find_last_not_of(' ');
    if (begin == std::string::npos) return std::nullopt;
    list.push_back(bare_value(part.substr(begin, end - begin + 1), source));
  }
  return list;
}

Json override_value(std::string_view text, const std::string& source) {
  try {
    return parse_json(text, source);
  } catch (const ConfigError&) {
    if (std::optional<Json> list = bare_list(text, source)) return *list;
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

void require_utf8(std::string_view text, std::string_view what) {
  try {
    static_cast<void>(Json(text).dump());
  } catch (const Json::exception&) {
    throw ConfigError(concat(what, ": ", quote(text),
                             " is no UTF-8, and a configuration is kept as JSON; give it in UTF-8"));
  }
}

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
  require_utf8(assignment, concat("--set ", path));
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
