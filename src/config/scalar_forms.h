#pragma once
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "config/form.h"

namespace jigsaw::inline config {

class BoolForm final : public FormOf<bool> {
 public:
  std::string text(Wording wording) const override { return noun("a boolean", wording); }
  bool accepts(const Json& json) const override { return json.is_boolean(); }
  Json schema(const Json& default_value, SchemaDefinitions& definitions) const override;
  void read(const Json& json, bool& value, const Place& at) const override;
  Json write(const bool& value) const override { return value; }
};

class StringForm final : public FormOf<std::string> {
 public:
  std::string text(Wording wording) const override;
  bool accepts(const Json& json) const override { return json.is_string(); }
  Json schema(const Json& default_value, SchemaDefinitions& definitions) const override;
  bool restrict_length(const NumberRange& length) override;
  void read(const Json& json, std::string& value, const Place& at) const override;
  Json write(const std::string& value) const override { return value; }

 private:
  NumberRange length_;
};

/// A finite number.
class NumberForm final : public FormOf<double> {
 public:
  std::string text(Wording wording) const override { return noun("a number", wording) + range_.after_noun(); }
  bool accepts(const Json& json) const override { return json.is_number(); }
  Json schema(const Json& default_value, SchemaDefinitions& definitions) const override;
  bool restrict_range(const NumberRange& range) override;
  void read(const Json& json, double& value, const Place& at) const override;
  Json write(const double& value) const override { return value; }

 private:
  NumberRange range_;
};

/// The integer that a JSON number is, within a range: 6 and 6.0, not 6.5. Numbers written with a point
/// or an exponent count up to 2^53, beyond which they are not exact.
/// @throws ConfigError  through `at`; `expected` describes the form.
std::int64_t read_integer(const Json& json, const NumberRange& range, const std::string& expected,
                          const Place& at);

/// An integer of a type of C++.
template <typename Integer>
class IntegerForm final : public FormOf<Integer> {
 public:
  std::string text(Wording wording) const override {
    return noun("an integer", wording) + range_.after_noun();
  }
  bool accepts(const Json& json) const override { return json.is_number(); }
  Json schema(const Json&, SchemaDefinitions&) const override {
    Json schema = {{"type", "integer"}};
    within_type().write_schema(schema);
    return schema;
  }
  bool restrict_range(const NumberRange& range) override {
    range_.update(range);
    return true;
  }
  void read(const Json& json, Integer& value, const Place& at) const override {
    value = static_cast<Integer>(read_integer(json, within_type(), text(Wording::kWithArticle), at));
  }
  Json write(const Integer& value) const override { return value; }

 private:
  static_assert(std::signed_integral<Integer>);

  /// With the bounds of a type of fewer bits than all integers where the key has none within them.
  NumberRange within_type() const {
    NumberRange range = range_;
    if (sizeof(Integer) == sizeof(std::int64_t)) return range;
    constexpr double kLow = std::numeric_limits<Integer>::min(), kHigh = std::numeric_limits<Integer>::max();
    if (!range.low || range.low->value < kLow) range.low = NumberRange::Bound{kLow, true};
    if (!range.high || range.high->value > kHigh) range.high = NumberRange::Bound{kHigh, true};
    return range;
  }

  NumberRange range_;
};

/// The index in `values` of the name that `json` is. @throws ConfigError that lists the names.
std::size_t read_name(const Json& json, const std::vector<NamedValue>& values, const Place& at);

/// `"mse" or "l1"`, `one of "a", "b", "c"`.
std::string names_text(const std::vector<NamedValue>& values);

/// Values of T by name, most often the values of an enum.
template <typename T>
class ChoiceForm final : public FormOf<T> {
 public:
  struct Entry {
    std::string name;
    T value;
    std::string doc;
  };

  explicit ChoiceForm(const std::vector<Entry>& entries) {
    for (const Entry& entry : entries) {
      names_.push_back({entry.name, entry.doc});
      values_.push_back(entry.value);
    }
  }

  std::string text(Wording) const override { return names_text(names_); }
  bool accepts(const Json& json) const override { return json.is_string(); }
  Json schema(const Json&, SchemaDefinitions&) const override {
    Json names = Json::array();
    for (const NamedValue& name : names_) names.push_back(name.name);
    return {{"enum", names}};
  }
  std::vector<NamedValue> values() const override { return names_; }
  void read(const Json& json, T& value, const Place& at) const override {
    value = values_[read_name(json, names_, at)];
  }
  Json write(const T& value) const override {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (values_[i] == value) return names_[i].name;
    }
    return nullptr;
  }

 private:
  std::vector<NamedValue> names_;
  std::vector<T> values_;
};

/// `choice<LossType>({{"mse", LossType::kMse, "Mean squared error."}, ...})`.
template <typename T>
FormPtr<T> choice(const std::vector<typename ChoiceForm<T>::Entry>& entries) {
  return std::make_unique<ChoiceForm<T>>(entries);
}

}  // namespace jigsaw::inline config
