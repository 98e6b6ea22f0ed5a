#include "config/explain.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "config/key_search.h"
#include "config/section_defaults.h"
#include "config/tagged.h"

namespace jigsaw::inline config {
namespace {

/// Paths longer than this are surely wrong; tagged sections within each other could be searched for ever.
constexpr std::size_t kMaxParts = 12;

std::string default_text(const KeyInfo& key, const Json& default_value) {
  return key.demanded(default_value) ? "required" : concat("default: ", default_value.dump());
}

std::string named_list(const std::vector<NamedValue>& values) {
  std::size_t width = 0;
  for (const NamedValue& value : values) width = std::max(width, value.name.size());
  std::string text;
  for (const NamedValue& value : values) {
    text += concat("    ", value.name, std::string(width + 2 - value.name.size(), ' '), value.doc, "\n");
  }
  return text;
}

std::string keys_text(const KeyTable& table, const Json& defaults) {
  std::vector<NamedValue> lines;
  for (const KeyInfo* key : table.keys()) {
    const std::string type = key->form().text(Wording::kPlain);
    const bool section = key->form().table() != nullptr;
    const std::string rest = section ? "" : concat("; ", default_text(*key, defaults.at(key->name)));
    lines.push_back({key->name, type + rest});
  }
  return "  keys:\n" + named_list(lines);
}

/// The keys and types that stand below a form.
std::string below_text(const Form& form, const Json& default_value) {
  std::string text;
  if (const KeyTable* table = form.table()) {
    text += keys_text(*table, section_defaults(*table, default_value));
  }
  if (const TagRegistry* tags = form.tags()) text += "  types:\n" + named_list(tags->names());
  for (const Form* part : form.parts()) text += below_text(*part, default_value);
  return text;
}

std::string key_text(const std::string& path, const std::string& where, const KeyInfo& key,
                     const Json& default_value) {
  std::string text = concat(path, where, "\n  ", key.form().text(Wording::kPlain), "\n");
  if (key.form().table() == nullptr) text += concat("  ", default_text(key, default_value), "\n");
  text += concat("  ", key.doc, "\n");
  for (const std::string& condition : key.conditions) text += concat("  Must ", condition, ".\n");
  for (const KeyInfo::Use& use : key.uses) text += concat("  Counts only where ", use.condition.text, ".\n");
  if (key.changeable) text += concat("  ", kChangeableSentence, "\n");
  const std::vector<NamedValue> values = key.form().values();
  if (!values.empty()) text += "  values:\n" + named_list(values);
  return text + below_text(key.form(), default_value);
}

/// Follows the parts of a path through tables and tagged types and collects what it names.
class Search {
 public:
  explicit Search(std::vector<std::string> parts) : parts_(std::move(parts)) {}

  void in_table(const KeyTable& table, const Json& defaults, std::size_t i, const std::string& path,
                const std::string& where) {
    for (const KeyInfo* key : table.keys()) {
      note(i, key->name);
      if (key->name != parts_[i]) continue;
      const std::string key_path = concat(path, path.empty() ? "" : ".", key->name);
      const Json& default_value = defaults.at(key->name);
      if (i + 1 == parts_.size()) {
        found_.push_back(key_text(key_path, where, *key, default_value));
      } else {
        in_form(key->form(), default_value, i + 1, key_path, where);
      }
    }
  }

  bool found() const { return !found_.empty(); }
  std::string text() const { return join(found_, "\n"); }
  /// What may have been meant by a path that was not found.
  std::string suggestion() const { return did_you_mean(parts_[deepest_], candidates_); }

 private:
  void in_form(const Form& form, const Json& default_value, std::size_t i, const std::string& path,
               const std::string& where) {
    reach(i);
    if (const KeyTable* table = form.table()) {
      in_table(*table, section_defaults(*table, default_value), i, path, where);
    }
    if (form.tags() != nullptr) in_tags(*form.tags(), i, path, where);
    for (const Form* part : form.parts()) in_form(*part, default_value, i, path, where);
  }

  void in_tags(const TagRegistry& tags, std::size_t i, const std::string& path, const std::string& where) {
    const bool last = i + 1 == parts_.size();
    note(i, "type");
    if (last && parts_[i] == "type") {
      const std::string fallback =
          tags.default_type().empty() ? "required" : concat("default: \"", tags.default_type(), "\"");
      found_.push_back(
          concat(path, ".type", where, "\n  ", fallback, "\n  values:\n", named_list(tags.names())));
    }
    for (const auto& type : tags.types()) {
      const KeyTable& table = type->table();
      const std::string with_type =
          concat(where, where.empty() ? ", where " : " and ", path, ".type is \"", type->name(), "\"");
      note(i, type->name());
      if (parts_[i] != type->name()) {
        in_table(table, table.defaults(), i, path, with_type);
      } else if (last) {
        found_.push_back(
            concat(path, with_type, "\n  ", type->named().doc, "\n", keys_text(table, table.defaults())));
      } else {
        in_table(table, table.defaults(), i + 1, path, with_type);
      }
    }
  }

  /// Remembers the deepest part that was reached, and what could have stood there.
  void reach(std::size_t i) {
    if (i > deepest_) candidates_.clear();
    deepest_ = std::max(i, deepest_);
  }
  void note(std::size_t i, const std::string& name) {
    reach(i);
    if (i == deepest_) candidates_.push_back(name);
  }

  std::vector<std::string> parts_;
  std::vector<std::string> found_;
  std::size_t deepest_ = 0;
  std::vector<std::string> candidates_;
};

bool is_index(const std::string& part) {
  return !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
}

/// A path that begins with a name that is no key of the root, as titles in docs/configuration.md begin with a
/// type: `adamw.groups.match`; wherever that is. "" when there is none.
std::string explain_below_name(const KeyTable& root, const std::vector<std::string>& path) {
  std::vector<std::string> texts;
  for (const NamedPlace& place : find_name(root, path.front())) {
    std::vector<std::string> parts = split_path(place.typed);
    parts.insert(parts.end(), path.begin() + 1, path.end());
    if (parts.size() > kMaxParts) continue;
    Search search(std::move(parts));
    search.in_table(root, root.defaults(), 0, "", "");
    if (search.found()) texts.push_back(search.text());
  }
  return join(texts, "\n");
}

/// The keys and types of this name, wherever they are.
std::string explain_name(const KeyTable& root, std::string_view name, const std::string& suggestion) {
  std::vector<std::string> texts;
  for (const NamedPlace& place : find_name(root, name)) {
    Search search(split_path(place.typed));
    search.in_table(root, root.defaults(), 0, "", "");
    texts.push_back(search.text());
  }
  if (!texts.empty()) return join(texts, "\n");
  throw ConfigError(concat("there is no key ", quote(name),
                           suggestion.empty() ? did_you_mean(name, all_names(root)) : suggestion));
}

}  // namespace

std::string explain_key(const KeyTable& root, std::string_view path) {
  if (path.empty()) return keys_text(root, root.defaults());
  std::string indexed(path);  // "data.variables[].name", as docs/configuration.md has it
  for (std::size_t at = 0; (at = indexed.find("[]", at)) != std::string::npos;) indexed.insert(at + 1, "0");
  std::vector<std::string> parts = split_path(indexed);
  std::erase_if(parts, is_index);
  if (parts.empty() || parts.size() > kMaxParts) throw ConfigError(concat("there is no key ", quote(path)));
  Search search(parts);
  search.in_table(root, root.defaults(), 0, "", "");
  if (search.found()) return search.text();
  const std::string suggestion = search.suggestion();
  if (parts.size() > 1) {
    if (std::string text = explain_below_name(root, parts); !text.empty()) return text;
  }
  if (split_path(path).size() > 1) throw ConfigError(concat("there is no key ", quote(path), suggestion));
  return explain_name(root, path, suggestion);
}

}  // namespace jigsaw::inline config
