#pragma once
#include <functional>
#include <string>
#include <vector>

#include "config/json.h"

namespace jigsaw::inline config {

/// What must hold of a configuration for one of its keys to count: declared with the key
/// (DeclaredKey::counts_where()), checked of every configuration that is read, and told by its documents.
struct Condition {
  /// As it follows "Counts only where": `loss.type is "huber"`.
  std::string text;
  /// Of the resolved configuration as a whole, and of the resolved section in which the key stands.
  std::function<bool(const Json& root, const Json& section)> holds;

  Condition operator&&(const Condition& other) const;
  Condition operator||(const Condition& other) const;
};

/// Conditions on one key, by its dotted path from the root, or, of `here`, by its name in the key's own
/// section. Of a path that leads nowhere, as in a table that is read apart from the whole, they hold.
class WhereKey {
 public:
  Condition is(const Json& value) const;
  Condition is_one_of(const std::vector<Json>& values) const;
  Condition above(double low) const;
  /// Anything but null, "", [] and {}.
  Condition is_given() const;

 private:
  friend WhereKey where(std::string path);
  friend WhereKey here(std::string name);
  WhereKey(std::string path, bool in_section) : path_(std::move(path)), in_section_(in_section) {}
  Condition make(std::string text, std::function<bool(const Json&)> holds) const;

  std::string path_;
  bool in_section_;
};
WhereKey where(std::string path);
WhereKey here(std::string name);

class KeyTable;

/// A key that was given another value than its default, where it does not count.
struct VoidKey {
  std::string path;
  std::string sentence;  ///< "loss.delta has no effect: it counts only where …; leave it out"
  bool refused = true;   ///< or only warned of
};

/// @param given     the configuration as it was written.
/// @param resolved  the same with every key.
std::vector<VoidKey> void_keys(const KeyTable& root, const Json& given, const Json& resolved);

/// @throws ConfigError  with the sentence of the first that is refused.
void refuse_void_keys(const KeyTable& root, const Json& given, const Json& resolved);

}  // namespace jigsaw::inline config
