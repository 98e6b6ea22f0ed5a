#include "layers/spherical.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "base/text.h"
#include "config/config.h"
#include "layers/limits.h"

namespace jigsaw::inline layers {

std::vector<ChoiceForm<GlobalRows>::Entry> rows_choices() {
  return {{name(GlobalRows::kPolePoint), GlobalRows::kPolePoint,
           "Equally spaced, the first and the last one on the poles."},
          {name(GlobalRows::kPoleCell), GlobalRows::kPoleCell,
           "Equally spaced, the first and the last one half a row off the poles."},
          {name(GlobalRows::kGauss), GlobalRows::kGauss, "At the nodes of Gauss and Legendre."}};
}

GlobalGrid global_grid(const LayerSite& site, GlobalRows rows) {
  const Shape& space = site.input.space;
  if (space.rank() != 2 || space[0] < 2 || space[1] < 2) {
    site.error(
        "type",
        concat("is for rows and columns around the globe, at least 2 of each, and the grid here is ", space));
  }
  if (static_cast<double>(space[0]) > kMostGlobalRows)
    site.error("type", concat("takes at most ", kMostGlobalRows, " rows, and gets ", space[0]));
  if (site.input.rows && *site.input.rows != rows) {
    site.error("latitudes",
               concat("is \"", name(rows), "\", but the rows here are \"", name(*site.input.rows), "\""));
  }
  return {rows, space[0], space[1]};
}

namespace {

constexpr const char* kDegreesDoc =
    "Degrees of spherical harmonics, and orders, that it works with; 0: as many as sums over the grid give "
    "exactly.";

/// How many degrees transforms between these grids work with.
std::int64_t degrees_of(const LayerSite& site, std::int64_t asked, std::initializer_list<GlobalGrid> grids) {
  std::int64_t exact = grids.begin()->exact_degrees();
  for (const GlobalGrid& grid : grids) {
    exact = std::min(exact, grid.exact_degrees());
    if (asked > grid.most_degrees()) {
      site.error("degrees", concat("must be at most ", grid.most_degrees(), " on the grid ",
                                   Shape{grid.latitudes, grid.longitudes},
                                   " (its rows, without a pole, and half its columns), and is ", asked));
    }
  }
  return asked > 0 ? asked : exact;
}

SphericalTransform transform_of(const LayerSite& site, const SphericalConvolutionOptions& options) {
  const GlobalGrid grid = global_grid(site, options.latitudes);
  return {grid, degrees_of(site, options.degrees, {grid})};
}

/// [2, 2, 2]: what the product of part q (real, imaginary) of a number and part r of another gives to part s
/// of theirs.
std::shared_ptr<const FixedFactor> complex_product() {
  static const auto factor = std::make_shared<const FixedFactor>(
      FixedFactor{"complex product", {2, 2, 2}, [](const Box& box) {
                    std::vector<double> values;
                    for (std::int64_t q = box.begin[0]; q < box.end(0); ++q) {
                      for (std::int64_t r = box.begin[1]; r < box.end(1); ++r) {
                        for (std::int64_t s = box.begin[2]; s < box.end(2); ++s)
                          values.push_back((q + r + s) % 2 != 0 ? 0 : q == 1 && r == 1 ? -1 : 1);
                      }
                    }
                    return values;
                  }});
  return factor;
}

}  // namespace

void declare(Keys<SphericalConvolutionOptions>& keys) {
  using O = SphericalConvolutionOptions;
  keys.choice("latitudes", &O::latitudes, rows_choices()).doc("Where the rows of the grid lie.");
  keys.add("degrees", &O::degrees).range(0, kMostPoints).doc(kDegreesDoc);
  keys.add("features", &O::features)
      .range(0, kMostChannels)
      .doc("Channels of the result; 0: as many as there are.");
  keys.add("bias", &O::bias).doc("Whether a learned bias is added.");
}

SphericalConvolution::SphericalConvolution(const LayerSite& site, const SphericalConvolutionOptions& options)
    : Layer({site.input.space,
             options.features > 0 ? options.features : site.input.channels,
             {},
             {},
             options.latitudes}),
      transform_(transform_of(site, options)) {
  const std::int64_t channels = site.input.channels, degrees = transform_.to_degrees->shape[1];
  const double deviation = 1 / std::sqrt(2.0 * static_cast<double>(channels));
  weight_ = site.weight("weight", {degrees, channels, 2, output().channels},
                        {Initial::Kind::kNormal, deviation}, 1);
  if (options.bias) bias_ = site.parameter("bias", {output().channels}, Initial::constant(0));
}

Variable SphericalConvolution::run(Tape& tape, const Variable& x, const Variable& residual) const {
  const Variable products = contract(tape, "brmlc,lcqn->bqrmln", transform_.analysis(tape, x), weight_);
  Variable y =
      transform_.synthesis(tape, contract_fixed(tape, "bqrmln,qrs->bsmln", products, complex_product()));
  if (!bias_.defined() && !residual.defined()) return y;
  return pointwise(tape, y, {"bhwc", bias_, "c", residual});
}

void declare(Keys<SphericalResampleOptions>& keys) {
  using O = SphericalResampleOptions;
  keys.add("size", &O::size)
      .required()
      .length(2, 2)
      .range(2, kMostGlobalRows)
      .doc("Rows and columns of the result.");
  keys.choice("latitudes", &O::latitudes, rows_choices()).doc("Where the rows of the grid lie.");
  keys.choice("to_latitudes", &O::to_latitudes, rows_choices()).doc("Where the rows of the result lie.");
  keys.add("degrees", &O::degrees).range(0, kMostPoints).doc(kDegreesDoc);
}

namespace {

/// From the input's grid, and to the result's.
std::pair<SphericalTransform, SphericalTransform> transforms_of(const LayerSite& site,
                                                                const SphericalResampleOptions& options) {
  const GlobalGrid from = global_grid(site, options.latitudes),
                   to{options.to_latitudes, options.size[0], options.size[1]};
  const std::int64_t degrees = degrees_of(site, options.degrees, {from, to});
  return {{from, degrees}, {to, degrees}};
}

}  // namespace

SphericalResample::SphericalResample(const LayerSite& site, const SphericalResampleOptions& options)
    : Layer({Shape(options.size), site.input.channels, {}, site.input.noise, options.to_latitudes},
            PoleCrossing{}),
      transforms_(transforms_of(site, options)) {}

Variable SphericalResample::run(Tape& tape, const Variable& x, const Variable& residual) const {
  const Variable coefficients = transforms_.first.analysis(tape, x);
  return add_residual(tape, transforms_.second.synthesis(tape, coefficients), residual);
}

}  // namespace jigsaw::inline layers
