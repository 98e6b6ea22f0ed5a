#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "config/json.h"
#include "config/key_table.h"

namespace jigsaw::inline config {

/// The dotted paths at which two resolved configurations differ, in the order of `before`, then keys
/// that only `after` has. Lists of one length that hold objects are compared entry by entry
/// (`optimizer.groups[0].match`), other lists as a whole. 1 and 1.0 are equal.
std::vector<std::string> changed_keys(const Json& before, const Json& after);

/// How a key at such a path changed, for people: "train.batch_size (4 before, 8 now)", or the path alone
/// where a value is long.
std::string change_text(const Json& before, const Json& after, const std::string& path);

/// Whether the key at a dotted path, or one that it stands below, is declared changeable().
bool may_change(const KeyTable& root, std::string_view path);

}  // namespace jigsaw::inline config
