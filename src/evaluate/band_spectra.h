#pragma once
#include <array>
#include <memory>
#include <vector>

#include "evaluate/fourier.h"
#include "parallel/sharded_tensor.h"

namespace jigsaw::inline evaluate {

/// How much of an error and of the truth lies in bands of wave numbers, as The Well's binned spectral MSE has
/// it (arXiv:2412.00568): of the discrete Fourier transform over all of space the mean over points of the
/// square of what has wave numbers |k| in the band, with |k|² = Σ (2π·n/N)² over the axes, |n| ≤ N/2. The
/// bands' limits lie evenly in log |k| between that of one wave along the longest axis and √d·π, the first
/// begins at 0; so they add up to the mean square. Fields are taken to go round along every axis.
class BandSpectra {
 public:
  static constexpr std::size_t kBands = 3;

  explicit BandSpectra(const Shape& space);

  /// Limits of the bands, one more than there are.
  const std::array<double, kBands + 1>& limits() const { return limits_; }

  /// Of each sample and channel, in this order, of the whole field. NaN where a value is.
  struct Powers {
    std::array<double, kBands> error{}, truth{};
  };
  /// Each rank transforms its part of the lines along one axis after the other. Collective over the mesh.
  /// @param error, truth  f64 pieces [B, space…, C] in `layout`, in which no two ranks have the same.
  std::vector<Powers> of(const Rank& rank, const Layout& layout, const std::vector<double>& error,
                         const std::vector<double>& truth) const;

 private:
  std::size_t band_of(double square) const;
  /// Of a field, for each sample and channel the squares of each band. Collective.
  std::vector<double> squares(const Rank& rank, const Layout& layout, const std::vector<double>& field) const;

  std::vector<Fourier> axes_;
  std::vector<std::vector<double>> squares_;  ///< of wave numbers, by axis
  std::array<double, kBands + 1> limits_{};
};

}  // namespace jigsaw::inline evaluate
