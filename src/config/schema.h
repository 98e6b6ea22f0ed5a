#pragma once
#include <map>
#include <string>

#include "config/json.h"
#include "config/key_table.h"

namespace jigsaw::inline config {

/// The definitions ("$defs") that a schema refers to: one per registry of tagged sections and one per
/// type in it, so that types may contain one another.
class SchemaDefinitions {
 public:
  /// {"$ref": ...} to the definition of a registry, which is made on the first call.
  Json reference(const TagRegistry& registry);

  const Json& definitions() const { return definitions_; }

 private:
  std::map<std::string, const TagRegistry*> known_;
  Json definitions_ = Json::object();
};

/// The JSON Schema (draft 2020-12) of a configuration whose root is this table.
Json table_schema(const KeyTable& root);

}  // namespace jigsaw::inline config
