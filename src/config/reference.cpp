#include "config/reference.h"

#include <algorithm>

#include "base/text.h"
#include "config/section_defaults.h"
#include "config/tagged.h"

namespace jigsaw::inline config {
namespace {

std::string cell(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c == '\n' ? ' ' : c;
  }
  return escaped;
}

std::string meaning(const KeyInfo& key) {
  std::string text = key.sentences();
  for (const NamedValue& value : key.form().values()) text += concat(" `", value.name, "`: ", value.doc);
  return text;
}

/// Writes sections as they are met and the types of registries once each, at the end.
class Writer {
 public:
  std::string write(const KeyTable& root) {
    section("", "", root, root.defaults());
    for (std::size_t i = 0; i < registries_.size(); ++i) types(*registries_[i]);  // grows on the way
    return text_;
  }

 private:
  void section(const std::string& path, const std::string& doc, const KeyTable& table, const Json& defaults) {
    if (!path.empty()) text_ += concat("## `", path, "`\n\n");
    keys(doc, table, defaults);
    for (const KeyInfo* key : table.keys()) {
      const std::string key_path = concat(path, path.empty() ? "" : ".", key->name);
      below(key->form(), key->doc, key_path, defaults.at(key->name));
    }
  }

  void keys(const std::string& doc, const KeyTable& table, const Json& defaults) {
    if (!doc.empty()) text_ += doc + "\n\n";
    if (table.keys().empty()) return;
    text_ += "| key | type | default | meaning |\n| --- | --- | --- | --- |\n";
    for (const KeyInfo* key : table.keys()) {
      const Json& value = defaults.at(key->name);
      std::string fallback = concat("`", value.dump(), "`");
      if (key->form().table() != nullptr) fallback = "";
      if (key->demanded(value)) fallback = "required";
      text_ += concat("| `", key->name, "` | ", cell(key->form().text(Wording::kPlain)), " | ",
                      cell(fallback), " | ", cell(meaning(*key)), " |\n");
    }
    text_ += "\n";
  }

  /// The sections that a key contains, in whatever form.
  void below(const Form& form, const std::string& doc, const std::string& path, const Json& default_value) {
    if (const KeyTable* table = form.table()) {
      section(path, doc, *table, section_defaults(*table, default_value));
    }
    const TagRegistry* tags = form.tags();
    if (tags != nullptr && std::find(registries_.begin(), registries_.end(), tags) == registries_.end()) {
      registries_.push_back(tags);
    }
    const bool list = form.accepts(Json::array());
    for (const Form* part : form.parts()) below(*part, doc, path + (list ? "[]" : ""), default_value);
  }

  void types(const TagRegistry& registry) {
    for (const auto& type : registry.types()) {
      const bool fallback = type->name() == registry.default_type();
      text_ += concat("## ", registry.kind(), " of type `", type->name(), "`\n\n",
                      fallback ? "The default type. " : "");
      keys(type->named().doc, type->table(), type->table().defaults());
      for (const KeyInfo* key : type->table().keys()) {
        below(key->form(), key->doc, concat(type->name(), ".", key->name),
              type->table().defaults().at(key->name));
      }
    }
  }

  std::string text_;
  std::vector<const TagRegistry*> registries_;
};

}  // namespace

std::string reference_text(const KeyTable& root) {
  return Writer().write(root);
}

}  // namespace jigsaw::inline config
