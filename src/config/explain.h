#pragma once
#include <string>
#include <string_view>

#include "config/key_table.h"

namespace jigsaw::inline config {

/// What a dotted key means, for people: its type, default, doc and values; of a section the keys in it;
/// of "" the keys of the root. Indices of lists may be given or left out. A key of a tagged section is
/// explained for each type that has it, or for one type by `model.weathermixer.depth`. A name alone that is
/// no key of the root explains what has it anywhere: `weathermixer`, `learning_rate`.
/// @throws ConfigError  when there is no such key, with a suggestion.
std::string explain_key(const KeyTable& root, std::string_view path);

}  // namespace jigsaw::inline config
