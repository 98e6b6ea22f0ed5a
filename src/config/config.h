#pragma once
#include <string>
#include <string_view>

#include "config/changed_keys.h"
#include "config/explain.h"
#include "config/json.h"
#include "config/keys.h"
#include "config/override.h"
#include "config/reference.h"
#include "config/schema.h"

namespace jigsaw::inline config {

/// The configuration as the struct T, whose keys `declare(Keys<T>&)` declares; keys that are not given
/// keep their default. @throws ConfigError  one sentence with the dotted path of the first error.
template <typename T>
T parse(const Json& config) {
  T value{};
  keys_of<T>().read(config, value, Place());
  return value;
}

/// The resolved configuration: every key, in the order of declaration. parse<T>() of it gives `value`.
template <typename T>
Json to_json(const T& value) {
  return keys_of<T>().write(value);
}

/// JSON Schema (draft 2020-12) of the configuration T.
template <typename T>
Json schema() {
  return table_schema(keys_of<T>());
}

/// What a dotted key of T means, for people; see explain_key().
template <typename T>
std::string explain(std::string_view path) {
  return explain_key(keys_of<T>(), path);
}

/// Every key of T as Markdown.
template <typename T>
std::string reference() {
  return reference_text(keys_of<T>());
}

}  // namespace jigsaw::inline config
