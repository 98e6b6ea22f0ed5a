#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "config/form.h"

namespace jigsaw::inline config {

/// A list of values of one form; a range restricts its entries. A text alone stands for a list of it, where
/// entries may be texts.
template <typename T>
class ListForm final : public FormOf<std::vector<T>> {
 public:
  explicit ListForm(FormPtr<T> entry) : entry_(std::move(entry)) {}

  std::string text(Wording wording) const override {
    const std::string length = length_.count_text();
    return concat(noun("a list", wording), " of ", length, length.empty() ? "" : " ",
                  entry_->text(Wording::kPlural));
  }
  bool accepts(const Json& json) const override {
    return json.is_array() || (json.is_string() && takes_text_alone());
  }
  Json schema(const Json&, SchemaDefinitions& definitions) const override {
    Json schema = {{"type", "array"}, {"items", entry_->schema(nullptr, definitions)}};
    if (length_.low) schema["minItems"] = static_cast<std::int64_t>(length_.low->value);
    if (length_.high) schema["maxItems"] = static_cast<std::int64_t>(length_.high->value);
    if (!takes_text_alone()) return schema;
    Json alone = {{"type", "string"}};
    alone.update(entry_->schema(nullptr, definitions));
    return {{"anyOf", {alone, schema}}};
  }
  std::vector<const Form*> parts() const override { return {entry_.get()}; }
  bool restrict_range(const NumberRange& range) override { return entry_->restrict_range(range); }
  bool restrict_length(const NumberRange& length) override {
    length_.update(length);
    return true;
  }
  void read(const Json& json, std::vector<T>& value, const Place& at) const override {
    if (json.is_string() && takes_text_alone()) {
      value.assign(1, T{});
      entry_->read(json, value[0], at);
      return;
    }
    if (!json.is_array() || !length_.contains(static_cast<double>(json.size()))) {
      at.wrong(text(Wording::kWithArticle), json);
    }
    value.clear();
    for (std::size_t i = 0; i < json.size(); ++i) {
      T entry{};
      entry_->read(json[i], entry, at.item(i));
      value.push_back(std::move(entry));
    }
  }
  Json write(const std::vector<T>& value) const override {
    Json json = Json::array();
    for (const T& entry : value) json.push_back(entry_->write(entry));
    return json;
  }

 private:
  bool takes_text_alone() const { return entry_->accepts("") && length_.contains(1); }

  FormPtr<T> entry_;
  NumberRange length_;
};

/// Values by free names, {"t2m": 1.0}; a range restricts the values.
template <typename T>
class MapForm final : public FormOf<std::map<std::string, T>> {
 public:
  explicit MapForm(FormPtr<T> entry) : entry_(std::move(entry)) {}

  std::string text(Wording wording) const override {
    const std::string length = length_.count_text();
    return concat(noun("an object", wording), " of ", length, length.empty() ? "" : " ",
                  entry_->text(Wording::kPlural), " by name");
  }
  bool accepts(const Json& json) const override { return json.is_object(); }
  Json schema(const Json&, SchemaDefinitions& definitions) const override {
    Json schema = {{"type", "object"}, {"additionalProperties", entry_->schema(nullptr, definitions)}};
    if (length_.low) schema["minProperties"] = static_cast<std::int64_t>(length_.low->value);
    if (length_.high) schema["maxProperties"] = static_cast<std::int64_t>(length_.high->value);
    return schema;
  }
  std::vector<const Form*> parts() const override { return {entry_.get()}; }
  bool restrict_range(const NumberRange& range) override { return entry_->restrict_range(range); }
  bool restrict_length(const NumberRange& length) override {
    length_.update(length);
    return true;
  }
  void read(const Json& json, std::map<std::string, T>& value, const Place& at) const override {
    if (!json.is_object() || !length_.contains(static_cast<double>(json.size()))) {
      at.wrong(text(Wording::kWithArticle), json);
    }
    value.clear();
    for (const auto& [name, entry] : json.items()) entry_->read(entry, value[name], at.key(name));
  }
  Json write(const std::map<std::string, T>& value) const override {
    Json json = Json::object();
    for (const auto& [name, entry] : value) json[name] = entry_->write(entry);
    return json;
  }

 private:
  FormPtr<T> entry_;
  NumberRange length_;
};

/// A value, or a word that stands for none: null, or a string such as "auto".
template <typename T>
class OptionalForm final : public FormOf<std::optional<T>> {
 public:
  OptionalForm(FormPtr<T> inner, Json none) : inner_(std::move(inner)), none_(std::move(none)) {}

  std::string text(Wording wording) const override {
    const bool one_word = inner_->text(Wording::kPlain).find(' ') == std::string::npos;
    return concat(inner_->text(wording), one_word ? " or " : ", or ", none_.dump());
  }
  bool accepts(const Json& json) const override { return json == none_ || inner_->accepts(json); }
  Json schema(const Json& default_value, SchemaDefinitions& definitions) const override {
    return {{"anyOf", {Json{{"const", none_}}, inner_->schema(default_value, definitions)}}};
  }
  std::vector<NamedValue> values() const override { return inner_->values(); }
  std::vector<const Form*> parts() const override { return {inner_.get()}; }
  bool restrict_range(const NumberRange& range) override { return inner_->restrict_range(range); }
  bool restrict_length(const NumberRange& length) override { return inner_->restrict_length(length); }
  void read(const Json& json, std::optional<T>& value, const Place& at) const override {
    if (json == none_) {
      value.reset();
      return;
    }
    if (!inner_->accepts(json)) at.wrong(text(Wording::kWithArticle), json);
    if (!value) value.emplace();
    inner_->read(json, *value, at);
  }
  Json write(const std::optional<T>& value) const override { return value ? inner_->write(*value) : none_; }

 private:
  FormPtr<T> inner_;
  Json none_;
};

}  // namespace jigsaw::inline config
