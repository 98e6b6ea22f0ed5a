#pragma once
#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "config/alternative_forms.h"
#include "config/container_forms.h"
#include "config/key_table.h"
#include "config/scalar_forms.h"
#include "config/tagged.h"

namespace jigsaw::inline config {

/// Marks the type in overloads of form_for().
template <typename T>
struct TypeTag {};

/// The usual form of a type, chosen in this order: the overload `FormPtr<T> form_for(TypeTag<T>)` beside T;
/// bool, integers, double, std::string; std::vector, std::map by name, std::optional (null for none);
/// a section, for structs with `declare(Keys<T>&)`.
template <typename T>
FormPtr<T> form_of();

/// One declared key, to be described further. `M` is the type of the member.
template <typename M>
class DeclaredKey : public KeyInfo {
 public:
  DeclaredKey(std::string key_name, FormPtr<M> form) : KeyInfo(std::move(key_name)), form_(std::move(form)) {}

  /// What the key means, its unit included; whole sentences. Every key needs it.
  DeclaredKey& doc(std::string text) {
    return set([&] { KeyInfo::doc = std::move(text); });
  }
  /// The key has no default.
  DeclaredKey& required() {
    return set([&] { KeyInfo::required = true; });
  }

  /// A run may go on from a checkpoint with another value of it, and of what stands below it.
  DeclaredKey& changeable() {
    return set([&] { KeyInfo::changeable = true; });
  }

  /// Without this the key has no effect: given another value than its default it is an error.
  DeclaredKey& counts_where(Condition condition) {
    return set([&] { uses.push_back({std::move(condition), true}); });
  }
  /// The same, and it is only warned of: a key that people leave in when they switch something off for a
  /// while.
  DeclaredKey& idle_unless(Condition condition) {
    return set([&] { uses.push_back({std::move(condition), false}); });
  }

  /// Bounds of a number, or of the numbers in a list, map or optional.
  DeclaredKey& at_least(double low) { return restrict({.low = NumberRange::Bound{low, true}, .high = {}}); }
  DeclaredKey& above(double low) { return restrict({.low = NumberRange::Bound{low, false}, .high = {}}); }
  DeclaredKey& at_most(double high) { return restrict({.low = {}, .high = NumberRange::Bound{high, true}}); }
  DeclaredKey& below(double high) { return restrict({.low = {}, .high = NumberRange::Bound{high, false}}); }
  DeclaredKey& range(double low, double high) { return at_least(low).at_most(high); }

  /// How many entries a list or map has.
  DeclaredKey& length(int count) { return length(count, count); }
  DeclaredKey& length(int low, int high) {
    return restrict_length(
        {.low = NumberRange::Bound{double(low), true}, .high = NumberRange::Bound{double(high), true}});
  }
  /// Of a list, map or text.
  DeclaredKey& not_empty() { return restrict_length({.low = NumberRange::Bound{1, true}, .high = {}}); }

  /// A condition on the value alone; `what` follows "must": "be a power of two".
  DeclaredKey& must(std::string what, std::function<bool(const M&)> holds) {
    conditions.push_back(std::move(what));
    holds_.push_back(std::move(holds));
    return *this;
  }

  const Form& form() const override { return *form_; }

  /// Reads from the object of the section. @throws ConfigError
  void read(const Json& section, M& value, const Place& section_at) const {
    const Place at = section_at.key(name);
    const Json* json = find_member(section, name);
    if (json == nullptr) {
      if (KeyInfo::required) at.error(concat("is required; give it ", form_->text(Wording::kWithArticle)));
      form_->read_absent(value, at);
      return;
    }
    form_->read(*json, value, at);
    for (std::size_t i = 0; i < holds_.size(); ++i) {
      if (!holds_[i](value)) at.error(concat("must ", conditions[i], ", and is ", describe(*json)));
    }
  }
  Json write(const M& value) const { return form_->write(value); }

 private:
  template <typename Action>
  DeclaredKey& set(Action action) {
    action();
    return *this;
  }
  DeclaredKey& restrict(const NumberRange& range) {
    if (!form_->restrict_range(range)) fail(concat("the key ", name, " has no range to restrict"));
    return *this;
  }
  DeclaredKey& restrict_length(const NumberRange& length) {
    if (!form_->restrict_length(length))
      fail(concat("the key ", name, " has no length to restrict like this"));
    return *this;
  }

  FormPtr<M> form_;
  std::vector<std::function<bool(const M&)>> holds_;
};

/// The key table of a struct, filled by the overload `void declare(Keys<T>&)` beside the struct. Defaults
/// are the struct's member initialisers.
template <typename T>
class Keys final : public KeyTable {
 public:
  /// Declares a key in the usual form of the member's type: a number, a list, a nested section...
  template <typename M, typename Owner>
  DeclaredKey<M>& add(std::string name, M Owner::*member) {
    return add(std::move(name), member, form_of<M>());
  }
  /// Declares a key in a form of one's own: `keys.add("mesh", &Options::mesh, auto_or<Mesh>())`.
  template <typename M, typename Owner>
  DeclaredKey<M>& add(std::string name, M Owner::*member, std::type_identity_t<FormPtr<M>> form) {
    static_assert(std::derived_from<T, Owner>, "a key belongs to a member of the struct or of its base");
    auto key = std::make_unique<DeclaredKey<M>>(std::move(name), std::move(form));
    DeclaredKey<M>& declared = *key;
    members_.push_back({
        [&declared, member](const Json& json, T& value, const Place& at) {
          declared.read(json, value.*member, at);
        },
        [&declared, member](const T& value) { return declared.write(value.*member); },
    });
    keys_.push_back(std::move(key));
    return declared;
  }
  /// A value chosen by name: `keys.choice("type", &Loss::type, {{"mse", LossType::kMse, "Its doc."}})`.
  template <typename M, typename Owner>
  DeclaredKey<M>& choice(std::string name, M Owner::*member,
                         const std::vector<typename ChoiceForm<std::type_identity_t<M>>::Entry>& entries) {
    return add(std::move(name), member, jigsaw::choice<M>(entries));
  }
  /// A section whose "type" selects one of the registered tables, or a list of such sections.
  template <typename Owner>
  DeclaredKey<Tagged>& tagged(std::string name, Tagged Owner::*member, TagAccess registry) {
    return add(std::move(name), member, jigsaw::tagged(std::move(registry)));
  }
  template <typename Owner>
  DeclaredKey<std::vector<Tagged>>& tagged(std::string name, std::vector<Tagged> Owner::*member,
                                           TagAccess registry) {
    return add(std::move(name), member,
               std::make_unique<ListForm<Tagged>>(jigsaw::tagged(std::move(registry))));
  }

  /// A condition on several keys, checked when each of them is right by itself. It reports through
  /// `at.error("key", "must be ...")`.
  void check(std::function<void(const T&, const Place& at)> check) { checks_.push_back(std::move(check)); }

  std::vector<const KeyInfo*> keys() const override {
    std::vector<const KeyInfo*> keys;
    for (const auto& key : keys_) keys.push_back(key.get());
    return keys;
  }
  Json defaults() const override { return write(T{}); }

  /// Reads a section into `value`, which holds the defaults. @throws ConfigError
  void read(const Json& json, T& value, const Place& at, std::string_view reserved = "") const {
    reject_unknown_keys(*this, json, reserved, at);
    for (const Member& member : members_) member.read(json, value, at);
    for (const auto& check : checks_) check(value, at);
  }
  Json write(const T& value) const {
    Json json = Json::object();
    for (std::size_t i = 0; i < keys_.size(); ++i) json[keys_[i]->name] = members_[i].write(value);
    return json;
  }

 private:
  struct Member {
    std::function<void(const Json&, T&, const Place&)> read;
    std::function<Json(const T&)> write;
  };
  std::vector<std::unique_ptr<KeyInfo>> keys_;
  std::vector<Member> members_;
  std::vector<std::function<void(const T&, const Place&)>> checks_;
};

/// The key table of a struct. @throws Error when its declaration is faulty.
template <typename T>
Keys<T> keys_of() {
  static_assert(
      requires(Keys<T> & table) { declare(table); }, "declare(Keys<T>&) must stand beside the struct T");
  Keys<T> keys;
  declare(keys);
  check_declarations(keys);
  return keys;
}

/// An object with the declared keys of T.
template <typename T>
class SectionForm final : public FormOf<T> {
 public:
  std::string text(Wording wording) const override { return noun("an object", wording); }
  bool accepts(const Json& json) const override { return json.is_object(); }
  Json schema(const Json& default_value, SchemaDefinitions& definitions) const override {
    return section_schema(keys_, known(default_value), {}, definitions);
  }
  const KeyTable* table() const override { return &keys_; }
  bool demands_value(const Json& default_value) const override {
    return demands_section(keys_, known(default_value));
  }
  void read(const Json& json, T& value, const Place& at) const override { keys_.read(json, value, at); }
  void read_absent(T& value, const Place& at) const override { keys_.read(Json::object(), value, at); }
  Json write(const T& value) const override { return keys_.write(value); }

 private:
  Json known(const Json& default_value) const {
    return default_value.is_object() ? default_value : keys_.defaults();
  }

  Keys<T> keys_ = keys_of<T>();
};

template <typename T>
FormPtr<T> section() {
  return std::make_unique<SectionForm<T>>();
}

/// `"auto"` (or another word) for none, or a value.
template <typename T>
FormPtr<std::optional<T>> auto_or(FormPtr<T> form = form_of<T>(), const std::string& word = "auto") {
  return std::make_unique<OptionalForm<T>>(std::move(form), word);
}

/// One value or a list of such values.
template <typename T>
FormPtr<std::vector<T>> one_or_list(FormPtr<T> form = form_of<T>()) {
  return std::make_unique<OneOrListForm<T>>(std::move(form));
}

template <typename T>
struct UsualForm {
  static FormPtr<T> make() {
    if constexpr (std::same_as<T, bool>) {
      return std::make_unique<BoolForm>();
    } else if constexpr (std::integral<T>) {
      return std::make_unique<IntegerForm<T>>();
    } else if constexpr (std::same_as<T, double>) {
      return std::make_unique<NumberForm>();
    } else if constexpr (std::same_as<T, std::string>) {
      return std::make_unique<StringForm>();
    } else {
      return section<T>();
    }
  }
};
template <typename T>
struct UsualForm<std::vector<T>> {
  static FormPtr<std::vector<T>> make() { return std::make_unique<ListForm<T>>(form_of<T>()); }
};
template <typename T>
struct UsualForm<std::map<std::string, T>> {
  static FormPtr<std::map<std::string, T>> make() { return std::make_unique<MapForm<T>>(form_of<T>()); }
};
template <typename T>
struct UsualForm<std::optional<T>> {
  static FormPtr<std::optional<T>> make() { return std::make_unique<OptionalForm<T>>(form_of<T>(), nullptr); }
};

template <typename T>
FormPtr<T> form_of() {
  if constexpr (requires { form_for(TypeTag<T>{}); }) {
    return form_for(TypeTag<T>{});
  } else {
    return UsualForm<T>::make();
  }
}

// Of these types most keys are: compiled once, in keys.cpp.
#define JIGSAW_COMMON_KEY_TYPES(use) \
  use(bool);                         \
  use(int);                          \
  use(std::int64_t);                 \
  use(double);                       \
  use(std::string);                  \
  use(std::vector<std::int64_t>);    \
  use(std::vector<int>);             \
  use(std::vector<double>);          \
  use(std::vector<std::string>);     \
  use(std::optional<int>);           \
  use(std::optional<std::int64_t>);  \
  use(std::optional<double>);        \
  use(std::optional<std::string>);   \
  use(std::map<std::string, double>)
#define JIGSAW_KEY_TYPE(...)                      \
  extern template class DeclaredKey<__VA_ARGS__>; \
  extern template FormPtr<__VA_ARGS__> form_of<__VA_ARGS__>()
JIGSAW_COMMON_KEY_TYPES(JIGSAW_KEY_TYPE);
#undef JIGSAW_KEY_TYPE

}  // namespace jigsaw::inline config
