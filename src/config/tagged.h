#pragma once
#include <any>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "config/form.h"
#include "config/key_table.h"

namespace jigsaw::inline config {

class Tagged;

/// One type of tagged section: its table, whatever struct the table reads into.
class TaggedType {
 public:
  explicit TaggedType(NamedValue name) : name_(std::move(name)) {}
  virtual ~TaggedType() = default;

  const std::string& name() const { return name_.name; }
  const NamedValue& named() const { return name_; }
  virtual const KeyTable& table() const = 0;
  virtual std::any defaults() const = 0;
  /// Reads the keys beside "type" over the default `options`. @throws ConfigError
  virtual void read(const Json& json, std::any& options, const Place& at) const = 0;
  virtual Json write(const std::any& options) const = 0;

 private:
  NamedValue name_;
};

/// The value of a tagged section: which type it chose, and the options that the table of this type read.
/// Empty until read, or made by TagRegistry::make().
class Tagged {
 public:
  Tagged() = default;
  Tagged(std::shared_ptr<const TaggedType> type, std::any options)
      : type_(std::move(type)), options_(std::move(options)) {}

  bool empty() const { return type_ == nullptr; }
  /// The value of the key "type"; "" when empty.
  std::string type() const { return empty() ? "" : type_->name(); }
  /// The options, of the struct that was registered for this type. @throws Error for another struct.
  template <typename T>
  const T& options() const {
    const T* options = std::any_cast<T>(&options_);
    if (options == nullptr) fail("a section of type \"" + type() + "\" holds other options than asked for");
    return *options;
  }
  /// "type" and the options; null when empty.
  Json to_json() const;
  friend bool operator==(const Tagged& a, const Tagged& b) { return a.to_json() == b.to_json(); }

 private:
  friend class TagRegistry;
  std::shared_ptr<const TaggedType> type_;
  std::any options_;
};

template <typename T>
class Keys;
template <typename T>
Keys<T> keys_of();

/// The types that a tagged section may choose from, by name. The room that owns the types fills it; a
/// type may have keys that are tagged sections of the same registry.
class TagRegistry {
 public:
  /// @param kind          what the types are, "layer": names the definition in the schema and documents.
  /// @param default_type  chosen when "type" is left out; "" when it is required.
  explicit TagRegistry(std::string kind, std::string default_type = "")
      : kind_(std::move(kind)), default_type_(std::move(default_type)) {}

  /// Registers the struct T, with its declare(Keys<T>&), under a name. Its keys may not include "type".
  /// Include config/config.h where this is called.
  template <typename T>
  void add(std::string name, std::string doc);

  /// What a registered type is called elsewhere: no name of it here, but suggested where it is read as one.
  void suggest_for(const std::string& elsewhere, const std::string& name) { elsewhere_[elsewhere] = name; }

  const std::string& kind() const { return kind_; }
  const std::string& default_type() const { return default_type_; }
  const std::vector<std::shared_ptr<const TaggedType>>& types() const { return types_; }
  std::vector<NamedValue> names() const;
  /// A section of this type with every key at its default, for member initialisers. @throws Error
  Tagged make(const std::string& name) const;
  /// Reads a section with its "type" into `value`, which holds the default or is empty. @throws ConfigError
  void read(const Json& json, Tagged& value, const Place& at) const;

 private:
  void add(std::shared_ptr<const TaggedType> type);
  std::shared_ptr<const TaggedType> find(const Json& json, const Place& at) const;

  std::string kind_;
  std::string default_type_;
  std::vector<std::shared_ptr<const TaggedType>> types_;
  std::map<std::string, std::string> elsewhere_;
};

/// Gives the registry when it is needed, so that a table can name the registry that it stands in itself.
using TagAccess = std::function<const TagRegistry&()>;

class TaggedForm final : public FormOf<Tagged> {
 public:
  explicit TaggedForm(TagAccess registry) : registry_(std::move(registry)) {}

  std::string text(Wording wording) const override;
  bool accepts(const Json& json) const override { return json.is_object(); }
  Json schema(const Json& default_value, SchemaDefinitions& definitions) const override;
  const TagRegistry* tags() const override { return &registry_(); }
  bool demands_value(const Json& default_value) const override { return default_value.is_null(); }
  void read(const Json& json, Tagged& value, const Place& at) const override {
    registry_().read(json, value, at);
  }
  void read_absent(Tagged& value, const Place& at) const override;
  /// An empty value is written as the default type.
  Json write(const Tagged& value) const override;

 private:
  TagAccess registry_;
};

inline FormPtr<Tagged> tagged(TagAccess registry) {
  return std::make_unique<TaggedForm>(std::move(registry));
}

template <typename T>
class TaggedTypeOf final : public TaggedType {
 public:
  explicit TaggedTypeOf(NamedValue name) : TaggedType(std::move(name)), keys_(keys_of<T>()) {}

  const KeyTable& table() const override { return keys_; }
  std::any defaults() const override { return T{}; }
  void read(const Json& json, std::any& options, const Place& at) const override {
    keys_.read(json, *std::any_cast<T>(&options), at, "type");
  }
  Json write(const std::any& options) const override { return keys_.write(*std::any_cast<T>(&options)); }

 private:
  Keys<T> keys_;
};

template <typename T>
void TagRegistry::add(std::string name, std::string doc) {
  add(std::make_shared<TaggedTypeOf<T>>(NamedValue{std::move(name), std::move(doc)}));
}

}  // namespace jigsaw::inline config
