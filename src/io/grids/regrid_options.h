#pragma once
#include <map>
#include <string>
#include <vector>

#include "config/keys.h"

namespace jigsaw::inline grids {

/// How values at the points of a grid are made of those of a file on another grid; the names are those of
/// xESMF and CDO.
enum class Regrid {
  kNone,
  kNearest,          ///< the nearest point's along each axis
  kLinear,           ///< linear along each axis (bilinear)
  kInverseDistance,  ///< the four nearest points' mean, weighted by inverse distance; for points anywhere
  kConservative      ///< the mean over the grid's cell of the file's cells, by area (first order)
};

/// The configuration's section `data.regrid`.
struct RegridOptions {
  Regrid method = Regrid::kNone;
  std::map<std::string, Regrid> variables;  ///< of single ones
  /// First and last coordinate and step of the grid in degrees; empty: those of the first file.
  std::vector<double> latitude, longitude;

  Regrid of(const std::string& variable) const;
  bool operator==(const RegridOptions&) const = default;
};

void declare(Keys<RegridOptions>& keys);
/// A method and a grid as a configuration has them, {"method": "linear", "latitude": [90, -90, 1], …}.
std::string to_text(const RegridOptions& options);

/// first, first + step, … to last, towards which steps go.
std::vector<double> equal_steps(const std::vector<double>& first_last_step);

}  // namespace jigsaw::inline grids
