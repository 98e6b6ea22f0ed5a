#pragma once
#include <compare>
#include <optional>
#include <string>

namespace jigsaw::inline samples {

/// A horizontal field: a variable, on one of its levels if it has any. Pressure levels are in hPa.
struct Field {
  std::string variable;
  std::optional<double> level;

  auto operator<=>(const Field&) const = default;
  /// "t2m", "t_850".
  std::string name() const;
};

/// A level as people write it: "850", "0.5".
std::string format_level(double level);
/// Whether two levels are one, to the six digits in which they are told: a depth of 1.541375 m is asked for
/// as 1.54138.
bool same_level(double a, double b);

}  // namespace jigsaw::inline samples
