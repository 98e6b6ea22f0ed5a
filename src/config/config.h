#pragma once
#include <string>
#include <string_view>

#include "config/changed_keys.h"
#include "config/condition.h"
#include "config/explain.h"
#include "config/json.h"
#include "config/key_search.h"
#include "config/keys.h"
#include "config/override.h"
#include "config/reference.h"
#include "config/schema.h"

namespace jigsaw::inline config {

/// The configuration as the struct T, whose keys `declare(Keys<T>&)` declares; keys that are not given
/// keep their default. @throws ConfigError  one sentence with the dotted path of the first error; also of a
/// key that has no effect in this configuration.
/// @param keys   keys_of<T>(), which whoever reads many makes once.
/// @param whole  what errors of all of it begin with.
template <typename T>
T parse(const Keys<T>& keys, const Json& config, const std::string& whole = "the configuration") {
  T value{};
  try {
    keys.read(config, value, Place(whole));
  } catch (const UnknownKeyError& error) {
    throw ConfigError(unknown_key_sentence(keys, error));
  }
  refuse_void_keys(keys, config, keys.write(value));
  return value;
}

template <typename T>
T parse(const Json& config, const std::string& whole = "the configuration") {
  return parse(keys_of<T>(), config, whole);
}

/// Sentences on keys that were given and do nothing for now, such as checkpoint.keep without checkpoints.
template <typename T>
std::vector<std::string> idle_keys(const Json& config, const T& value) {
  const Keys<T> keys = keys_of<T>();
  std::vector<std::string> sentences;
  for (VoidKey& key : void_keys(keys, config, keys.write(value)))
    sentences.push_back(std::move(key.sentence));
  return sentences;
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
