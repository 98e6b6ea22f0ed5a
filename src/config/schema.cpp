#include "config/schema.h"

#include "base/error.h"
#include "base/text.h"
#include "config/tagged.h"

namespace jigsaw::inline config {
namespace {

std::string description(const KeyInfo& key) {
  std::string text = key.sentences();
  for (const NamedValue& value : key.form().values()) text += concat(" \"", value.name, "\": ", value.doc);
  return text;
}

}  // namespace

Json SchemaDefinitions::reference(const TagRegistry& registry) {
  const auto [known, is_new] = known_.emplace(registry.kind(), &registry);
  if (known->second != &registry) fail(concat("two registries are of the kind \"", registry.kind(), "\""));
  if (is_new) {
    Json alternatives = Json::array();
    for (const auto& type : registry.types()) {
      const std::string name = concat(registry.kind(), ".", type->name());
      Json schema = section_schema(type->table(), type->table().defaults(), type->named(), *this);
      if (type->name() != registry.default_type())
        schema["required"].insert(schema["required"].begin(), "type");
      definitions_[name] = std::move(schema);
      alternatives.push_back({{"$ref", concat("#/$defs/", name)}});
    }
    definitions_[registry.kind()] = {{"oneOf", alternatives}};
  }
  return {{"$ref", concat("#/$defs/", registry.kind())}};
}

Json section_schema(const KeyTable& table, const Json& defaults, const NamedValue& tag,
                    SchemaDefinitions& definitions) {
  Json properties = Json::object();
  Json required = Json::array();
  if (!tag.name.empty()) properties["type"] = {{"const", tag.name}};
  for (const KeyInfo* key : table.keys()) {
    const Json& default_value = defaults.at(key->name);
    Json schema = {{"description", description(*key)}};
    schema.update(key->form().schema(default_value, definitions));
    if (key->demanded(default_value)) {
      required.push_back(key->name);
    } else if (key->form().table() == nullptr && !default_value.is_null()) {
      schema["default"] = default_value;  // of a section, the keys in it say theirs
    }
    properties[key->name] = std::move(schema);
  }
  Json schema = {{"type", "object"}};
  if (!tag.doc.empty()) schema["description"] = tag.doc;
  schema["properties"] = std::move(properties);
  schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
  return schema;
}

Json table_schema(const KeyTable& root) {
  SchemaDefinitions definitions;
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}};
  schema.update(section_schema(root, root.defaults(), {}, definitions));
  schema["properties"][std::string(kSchemaKey)] = {
      {"description",
       "The schema that editors check by, such as the output of jigsaw-train config --schema."},
      {"type", "string"}};
  if (!definitions.definitions().empty()) schema["$defs"] = definitions.definitions();
  return schema;
}

}  // namespace jigsaw::inline config
