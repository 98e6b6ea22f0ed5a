#include "config/json.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <unordered_set>

#include "base/error.h"
#include "base/file.h"
#include "base/file_kind.h"
#include "base/text.h"

template class nlohmann::basic_json<nlohmann::ordered_map>;
template class nlohmann::detail::serializer<nlohmann::ordered_json>;

namespace jigsaw::inline config {
namespace {

constexpr std::int64_t kMaxFileBytes = 16 << 20;
constexpr std::size_t kMaxShownBytes = 60;

std::string cut(std::string_view text, std::size_t bytes) {
  return text.size() <= bytes ? std::string(text) : concat(text.substr(0, bytes), "...");
}

/// What went wrong, without the library's own prefix and position.
std::string reason(const std::exception& error) {
  std::string_view text = error.what();
  const std::size_t position = text.find("column ");
  const std::size_t colon = text.find(": ", position == std::string_view::npos ? 0 : position);
  if (position != std::string_view::npos && colon != std::string_view::npos) {
    text.remove_prefix(colon + 2);
  } else if (const std::size_t bracket = text.find("] "); bracket != std::string_view::npos) {
    text.remove_prefix(bracket + 2);
  }
  return cut(text, 200);
}

/// Builds the value from the parser's events; unlike the library's own builder it
/// refuses repeated keys and deep nesting.
class Builder {
 public:
  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;

  Builder(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  bool null() { return add(nullptr) != nullptr; }
  bool boolean(bool value) { return add(value) != nullptr; }
  bool number_integer(number_integer_t value) { return add(value) != nullptr; }
  bool number_unsigned(number_unsigned_t value) { return add(value) != nullptr; }
  bool number_float(number_float_t value, const string_t&) { return add(value) != nullptr; }
  bool string(string_t& value) { return add(std::move(value)) != nullptr; }
  bool binary(binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(string_t& name) {
    if (!open_.back().names.insert(name).second) {
      throw ConfigError(concat(source_, ": the key ", quote(name), " stands twice in the same object"));
    }
    // Appends without the library's search for the name, which would cost a pass over the object.
    auto& object = open_.back().value->get_ref<Json::object_t&>();
    object.emplace_back(name, nullptr);
    slot_ = &object.back().second;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& last, const Json::exception& error) {
    const std::string_view before = text_.substr(0, position == 0 ? 0 : position - 1);
    std::string usual = usual_mistake(position);
    if (usual.empty()) usual = between_entries(last, error);
    const std::string what = ends_after_comma(position)
                                 ? concat("a comma stands before '", text_[position - 1],
                                          "'; leave it out, JSON has none at the end")
                             : usual.empty() ? reason(error)
                                             : usual;
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t start = before.rfind('\n');
    const std::size_t column = before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1;
    throw ConfigError(concat(source_, ", line ", line, ", column ", column, ": ", what));
  }

  Json take() { return std::move(root_); }

 private:
  /// Whether the character at which parsing failed closes a list or an object that ends with a comma.
  bool ends_after_comma(std::size_t position) const {
    if (position < 2 || position > text_.size()) return false;
    const std::size_t last = text_.find_last_not_of(" \t\r\n", position - 2);
    return std::string_view("}]").find(text_[position - 1]) != std::string_view::npos &&
           last != std::string_view::npos && text_[last] == ',';
  }

  /// What stands where a list or an object goes on or ends, and should not; "" for anything else.
  static std::string between_entries(const std::string& token, const Json::exception& error) {
    const std::string_view text = error.what();
    const bool in_list = text.find("while parsing array - unexpected ") != std::string_view::npos &&
                         text.ends_with("expected ']'"),
               in_object = text.find("while parsing object - unexpected ") != std::string_view::npos &&
                           text.ends_with("expected '}'");
    if (!in_list && !in_object) return "";
    const auto is_sign = [&](char sign) {
      return text.find(concat("unexpected '", sign, "'")) != std::string_view::npos;
    };
    if (is_sign('}')) return "a list ends with ], and here with }";
    if (is_sign(']')) return "an object ends with }, and here with ]";
    if (is_sign(':')) return "";
    for (const char bracket : {'{', '['})  // the token still holds the number before it
      if (is_sign(bracket)) return concat("a comma is missing before ", bracket);
    return concat("a comma is missing before ", cut(token, kMaxShownBytes));
  }

  /// What people write who are used to Python, or whose editor means well; "" for anything else.
  std::string usual_mistake(std::size_t position) const {
    if (text_.starts_with("\xff\xfe") || text_.starts_with("\xfe\xff"))
      return "the file is UTF-16; save it as UTF-8";
    if (text_.find_first_not_of(" \t\r\n") == std::string_view::npos) return "the file is empty";
    if (position > text_.size() && !open_.empty()) {
      return concat("the file ends before ",
                    open_.size() == 1 ? "the last" : concat("the last ", open_.size()), " of { and [ ",
                    open_.size() == 1 ? "is" : "are", " closed");
    }
    if (position == 0 || position > text_.size()) return "";
    std::size_t begin = position - 1;
    const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
    while (begin > 0 && is_letter(text_[begin]) && is_letter(text_[begin - 1])) --begin;
    const std::string_view rest = text_.substr(begin);
    const auto is_word = [](std::string_view text, std::string_view word) {
      return text.starts_with(word) &&
             (text.size() == word.size() || std::isalnum(static_cast<unsigned char>(text[word.size()])) == 0);
    };
    for (const auto& [written, meant] : {std::pair{"True", "true"}, {"False", "false"}, {"None", "null"}}) {
      if (is_word(rest, written)) return concat(written, " is ", meant, " in JSON");
    }
    for (const char* number : {"NaN", "Infinity", "nan", "inf"})
      if (is_word(rest, number)) return concat("JSON has no number ", number);
    if (rest.starts_with("#")) return "a comment begins with // in place of #";
    for (const auto& [sign, what] : {std::pair{"\xc2\xa0", "a no-break space (U+00A0)"},
                                     {"\xe2\x80\xaf", "a narrow no-break space (U+202F)"},
                                     {"\xe2\x80\x8b", "a zero-width space (U+200B)"},
                                     {"\xef\xbb\xbf", "a byte order mark (U+FEFF)"}})
      if (rest.starts_with(sign)) return concat(what, " stands here, as copied text may hold; delete it");
    for (const char* minus : {"−", "–", "—"})
      if (rest.starts_with(minus)) return concat("a number begins with a plain minus (-), not ", minus);
    if (rest.starts_with("…")) return "… stands for something that was left out";
    for (const char* quote : {"'", "“", "”", "„", "‘", "’"})
      if (rest.starts_with(quote))
        return concat("texts stand between straight double quotes (\"), not ", quote);
    return "";
  }

  struct Open {
    Json* value;
    std::unordered_set<std::string> names;
  };

  template <typename Value>
  Json* add(Value&& value) {
    if (open_.empty()) {
      root_ = std::forward<Value>(value);
      return &root_;
    }
    Json& parent = *open_.back().value;
    if (parent.is_array()) {
      parent.push_back(std::forward<Value>(value));
      return &parent.back();
    }
    *slot_ = std::forward<Value>(value);
    return slot_;
  }

  bool open(Json container) {
    if (open_.size() == static_cast<std::size_t>(kMaxJsonDepth)) {
      throw ConfigError(
          concat(source_, ": objects and lists are nested deeper than ", kMaxJsonDepth, " levels"));
    }
    open_.push_back({add(std::move(container)), {}});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  const std::string& source_;
  Json root_;
  std::vector<Open> open_;
  Json* slot_ = nullptr;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& source) {
  Builder builder(text, source);
  Json::sax_parse(text.begin(), text.end(), &builder, Json::input_format_t::json, true, true);
  return builder.take();
}

namespace {

/// Whether the first line that says anything is "name: …" or a mark of YAML.
bool looks_like_yaml(std::string_view text) {
  for (const std::string& line : split(text.substr(0, 4096), '\n')) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos || line[begin] == '#') continue;
    const std::size_t end =
        line.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.", begin);
    const bool named = end != std::string::npos && end > begin && line[end] == ':' &&
                       (end + 1 == line.size() || line.find_first_of(" \t\r", end) == end + 1);
    return named || line.compare(begin, 3, "---") == 0 || line.compare(begin, 5, "%YAML") == 0;
  }
  return false;
}

/// Other files that people give for a configuration; JSON begins otherwise.
void refuse_other_content(std::string_view text, const std::string& path, const std::string& what) {
  if (looks_like_yaml(text)) {
    throw ConfigError(concat(path, " looks like YAML; a ", what,
                             " is JSON, convert it with: python3 -c 'import json, sys, yaml; "
                             "json.dump(yaml.safe_load(sys.stdin), sys.stdout, indent=2)' < ",
                             shell_word(path), " > config.json"));
  }
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos ||
      std::string_view("{[/\"").find(text[begin]) != std::string_view::npos) {
    return;
  }
  const std::optional<FileKind> kind = kind_of_file(path);
  if (!kind || kind->name == "a text file") return;
  throw ConfigError(concat(path, " is ", kind->name, ", not a ", what, ", which is JSON",
                           what == "configuration" ? " and names such files in data.files" : ""));
}

std::string config_text(const std::string& path, const std::string& what) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw ConfigError(concat("the ", what, " ", path, " is a folder, not a file"));
  }
  try {
    return read_text(path, kMaxFileBytes);
  } catch (const FileError& error) {
    throw ConfigError(concat("the ", what, " file cannot be used: ", error.what()));
  }
}

}  // namespace

Json load_config(const std::string& path, const std::string& what) {
  const std::string text = config_text(path, what);
  refuse_other_content(text, path, what);
  Json json = parse_json(text, path);
  if (!json.is_object()) {
    throw ConfigError(concat("the ", what, " file ", path, " must hold an object, not ", describe(json)));
  }
  return json;
}

std::string sentence_of(const Json::exception& error) {
  const std::string_view text = error.what();
  const std::size_t end = text.starts_with("[json.exception.") ? text.find("] ") : std::string_view::npos;
  return std::string(end == std::string_view::npos ? text : text.substr(end + 2));
}

std::string quote(std::string_view text) {
  return Json(cut(text, kMaxShownBytes)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string describe(const Json& json) {
  if (json.is_string()) return concat("the string ", quote(json.get_ref<const std::string&>()));
  if (json.is_number()) return concat("the number ", json.dump());
  if (json.is_array()) return json.empty() ? "an empty list" : concat("a list of ", json.size());
  if (json.is_object()) return "an object";
  return json.dump();
}

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> parts;
  for (std::string& part : split(path, '.')) {
    while (part.ends_with(']')) {
      const std::size_t bracket = part.find('[');
      if (bracket == std::string::npos || bracket == 0) break;
      const std::size_t close = part.find(']', bracket);
      parts.push_back(part.substr(0, bracket));
      part = part.substr(bracket + 1, close - bracket - 1) + part.substr(close + 1);
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace jigsaw::inline config
