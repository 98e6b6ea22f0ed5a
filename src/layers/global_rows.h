#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace jigsaw::inline layers {

/// Where the rows of a global grid lie, from one pole to the other: equally spaced with a row on each pole,
/// equally spaced from half a row off the poles, or at the nodes of Gauss and Legendre.
enum class GlobalRows : std::uint8_t { kPolePoint, kPoleCell, kGauss };
const char* name(GlobalRows rows);

/// Rows of a grid, at most: their nodes and weights take time that grows with the square.
inline constexpr double kMostGlobalRows = 20000;

/// Angles from the north pole in radians, from 0 to π. At least 2 rows.
std::vector<double> polar_angles(GlobalRows rows, std::int64_t count);
/// Latitudes in degrees, from north to south.
std::vector<double> global_latitudes(GlobalRows rows, std::int64_t count);
/// Which global rows these latitudes are, from either pole on, to a hundredth of a row; none if others.
std::optional<GlobalRows> global_rows_of(const std::vector<double>& latitudes);
/// Weights of a sum over the rows that is an integral over the sine of latitude, ∫₋₁¹: those of Clenshaw and
/// Curtis, of Fejér's first rule, or of Gauss. Sums of `count` rows are exact for polynomials of degree
/// count − 1, with Gauss 2·count − 1.
std::vector<double> quadrature_weights(GlobalRows rows, std::int64_t count);

}  // namespace jigsaw::inline layers
