#pragma once
#include <utility>
#include <vector>

namespace jigsaw::inline report {

/// A line of points (longitude, latitude) in degrees, to a tenth; longitudes from −180 to 180.
using CoastLine = std::vector<std::pair<double, double>>;

/// The coasts of the world, simplified to a tenth of a degree. Source: Natural Earth, 1:110 million
/// (naturalearthdata.com, public domain): the borders of countries that no two of them share.
const std::vector<CoastLine>& coastlines();

}  // namespace jigsaw::inline report
