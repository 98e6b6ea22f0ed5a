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
      {"mm", {"millimeter", "millimeters", "millimetre", "millimetres"}},
      {"degF", {"fahrenheit", "Fahrenheit", "deg_F", "degree_F", "degrees_F", "degreeF", "°F"}},
      {"kt", {"knot", "knots", "kts"}},
      {"min", {"minute", "minutes"}},
      {"g", {"gram", "grams"}},
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

/// A unit by those of SI: what one of it is of their product, and where its 0 lies.
struct UnitInSi {
  double factor = 1, offset = 0;
  Powers powers;
};

const std::map<std::string_view, UnitInSi>& known_units() {
  // Of Bureau International des Poids et Mesures, The International System of Units, and of UDUNITS-2.
  static const std::map<std::string_view, UnitInSi> kUnits = {
      {"K", {1, 0, {{"K", 1}}}},
      {"degC", {1, 273.15, {{"K", 1}}}},
      {"degF", {5.0 / 9.0, 459.67 * 5.0 / 9.0, {{"K", 1}}}},
      {"m", {1, 0, {{"m", 1}}}},
      {"km", {1000, 0, {{"m", 1}}}},
      {"dm", {0.1, 0, {{"m", 1}}}},
      {"cm", {0.01, 0, {{"m", 1}}}},
      {"mm", {0.001, 0, {{"m", 1}}}},
      {"ft", {0.3048, 0, {{"m", 1}}}},
      {"in", {0.0254, 0, {{"m", 1}}}},
      {"s", {1, 0, {{"s", 1}}}},
      {"min", {60, 0, {{"s", 1}}}},
      {"h", {3600, 0, {{"s", 1}}}},
      {"d", {86400, 0, {{"s", 1}}}},
      {"kt", {1852.0 / 3600.0, 0, {{"m", 1}, {"s", -1}}}},
      {"kg", {1, 0, {{"kg", 1}}}},
      {"g", {0.001, 0, {{"kg", 1}}}},
      {"Pa", {1, 0, {{"kg", 1}, {"m", -1}, {"s", -2}}}},
      {"hPa", {100, 0, {{"kg", 1}, {"m", -1}, {"s", -2}}}},
      {"kPa", {1000, 0, {{"kg", 1}, {"m", -1}, {"s", -2}}}},
      {"bar", {100000, 0, {{"kg", 1}, {"m", -1}, {"s", -2}}}},
      {"J", {1, 0, {{"kg", 1}, {"m", 2}, {"s", -2}}}},
      {"kJ", {1000, 0, {{"kg", 1}, {"m", 2}, {"s", -2}}}},
      {"MJ", {1e6, 0, {{"kg", 1}, {"m", 2}, {"s", -2}}}},
      {"W", {1, 0, {{"kg", 1}, {"m", 2}, {"s", -3}}}},
      {"kW", {1000, 0, {{"kg", 1}, {"m", 2}, {"s", -3}}}},
      {"MW", {1e6, 0, {{"kg", 1}, {"m", 2}, {"s", -3}}}},
      {"%", {0.01, 0, {}}}};
  return kUnits;
}

/// Nothing for names that are not known.
std::optional<UnitInSi> in_si(std::string text) {
  if (text == "(0 - 1)") text = "1";  // as ECMWF has it
  const std::optional<Powers> powers = UnitReader(text).read();
  if (!powers || text.empty()) return std::nullopt;
  UnitInSi result;
  for (const auto& [name, power] : *powers) {
    const auto found = known_units().find(name);
    if (found == known_units().end()) return std::nullopt;
    const auto& [factor, offset, base] = found->second;
    result.factor *= std::pow(factor, power);
    if (powers->size() == 1 && power == 1) result.offset = offset;
    for (const auto& [of_base, count] : base) result.powers[of_base] += count * power;
  }
  std::erase_if(result.powers, [](const auto& power) { return power.second == 0; });
  return result;
}

/// "m of water equivalent", as ECMWF has it.
constexpr std::string_view kOfWater = " of water equivalent";
bool is_of_water(const std::string& unit) {
  return unit.ends_with(kOfWater);
}
std::string without_water(const std::string& unit) {
  return unit.substr(0, unit.size() - (is_of_water(unit) ? kOfWater.size() : 0));
}

/// Whether a unit is that of depths, or of their rates, and another one that of masses on an area, or theirs.
bool is_depth_of(const Powers& depth, const Powers& mass) {
  const Powers depths = {{"m", 1}}, masses = {{"kg", 1}, {"m", -2}};
  const Powers depth_rates = {{"m", 1}, {"s", -1}}, mass_rates = {{"kg", 1}, {"m", -2}, {"s", -1}};
  return (depth == depths && mass == masses) || (depth == depth_rates && mass == mass_rates);
}

}  // namespace

std::optional<UnitConversion> unit_conversion(const std::string& from, const std::string& to) {
  if (same_unit(from, to)) return UnitConversion{};
  constexpr double kWater = 1000;  // kg m-3
  const std::optional<UnitInSi> first = in_si(without_water(from)), second = in_si(without_water(to));
  if (!first || !second) return std::nullopt;
  // A depth alone may be that of snow.
  if (is_of_water(from) != is_of_water(to) && first->powers == second->powers) return std::nullopt;
  double factor = first->factor / second->factor;
  if (is_depth_of(first->powers, second->powers)) {
    factor *= kWater;
  } else if (is_depth_of(second->powers, first->powers)) {
    factor /= kWater;
  } else if (first->powers != second->powers) {
    return std::nullopt;
  }
  return UnitConversion{factor, (first->offset - second->offset) / second->factor};
}

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

namespace {

/// How many of a unit that has a name of its own are one other of the same quantity; nothing for other units.
std::optional<double> units_per(const char* other, const std::string& units) {
  const auto found = known_units().find(usual_name(units));
  const UnitInSi& one = known_units().at(other);
  if (found == known_units().end() || found->second.powers != one.powers) return std::nullopt;
  return one.factor / found->second.factor;
}

}  // namespace

std::optional<double> units_per_hectopascal(const std::string& units) {
  return units_per("hPa", units);
}

double in_level_units(double level, const std::string& units) {
  const std::optional<double> of_pressure = units_per_hectopascal(units);
  const double count = of_pressure ? *of_pressure : units_per("m", units).value_or(1.0);
  return count < 1 ? level * std::round(1 / count) : level / count;
}

bool is_length(const std::string& units) {
  return units_per("m", units).has_value();
}

}  // namespace jigsaw::inline fields
