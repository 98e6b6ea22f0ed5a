#pragma once
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/form.h"

namespace jigsaw::inline config {

/// One value or a list of values, read into a list: `["2019-03-01", "2019-03-24"]` or a list of such
/// pairs. A list of one value is written as the value alone.
template <typename T>
class OneOrListForm final : public FormOf<std::vector<T>> {
 public:
  explicit OneOrListForm(FormPtr<T> entry) : entry_(std::move(entry)) {}

  std::string text(Wording wording) const override {
    return entry_->text(wording) + (not_empty_ ? ", or a list of at least one" : ", or a list of such");
  }
  bool accepts(const Json& json) const override { return json.is_array() || entry_->accepts(json); }
  Json schema(const Json&, SchemaDefinitions& definitions) const override {
    const Json entry = entry_->schema(nullptr, definitions);
    Json list = {{"type", "array"}, {"items", entry}};
    if (not_empty_) list["minItems"] = 1;
    return {{"anyOf", {entry, list}}};
  }
  std::vector<NamedValue> values() const override { return entry_->values(); }
  std::vector<const Form*> parts() const override { return {entry_.get()}; }
  bool restrict_range(const NumberRange& range) override { return entry_->restrict_range(range); }
  bool restrict_length(const NumberRange& length) override {
    not_empty_ = length.low && length.low->value == 1 && !length.high;
    return not_empty_;
  }
  void read(const Json& json, std::vector<T>& value, const Place& at) const override {
    if (!accepts(json)) at.wrong(text(Wording::kWithArticle), json);
    value.clear();
    if (!is_list(json)) {
      read_entry(json, value, at);
      return;
    }
    if (not_empty_ && json.empty()) at.wrong(text(Wording::kWithArticle), json);
    for (std::size_t i = 0; i < json.size(); ++i) read_entry(json[i], value, at.item(i));
  }
  Json write(const std::vector<T>& value) const override {
    if (value.size() == 1) return entry_->write(value[0]);
    Json json = Json::array();
    for (const T& entry : value) json.push_back(entry_->write(entry));
    return json;
  }

 private:
  /// Where an entry is itself a list, the first element tells: a list of entries holds entries, and not the
  /// texts that could stand for one each.
  bool is_list(const Json& json) const {
    if (!json.is_array()) return false;
    return json.empty() || !entry_->accepts(json) || (!json[0].is_string() && entry_->accepts(json[0]));
  }
  void read_entry(const Json& json, std::vector<T>& value, const Place& at) const {
    T entry{};
    entry_->read(json, entry, at);
    value.push_back(std::move(entry));
  }

  FormPtr<T> entry_;
  bool not_empty_ = false;
};

/// A value in full, or in a brief form of another kind of JSON: `{"name": "t2m"}` or `"t2m"`. A range
/// restricts the brief form; the keys of the full one have their own.
template <typename T, typename Brief>
class ShorthandForm final : public FormOf<T> {
 public:
  using Expand = std::function<T(const Brief&)>;
  using Abbreviate = std::function<std::optional<Brief>(const T&)>;

  ShorthandForm(FormPtr<T> full, FormPtr<Brief> brief, Expand expand, Abbreviate abbreviate)
      : full_(std::move(full)),
        brief_(std::move(brief)),
        expand_(std::move(expand)),
        abbreviate_(std::move(abbreviate)) {}

  std::string text(Wording wording) const override {
    return brief_->text(wording) + " or " + full_->text(wording);
  }
  bool accepts(const Json& json) const override { return brief_->accepts(json) || full_->accepts(json); }
  Json schema(const Json& default_value, SchemaDefinitions& definitions) const override {
    return {{"anyOf", {brief_->schema(nullptr, definitions), full_->schema(default_value, definitions)}}};
  }
  std::vector<NamedValue> values() const override { return brief_->values(); }
  std::vector<const Form*> parts() const override { return {full_.get(), brief_.get()}; }
  bool restrict_range(const NumberRange& range) override { return brief_->restrict_range(range); }
  void read(const Json& json, T& value, const Place& at) const override {
    if (brief_->accepts(json)) {
      Brief brief{};
      brief_->read(json, brief, at);
      value = expand_(brief);
    } else if (full_->accepts(json)) {
      full_->read(json, value, at);
    } else {
      at.wrong(text(Wording::kWithArticle), json);
    }
  }
  Json write(const T& value) const override {
    const std::optional<Brief> brief = abbreviate_(value);
    return brief ? brief_->write(*brief) : full_->write(value);
  }

 private:
  FormPtr<T> full_;
  FormPtr<Brief> brief_;
  Expand expand_;
  Abbreviate abbreviate_;
};

/// `shorthand(section<Variable>(), form_of<std::string>(), expand, abbreviate)`: `abbreviate` returns
/// nothing for values that need the full form.
template <typename T, typename Brief>
FormPtr<T> shorthand(FormPtr<T> full, FormPtr<Brief> brief,
                     std::type_identity_t<std::function<T(const Brief&)>> expand,
                     std::type_identity_t<std::function<std::optional<Brief>(const T&)>> abbreviate) {
  return std::make_unique<ShorthandForm<T, Brief>>(std::move(full), std::move(brief), std::move(expand),
                                                   std::move(abbreviate));
}

/// The general hook: a form made of functions.
///
/// @param description  with an article, as it follows "must be": "a date such as 2019-03-01".
/// @param schema       JSON Schema of the value; its "type", if any, is the kind of JSON that the form
/// accepts.
/// @param read         the value, or nothing when the JSON is none: then the error says the description.
///                     It may also throw through the place, with a sentence of its own.
/// @param write        the inverse of read.
template <typename T>
struct Custom {
  std::string description;
  Json schema;
  std::function<std::optional<T>(const Json&, const Place&)> read;
  std::function<Json(const T&)> write;
};

template <typename T>
class CustomForm final : public FormOf<T> {
 public:
  explicit CustomForm(Custom<T> custom) : custom_(std::move(custom)) {}

  std::string text(Wording wording) const override {
    const bool article = custom_.description.starts_with("a ") || custom_.description.starts_with("an ");
    // A whole description has no plural that a rule could make.
    const bool as_it_is = !article || wording == Wording::kPlural;
    return noun(custom_.description, as_it_is ? Wording::kWithArticle : wording);
  }
  bool accepts(const Json& json) const override {
    const std::string type = custom_.schema.value("type", "");
    return type.empty() || type == json.type_name() || (type == "integer" && json.is_number());
  }
  Json schema(const Json&, SchemaDefinitions&) const override { return custom_.schema; }
  void read(const Json& json, T& value, const Place& at) const override {
    std::optional<T> result = custom_.read(json, at);
    if (!result) at.wrong(custom_.description, json);
    value = std::move(*result);
  }
  Json write(const T& value) const override { return custom_.write(value); }

 private:
  Custom<T> custom_;
};

template <typename T>
FormPtr<T> custom(Custom<T> functions) {
  return std::make_unique<CustomForm<T>>(std::move(functions));
}

}  // namespace jigsaw::inline config
