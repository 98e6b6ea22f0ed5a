#pragma once
#include <algorithm>
#include <array>
#include <cmath>

namespace jigsaw::inline fields {

/// No physical field has such values in whatever unit; files have 1e30, 1e36, … in place of missing ones.
inline constexpr double kBeyondPhysics = 1e29;

/// Whether a value is one that files have in place of missing ones by habit.
inline bool is_usual_fill(double value) {
  constexpr std::array kFills = {-9999.0,  -999.0,  -999.9,  -9999.9, -32768.0,
                                 -32767.0, 32767.0, -9.99e8, 1e20,    -1e20};
  if (std::abs(value) > kBeyondPhysics) return true;
  return std::ranges::any_of(kFills, [&](double fill) {
    return std::abs(value - fill) <= 1e-6 * std::abs(fill);  // in float32
  });
}

}  // namespace jigsaw::inline fields
