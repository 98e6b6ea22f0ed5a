#include "fields/units.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline fields {

namespace {

using Powers = std::map<std::string, int>;

/// Other names of a unit, as UDUNITS has them.
std::string usual_name(std::string_view name) {
  static const std::map<std::string_view, std::vector<std::string_view>> kNames = {
      {"K", {"kelvin", "kelvins", "Kelvin", "degK", "deg_K", "degree_K", "degrees_K", "degrees_kelvin"}},
      {"degC",
       {"celsius", "Celsius", "deg_C", "degree_C", "degrees_C", "degreeC", "degreesC", "degree_Celsius",
        "degrees_Celsius", "degree_celsius", "degrees_celsius", "°C"}},
      {"Pa", {"pascal", "pascals", "Pascal"}},
      {"hPa", {"hectopascal", "hectopascals", "millibar", "millibars", "mbar", "mb"}},
      {"kPa", {"kilopascal", "kilopascals"}},
      {"m", {"meter", "meters", "metre", "metres"}},
      {"km", {"kilometer", "kilometers", "kilometre", "kilometres"}},
      {"cm", {"centimeter", "centimeters", "centimetre", "centimetres"}},
      {"s", {"sec", "second", "seconds"}},
      {"h", {"hr", "hour", "hours"}},
      {"d", {"day", "days"}},
      {"kg", {"kilogram", "kilograms"}},
      {"W", {"watt", "watts", "Watt"}},
      {"J", {"joule", "joules", "Joule"}},
      {"%", {"percent"}}};
  for (const auto& [usual, others] : kNames) {
    if (std::ranges::find(others, name) != others.end()) return std::string(usual);
  }
  return std::string(name);
}

/// Goes through a text from its first letter on.
class UnitReader {
 public:
  explicit UnitReader(std::string_view text) : text_(text) {}

  /// Nothing where it is no product of powers.
  std::optional<Powers> read() {
    Powers powers;
    bool divided = false;
    while (!text_.empty()) {
      const std::optional<int> power = read_factor();
      if (!power) return std::nullopt;
      if (name_ != "1") powers[usual_name(name_)] += divided ? -*power : *power;
      const std::string_view between =
          take([](char c) { return c == ' ' || c == '.' || c == '*' || c == '/'; });
      if (between.empty() != text_.empty() || std::ranges::count(between, '/') > 1) return std::nullopt;
      divided = between.find('/') != std::string_view::npos;
    }
    return powers;
  }

 private:
  template <typename Belongs>
  std::string_view take(const Belongs& belongs) {
    const auto end = std::ranges::find_if_not(text_, belongs);
    const std::string_view taken = text_.substr(0, static_cast<std::size_t>(end - text_.begin()));
    text_.remove_prefix(taken.size());
    return taken;
  }
  bool take_text(std::string_view text) {
    if (!text_.starts_with(text)) return false;
    text_.remove_prefix(text.size());
    return true;
  }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  /// A name, into name_, and its power, which follows with or without a sign of powers.
  std::optional<int> read_factor() {
    constexpr std::string_view kNoName = " .*/^()[]+-0123456789";
    if (take_text("1")) {
      name_ = "1";
      return 1;
    }
    name_ = take([&](char c) { return kNoName.find(c) == std::string_view::npos; });
    if (name_.empty()) return std::nullopt;
    const bool raised = take_text("**") || take_text("^");
    const bool negative = take_text("-");
    const bool signed_power = negative || take_text("+");
    const std::string_view digits = take(is_digit);
    if (digits.empty()) return raised || signed_power ? std::nullopt : std::optional(1);
    if (digits.size() > 2) return std::nullopt;
    const int power = std::stoi(std::string(digits));
    return negative ? -power : power;
  }

  std::string_view text_;
  std::string name_;
};

}  // namespace

bool same_unit(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const std::optional<Powers> first = UnitReader(a).read(), second = UnitReader(b).read();
  return first && !first->empty() && first == second;
}

std::string require_same_unit(const std::string& what, const std::string& there, const std::string& wanted) {
  if (there.empty() && !wanted.empty())
    return concat(what, " says no unit, and is taken to be in \"", wanted, "\", as the data");
  if (wanted.empty() || same_unit(wanted, there)) return "";
  throw DataError(concat(what, " is in \"", there, "\", the data in \"", wanted, "\""));
}

std::optional<double> units_per_hectopascal(const std::string& units) {
  static const std::map<std::string, double> kCounts = {
      {"hPa", 1.0}, {"Pa", 100.0}, {"kPa", 0.1}, {"bar", 0.001}};
  const auto found = kCounts.find(usual_name(units));
  return found == kCounts.end() ? std::nullopt : std::optional(found->second);
}

namespace {

std::optional<double> units_per_metre(const std::string& units) {
  static const std::map<std::string, double> kCounts = {{"m", 1.0}, {"cm", 100.0}, {"km", 0.001}};
  const auto found = kCounts.find(usual_name(units));
  return found == kCounts.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

double in_level_units(double level, const std::string& units) {
  const std::optional<double> of_pressure = units_per_hectopascal(units);
  const double count = of_pressure ? *of_pressure : units_per_metre(units).value_or(1.0);
  return count < 1 ? level * std::round(1 / count) : level / count;
}

bool is_length(const std::string& units) {
  return units_per_metre(units).has_value();
}

}  // namespace jigsaw::inline fields
