#pragma once
#include <cmath>

namespace jigsaw::inline grids {

inline constexpr double kCircle = 360.0;
/// By which coordinates of one point may differ, as single and double precision of one number do.
inline constexpr double kSameDegrees = 1e-4;

/// In [0, 360).
inline double on_circle(double degrees) {
  const double rest = degrees - kCircle * std::floor(degrees / kCircle);
  return rest < kCircle ? rest : 0.0;
}

}  // namespace jigsaw::inline grids
