#include "grids/listed_grids.h"

#include <array>
#include <cmath>
#include <numbers>

#include "grids/degrees.h"

namespace jigsaw::inline grids {

namespace {

constexpr double kQuarter = kCircle / 4;

/// A ring from the north on, counted from 1.
struct Ring {
  std::int64_t points = 0;
  double latitude = 0;
  bool shifted = false;  ///< its first point lies half a step east of Greenwich
};

Ring ring_of(std::int64_t sides, std::int64_t number) {
  const std::int64_t from_pole = std::min(number, 4 * sides - number);
  const auto n = static_cast<double>(sides), i = static_cast<double>(from_pole);
  Ring ring;
  const bool cap = from_pole < sides;
  ring.points = 4 * std::min(from_pole, sides);
  ring.shifted = cap || (from_pole - sides) % 2 == 0;
  const double z = cap ? 1 - i * i / (3 * n * n) : 4.0 / 3 - 2 * i / (3 * n);
  ring.latitude = std::asin(number <= 2 * sides ? z : -z) * 180 / std::numbers::pi;
  return ring;
}

double longitude_of(const Ring& ring, std::int64_t point) {
  const double step = kCircle / static_cast<double>(ring.points);
  return (static_cast<double>(point) + (ring.shifted ? 0.5 : 0.0)) * step;
}

/// Every other bit of a number, from the lowest on.
std::int64_t every_other_bit(std::int64_t number) {
  std::int64_t result = 0;
  for (int bit = 0; number >> (2 * bit) != 0; ++bit) result |= (number >> (2 * bit) & 1) << bit;
  return result;
}

}  // namespace

ListedPlaces healpix_places(std::int64_t sides, bool nested) {
  ListedPlaces places;
  std::vector<Ring> rings(1);
  for (std::int64_t number = 1; number < 4 * sides; ++number) rings.push_back(ring_of(sides, number));
  if (!nested) {
    for (const Ring& ring : rings) {
      for (std::int64_t i = 0; i < ring.points; ++i) {
        places.latitudes.push_back(ring.latitude);
        places.longitudes.push_back(longitude_of(ring, i));
      }
    }
    return places;
  }
  // Of each face the ring of its southern corner in quarters of the rings, and eighths of the circle to it.
  constexpr std::array<std::int64_t, 12> kRing = {2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4},
                                         kEighth = {1, 3, 5, 7, 0, 2, 4, 6, 1, 3, 5, 7};
  for (std::size_t face = 0; face < 12; ++face) {
    for (std::int64_t pixel = 0; pixel < sides * sides; ++pixel) {
      const std::int64_t x = every_other_bit(pixel), y = every_other_bit(pixel >> 1);
      const Ring& ring = rings[static_cast<std::size_t>(kRing[face] * sides - x - y - 1)];
      const std::int64_t quarter = ring.points / 4;
      // In half steps from Greenwich.
      const double half = static_cast<double>(kEighth[face] * quarter + x - y);
      places.latitudes.push_back(ring.latitude);
      places.longitudes.push_back(on_circle(half * kQuarter / (2 * static_cast<double>(quarter))));
    }
  }
  return places;
}

ListedPlaces reduced_places(const std::vector<double>& latitudes, const std::vector<std::int64_t>& in_row) {
  ListedPlaces places;
  for (std::size_t row = 0; row < latitudes.size(); ++row) {
    for (std::int64_t i = 0; i < in_row[row]; ++i) {
      places.latitudes.push_back(latitudes[row]);
      places.longitudes.push_back(kCircle * static_cast<double>(i) / static_cast<double>(in_row[row]));
    }
  }
  return places;
}

}  // namespace jigsaw::inline grids
