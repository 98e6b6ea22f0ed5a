#include "config/key_table.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline config {

std::string KeyInfo::sentences() const {
  std::string text = doc;
  for (const std::string& condition : conditions) text += concat(" Must ", condition, ".");
  for (const Use& use : uses) text += concat(" Counts only where ", use.condition.text, ".");
  if (changeable) text += concat(" ", kChangeableSentence);
  return text;
}

bool demands_section(const KeyTable& table, const Json& defaults) {
  const auto keys = table.keys();
  return std::any_of(keys.begin(), keys.end(),
                     [&](const KeyInfo* key) { return key->demanded(defaults.at(key->name)); });
}

UnknownKeyError::UnknownKeyError(std::string path, std::string name, const std::vector<std::string>& known)
    : ConfigError(concat("unknown key ", path, did_you_mean(name, known))),
      path_(std::move(path)),
      name_(std::move(name)),
      is_near_(differs_by_a_slip(name_, closest(name_, known))) {}

void reject_unknown_keys(const KeyTable& table, const Json& json, std::string_view reserved,
                         const Place& at) {
  if (!json.is_object()) at.wrong("an object", json);
  std::vector<std::string> names;
  for (const KeyInfo* key : table.keys()) names.push_back(key->name);
  if (!reserved.empty()) names.emplace_back(reserved);
  for (const auto& [name, value] : json.items()) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    if (at.path().empty() && name == kSchemaKey) {
      if (!value.is_string()) at.key(name).wrong("the address of a JSON Schema", value);
      continue;
    }
    throw UnknownKeyError(at.key(name).path(), name, names);
  }
}

const Json* find_member(const Json& object, const std::string& name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

void check_declarations(const KeyTable& table) {
  std::set<std::string> names;
  for (const KeyInfo* key : table.keys()) {
    if (!names.insert(key->name).second) fail(concat("the key ", key->name, " is declared twice"));
    if (key->doc.empty()) fail(concat("the key ", key->name, " is declared without doc"));
  }
}

}  // namespace jigsaw::inline config
