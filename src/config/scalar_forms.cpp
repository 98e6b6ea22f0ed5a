#include "config/scalar_forms.h"

#include <cmath>

#include "base/text.h"

namespace jigsaw::inline config {

Json BoolForm::schema(const Json&, SchemaDefinitions&) const {
  return {{"type", "boolean"}};
}

void BoolForm::read(const Json& json, bool& value, const Place& at) const {
  if (!json.is_boolean()) at.wrong("true or false", json);
  value = json.get<bool>();
}

std::string StringForm::text(Wording wording) const {
  return noun("a string", wording) + (length_.low ? " that is not empty" : "");
}

Json StringForm::schema(const Json&, SchemaDefinitions&) const {
  Json schema = {{"type", "string"}};
  if (length_.low) schema["minLength"] = 1;
  return schema;
}

bool StringForm::restrict_length(const NumberRange& length) {
  const bool only_not_empty = length.low && length.low->value == 1 && !length.high;
  if (only_not_empty) length_ = length;
  return only_not_empty;
}

void StringForm::read(const Json& json, std::string& value, const Place& at) const {
  if (!json.is_string() || (length_.low && json.get_ref<const std::string&>().empty())) {
    at.wrong(text(Wording::kWithArticle), json);
  }
  value = json.get<std::string>();
  // It would end a path there, and the sentence about it.
  if (value.find('\0') != std::string::npos) at.error("must not hold the character \\u0000");
}

Json NumberForm::schema(const Json&, SchemaDefinitions&) const {
  Json schema = {{"type", "number"}};
  range_.write_schema(schema);
  return schema;
}

bool NumberForm::restrict_range(const NumberRange& range) {
  range_.update(range);
  return true;
}

void NumberForm::read(const Json& json, double& value, const Place& at) const {
  if (!json.is_number() || !std::isfinite(json.get<double>())) at.wrong(text(Wording::kWithArticle), json);
  const double number = json.get<double>();
  if (!range_.contains(number)) at.error(concat("must be ", range_.text(), ", not ", json.dump()));
  value = number;
}

std::int64_t read_integer(const Json& json, const NumberRange& range, const std::string& expected,
                          const Place& at) {
  constexpr double kExactBelow = 9007199254740992.0;  // 2^53
  std::int64_t integer = 0;
  bool too_large = false;
  if (json.is_number_unsigned()) {
    too_large =
        json.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (!too_large) integer = json.get<std::int64_t>();
  } else if (json.is_number_integer()) {
    integer = json.get<std::int64_t>();
  } else {
    const double number = json.is_number_float() ? json.get<double>() : 0.5;
    if (!(std::trunc(number) == number) || std::isinf(number)) at.wrong(expected, json);
    too_large = std::abs(number) > kExactBelow;
    if (!too_large) integer = static_cast<std::int64_t>(number);
  }
  if (too_large) {
    at.error(concat("must be ", expected, ", up to 2^63 - 1 and written in full, not ", json.dump()));
  }
  if (!range.contains(static_cast<double>(integer))) {
    at.error(concat("must be ", range.text(), ", not ", json.dump()));
  }
  return integer;
}

std::string names_text(const std::vector<NamedValue>& values) {
  std::vector<std::string> names;
  for (const NamedValue& value : values) names.push_back(concat('"', value.name, '"'));
  if (names.size() == 1) return names[0];
  if (names.size() == 2) return concat(names[0], " or ", names[1]);
  return concat("one of ", join(names, ", "));
}

std::size_t read_name(const Json& json, const std::vector<NamedValue>& values, const Place& at) {
  if (!json.is_string()) at.wrong(names_text(values), json);
  const auto& name = json.get_ref<const std::string&>();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].name == name) return i;
    names.push_back(values[i].name);
  }
  at.error(concat("must be ", names_text(values), ", not ", quote(name), did_you_mean(name, names)));
}

}  // namespace jigsaw::inline config
