#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace jigsaw::inline grids {

/// Latitudes and longitudes of all points of a list, in degrees.
struct ListedPlaces {
  std::vector<double> latitudes, longitudes;
};

/// Pixels of HEALPix in the order of rings, or nested (Górski et al., 2005, ApJ 622:759, equations 4 to 9 and
/// section 4.1).
/// @param sides  of each of the twelve faces; nested a power of two.
ListedPlaces healpix_places(std::int64_t sides, bool nested);
/// The same of some of them. @param pixels  their numbers, from 0 to 12 · sides² − 1.
ListedPlaces healpix_places(std::int64_t sides, bool nested, const std::vector<std::int64_t>& pixels);

/// Points of a reduced Gaussian grid round the globe: each row begins at Greenwich.
ListedPlaces reduced_places(const std::vector<double>& latitudes, const std::vector<std::int64_t>& in_row);

}  // namespace jigsaw::inline grids
