#pragma once
#include <cstdint>
#include <memory>

#include "autograd/operations.h"
#include "layers/global_rows.h"

namespace jigsaw::inline layers {

/// A grid around the globe: rows, and columns all around.
struct GlobalGrid {
  GlobalRows rows = GlobalRows::kPolePoint;
  std::int64_t latitudes = 0, longitudes = 0;

  /// Degrees of spherical harmonics, from 0, whose coefficients the grid's sums give exactly.
  std::int64_t exact_degrees() const;
  /// Those that it can tell apart.
  std::int64_t most_degrees() const;
};

/// The factors of transforms between fields [B, H, W, C] on a grid and coefficients [B, 2, M, L, C] of
/// spherical harmonics of orders m < M = L and degrees l < L, real and imaginary part first:
/// f = Σ a[m, l]·P̄(l, m)(sin latitude)·e^(i·m·longitude) over m ≥ 0, its real part. Real fields are
/// determined by these. P̄ are fully normalised, with a factor √2 for m > 0, so that the mean over the sphere
/// of f² is Σ|a|². Coefficients with l < m are zero.
struct SphericalTransform {
  using Factor = std::shared_ptr<const FixedFactor>;
  Factor to_orders;     ///< [2, W, M]: (1/W)·Σ over longitudes of f·e^(−i·m·longitude), times √2
  Factor to_degrees;    ///< [M, L, H]: ½·Σ over latitudes with the weights of the quadrature
  Factor from_degrees;  ///< [M, L, H]
  Factor from_orders;   ///< [2, W, M]

  SphericalTransform(const GlobalGrid& grid, std::int64_t degrees);
  /// [B, H, W, C] → [B, 2, M, L, C].
  Variable analysis(Tape& tape, const Variable& field) const;
  /// [B, 2, M, L, C] → [B, H, W, C].
  Variable synthesis(Tape& tape, const Variable& coefficients) const;
};

}  // namespace jigsaw::inline layers
