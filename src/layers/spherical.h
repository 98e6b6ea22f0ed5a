#pragma once
#include <utility>
#include <vector>

#include "config/keys.h"
#include "layers/layer.h"
#include "layers/spherical_harmonics.h"

namespace jigsaw::inline layers {

/// Names of GlobalRows as choices of a key.
std::vector<ChoiceForm<GlobalRows>::Entry> rows_choices();

/// The global grid that a layer's input stands on. @throws ConfigError  where it is none, or is known to have
/// other rows.
GlobalGrid global_grid(const LayerSite& site, GlobalRows rows);

/// A convolution on the sphere (Driscoll and Healy 1994; Bonev et al. 2023, arXiv 2306.03838): each spherical
/// harmonic of degree l is multiplied by a complex matrix of that degree. It turns with the field about the
/// axis of the poles, and does not depend on which of these is north.
struct SphericalConvolutionOptions {
  GlobalRows latitudes = GlobalRows::kPolePoint;
  std::int64_t degrees = 0;   ///< 0: as many as the grid's sums give exactly
  std::int64_t features = 0;  ///< 0: as many channels as the input
  bool bias = true;
};
void declare(Keys<SphericalConvolutionOptions>& keys);

/// Parameters: weight [L, C, 2, N], real and imaginary part (normal with mean |w|² = 1/C), bias [N] (0).
class SphericalConvolution : public Layer {
 public:
  SphericalConvolution(const LayerSite& site, const SphericalConvolutionOptions& options);
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  SphericalTransform transform_;
  Variable weight_, bias_;
};

/// Another global grid: the field that has the same spherical harmonics, as far as both grids have them.
struct SphericalResampleOptions {
  std::vector<std::int64_t> size;  ///< rows and columns of the result
  GlobalRows latitudes = GlobalRows::kPolePoint;
  GlobalRows to_latitudes = GlobalRows::kGauss;
  std::int64_t degrees = 0;  ///< 0: as many as the sums of both grids give exactly
};
void declare(Keys<SphericalResampleOptions>& keys);

/// No parameters.
class SphericalResample : public Layer {
 public:
  SphericalResample(const LayerSite& site, const SphericalResampleOptions& options);
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  std::pair<SphericalTransform, SphericalTransform> transforms_;  // of the input's grid and of the result's
};

}  // namespace jigsaw::inline layers
