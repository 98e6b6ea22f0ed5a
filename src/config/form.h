#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/json.h"
#include "config/number_range.h"
#include "config/place.h"

namespace jigsaw::inline config {

class SchemaDefinitions;
class KeyTable;
class TagRegistry;

/// How the description of a form is put: "integer", "an integer", "integers".
enum class Wording { kPlain, kWithArticle, kPlural };

/// "integer", "an integer" or "integers" for the noun "an integer".
std::string noun(std::string_view with_article, Wording wording);

/// One of the named values of a choice, or one of the types of a tagged section.
struct NamedValue {
  std::string name;
  std::string doc;
};

/// How a value may be written in the configuration: what people, the schema and the reference need to
/// know of it, whatever C++ type it is read into.
class Form {
 public:
  virtual ~Form() = default;

  /// "number of at least 0", "a number of at least 0", "numbers of at least 0".
  virtual std::string text(Wording wording) const = 0;
  /// Whether a JSON value is of the kind of this form, seen from outside; tells alternatives apart.
  virtual bool accepts(const Json& json) const = 0;
  /// The JSON Schema, given the default of the value (null where there is none).
  virtual Json schema(const Json& default_value, SchemaDefinitions& definitions) const = 0;

  /// The values of a choice.
  virtual std::vector<NamedValue> values() const { return {}; }
  /// The forms that this one consists of: entries of a list, alternatives.
  virtual std::vector<const Form*> parts() const { return {}; }
  /// The keys of a section.
  virtual const KeyTable* table() const { return nullptr; }
  /// The types of a tagged section.
  virtual const TagRegistry* tags() const { return nullptr; }
  /// Whether leaving the value out is an error, given its default.
  virtual bool demands_value(const Json& /*default_value*/) const { return false; }

  /// Restrict numbers, or the lengths of lists, maps and texts. False when the form has none.
  virtual bool restrict_range(const NumberRange& /*range*/) { return false; }
  virtual bool restrict_length(const NumberRange& /*length*/) { return false; }
};

/// A form whose values are of the type T. Derive from it, or use custom_form(), for a form of your own.
template <typename T>
class FormOf : public Form {
 public:
  /// Reads into `value`, which holds the default. @throws ConfigError through `at`.
  virtual void read(const Json& json, T& value, const Place& at) const = 0;
  /// The inverse: reading the result gives an equal value.
  virtual Json write(const T& value) const = 0;
  /// Called instead of read() when the key is not given.
  virtual void read_absent(T& /*value*/, const Place& /*at*/) const {}
};

template <typename T>
using FormPtr = std::unique_ptr<FormOf<T>>;

}  // namespace jigsaw::inline config
