#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/condition.h"
#include "config/form.h"

namespace jigsaw::inline config {

/// Stands in a configuration for editors, which complete and check by the schema that it names; means nothing
/// here.
inline constexpr std::string_view kSchemaKey = "$schema";

inline constexpr std::string_view kChangeableSentence = "May change when a run goes on from a checkpoint.";

/// What is declared of one key, whatever struct it belongs to.
struct KeyInfo {
  std::string name;
  std::string doc;
  bool required = false;
  /// Whether it, and what stands below it, may differ between a run and its continuation.
  bool changeable = false;
  /// Where it counts; it must hold all of these. Given elsewhere, it is refused or warned of.
  struct Use {
    Condition condition;
    bool refused = true;
  };
  std::vector<Use> uses;
  /// Conditions beyond the form, each as it follows "must": "be a power of two".
  std::vector<std::string> conditions;

  explicit KeyInfo(std::string key_name) : name(std::move(key_name)) {}
  virtual ~KeyInfo() = default;
  virtual const Form& form() const = 0;

  /// Doc, conditions, where it counts and whether it may change, as whole sentences in one line.
  std::string sentences() const;

  /// Whether leaving the key out is an error, given its default.
  bool demanded(const Json& default_value) const { return required || form().demands_value(default_value); }
};

/// The keys of one kind of section, in the order of their declaration.
class KeyTable {
 public:
  virtual ~KeyTable() = default;
  virtual std::vector<const KeyInfo*> keys() const = 0;
  /// The section with every key at its default.
  virtual Json defaults() const = 0;
};

/// Whether a section with these defaults must be given, because a key in it has none.
bool demands_section(const KeyTable& table, const Json& defaults);

/// The JSON Schema of a section. @param tag  the value of its key "type", or "" when it has none.
Json section_schema(const KeyTable& table, const Json& defaults, const NamedValue& tag,
                    SchemaDefinitions& definitions);

/// A key that its section does not have. The message suggests one of the section that is written alike.
class UnknownKeyError : public ConfigError {
 public:
  /// @param known  the keys of the section.
  UnknownKeyError(std::string path, std::string name, const std::vector<std::string>& known);

  const std::string& path() const { return path_; }
  const std::string& name() const { return name_; }  ///< its last part
  /// Whether but one slip is between it and the key that the message suggests.
  bool is_near() const { return is_near_; }

 private:
  std::string path_, name_;
  bool is_near_;
};

/// @throws UnknownKeyError  when `json` has a key that is neither in the table nor `reserved` (nor, in the
/// root, kSchemaKey). @throws ConfigError  when it is no object.
void reject_unknown_keys(const KeyTable& table, const Json& json, std::string_view reserved, const Place& at);

/// The value of a key in an object, or null when it has none.
const Json* find_member(const Json& object, const std::string& name);

/// @throws Error  when a declaration is faulty: a key twice, or without doc.
void check_declarations(const KeyTable& table);

}  // namespace jigsaw::inline config
