#pragma once
#include <compare>
#include <map>
#include <optional>
#include <string>

namespace jigsaw::inline fields {

/// A horizontal field: a variable, on one of its levels if it has any. Pressure levels are in hPa.
struct Field {
  std::string variable;
  std::optional<double> level;

  auto operator<=>(const Field&) const = default;
  /// "t2m", "t_850".
  std::string name() const;
};

/// What a map by names of variables and fields says of a field: by its own name, else by that of its
/// variable.
template <typename T>
T of_field(const std::map<std::string, T>& values, const Field& field) {
  for (const std::string& name : {field.name(), field.variable}) {
    if (const auto found = values.find(name); found != values.end()) return found->second;
  }
  return {};
}

/// A level as people write it: "850", "0.5".
std::string format_level(double level);
/// Whether two levels are one, to the six digits in which they are told: a depth of 1.541375 m is asked for
/// as 1.54138.
bool same_level(double a, double b);

/// The same, nothing where it says nothing.
template <typename T>
std::optional<T> said_of_field(const std::map<std::string, T>& values, const Field& field) {
  for (const std::string& name : {field.name(), field.variable}) {
    if (const auto found = values.find(name); found != values.end()) return found->second;
  }
  return std::nullopt;
}

}  // namespace jigsaw::inline fields
