#include "config/condition.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "config/key_table.h"
#include "config/place.h"
#include "config/tagged.h"

namespace jigsaw::inline config {

Condition Condition::operator&&(const Condition& other) const {
  return {concat(text, " and ", other.text),
          [a = holds, b = other.holds](const Json& root, const Json& section) {
            return a(root, section) && b(root, section);
          }};
}

Condition Condition::operator||(const Condition& other) const {
  return {concat(text, " or ", other.text),
          [a = holds, b = other.holds](const Json& root, const Json& section) {
            return a(root, section) || b(root, section);
          }};
}

WhereKey where(std::string path) {
  return {std::move(path), false};
}

WhereKey here(std::string name) {
  return {std::move(name), true};
}

Condition WhereKey::make(std::string text, std::function<bool(const Json&)> holds) const {
  const auto find = [path = split_path(path_), in_section = in_section_](const Json& root,
                                                                         const Json& section) {
    const Json* place = in_section ? &section : &root;
    for (const std::string& name : path) {
      if (!place->is_object()) return static_cast<const Json*>(nullptr);
      const auto found = place->find(name);
      if (found == place->end()) return static_cast<const Json*>(nullptr);
      place = &*found;
    }
    return place;
  };
  return {concat(path_, " ", text), [find, holds = std::move(holds)](const Json& root, const Json& section) {
            const Json* value = find(root, section);
            return value == nullptr || holds(*value);
          }};
}

Condition WhereKey::is(const Json& value) const {
  return make(concat("is ", value.dump()), [value](const Json& found) { return found == value; });
}

Condition WhereKey::is_one_of(const std::vector<Json>& values) const {
  std::vector<std::string> texts;
  for (const Json& value : values) texts.push_back(value.dump());
  return make(concat("is ", join(texts, " or ")), [values](const Json& found) {
    return std::find(values.begin(), values.end(), found) != values.end();
  });
}

Condition WhereKey::above(double low) const {
  return make(concat("is above ", low),
              [low](const Json& found) { return !found.is_number() || found.get<double>() > low; });
}

Condition WhereKey::is_given() const {
  return make("is given", [](const Json& found) {
    return !found.is_null() && !(found.is_structured() && found.empty()) && found != Json("");
  });
}

namespace {

/// Goes through what was written beside what it became.
class VoidSearch {
 public:
  VoidSearch(const Json& root, std::vector<VoidKey>& found) : root_(root), found_(found) {}

  void in_table(const KeyTable& table, const Json& given, const Json& resolved, const Place& at) {
    const Json defaults = table.defaults();
    for (const KeyInfo* key : table.keys()) {
      const auto written = given.find(key->name), became = resolved.find(key->name);
      if (written == given.end() || became == resolved.end()) continue;
      if (*became != defaults.at(key->name)) note(*key, resolved, at);
      in_form(key->form(), *written, *became, at.key(key->name));
    }
  }

 private:
  void note(const KeyInfo& key, const Json& section, const Place& at) {
    for (const KeyInfo::Use& use : key.uses) {
      if (use.condition.holds(root_, section)) continue;
      const std::string path = at.key(key.name).path();
      found_.push_back(
          {path, concat(path, " has no effect: it counts only where ", use.condition.text, "; leave it out"),
           use.refused});
      return;
    }
  }

  void in_form(const Form& form, const Json& given, const Json& resolved, const Place& at) {
    if (given.is_array() && resolved.is_array() && given.size() == resolved.size()) {
      for (const Form* part : form.parts()) {
        for (std::size_t i = 0; i < given.size(); ++i) in_form(*part, given[i], resolved[i], at.item(i));
      }
      return;
    }
    if (!given.is_object() || !resolved.is_object()) return;
    if (const KeyTable* table = form.table()) return in_table(*table, given, resolved, at);
    if (const TagRegistry* tags = form.tags()) {
      for (const auto& type : tags->types()) {
        if (type->name() == resolved.value("type", "")) in_table(type->table(), given, resolved, at);
      }
      return;
    }
    for (const Form* part : form.parts()) in_form(*part, given, resolved, at);
  }

  const Json& root_;
  std::vector<VoidKey>& found_;
};

}  // namespace

std::vector<VoidKey> void_keys(const KeyTable& root, const Json& given, const Json& resolved) {
  std::vector<VoidKey> found;
  if (given.is_object()) VoidSearch(resolved, found).in_table(root, given, resolved, Place());
  return found;
}

void refuse_void_keys(const KeyTable& root, const Json& given, const Json& resolved) {
  for (const VoidKey& key : void_keys(root, given, resolved)) {
    if (key.refused) throw ConfigError(key.sentence);
  }
}

}  // namespace jigsaw::inline config
