#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "config/key_table.h"

namespace jigsaw::inline config {

/// A place of the configuration that has a name.
struct NamedPlace {
  std::string path;   ///< as a configuration has it: "optimizer.learning_rate"; of a type: "model"
  std::string typed;  ///< with the types on the way, as explain_key() takes it: "optimizer.sgd.momentum"
  std::string type;   ///< the type that has the key, or that it is; "" where there is none
};

/// Where the keys and types of this name are, those nearest to the root only, each path once.
std::vector<NamedPlace> find_name(const KeyTable& root, std::string_view name);
/// The names of all keys and types.
std::vector<std::string> all_names(const KeyTable& root);

/// The sentence of an unknown key that also says in which other section, or for which type, a key of exactly
/// this name is, unless its own section has one that is nearly so.
std::string unknown_key_sentence(const KeyTable& root, const UnknownKeyError& error);

}  // namespace jigsaw::inline config
