#pragma once
#include <algorithm>

#include "config/key_table.h"

namespace jigsaw::inline config {

/// The defaults of a section that stands somewhere below a key: what the key's default has there, or where
/// that is another kind of object, as the empty map of such sections, the table's own.
inline Json section_defaults(const KeyTable& table, const Json& default_value) {
  const std::vector<const KeyInfo*> keys = table.keys();
  const bool has_all = default_value.is_object() &&
                       std::all_of(keys.begin(), keys.end(),
                                   [&](const KeyInfo* key) { return default_value.contains(key->name); });
  return has_all ? default_value : table.defaults();
}

}  // namespace jigsaw::inline config
