#include "config/tagged.h"

#include "base/text.h"
#include "config/scalar_forms.h"
#include "config/schema.h"

namespace jigsaw::inline config {

Json Tagged::to_json() const {
  if (empty()) return nullptr;
  Json json = {{"type", type()}};
  json.update(type_->write(options_));
  return json;
}

std::vector<NamedValue> TagRegistry::names() const {
  std::vector<NamedValue> names;
  for (const auto& type : types_) names.push_back(type->named());
  return names;
}

Tagged TagRegistry::make(const std::string& name) const {
  for (const auto& type : types_) {
    if (type->name() == name) return {type, type->defaults()};
  }
  fail(concat("no ", kind_, " of type \"", name, "\" is registered"));
}

void TagRegistry::add(std::shared_ptr<const TaggedType> type) {
  for (const auto& other : types_) {
    if (other->name() == type->name())
      fail(concat("the ", kind_, " type ", type->name(), " is registered twice"));
  }
  if (type->named().doc.empty()) fail(concat("the ", kind_, " type ", type->name(), " has no doc"));
  for (const KeyInfo* key : type->table().keys()) {
    if (key->name == "type")
      fail(concat("the ", kind_, " type ", type->name(), " declares the key \"type\""));
  }
  types_.push_back(std::move(type));
}

std::shared_ptr<const TaggedType> TagRegistry::find(const Json& json, const Place& at) const {
  if (!json.is_object()) at.wrong(concat("an object with a \"type\" (", kind_, ")"), json);
  const Json* name = find_member(json, "type");
  const Json chosen = name != nullptr ? *name : Json(default_type_);
  if (name == nullptr && default_type_.empty()) {
    at.error("type", concat("is required; give it ", names_text(names())));
  }
  if (const auto known = chosen.is_string() ? elsewhere_.find(chosen.get<std::string>()) : elsewhere_.end();
      known != elsewhere_.end()) {
    at.error("type", concat("must be ", names_text(names()), ", not ", quote(known->first),
                            " (did you mean \"", known->second, "\"?)"));
  }
  return types_[read_name(chosen, names(), at.key("type"))];
}

void TagRegistry::read(const Json& json, Tagged& value, const Place& at) const {
  const std::shared_ptr<const TaggedType> type = find(json, at);
  if (value.type_ != type) value = Tagged(type, type->defaults());
  type->read(json, value.options_, at);
}

std::string TaggedForm::text(Wording wording) const {
  return concat(noun("an object", wording), " with a \"type\" (", registry_().kind(), ")");
}

Json TaggedForm::schema(const Json&, SchemaDefinitions& definitions) const {
  return definitions.reference(registry_());
}

Json TaggedForm::write(const Tagged& value) const {
  const TagRegistry& registry = registry_();
  const bool by_default = value.empty() && !registry.default_type().empty();
  return by_default ? registry.make(registry.default_type()).to_json() : value.to_json();
}

void TaggedForm::read_absent(Tagged& value, const Place& at) const {
  Json nothing = Json::object();
  if (!value.empty()) nothing["type"] = value.type();
  registry_().read(nothing, value, at);
}

}  // namespace jigsaw::inline config
