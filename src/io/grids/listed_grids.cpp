#include "grids/listed_grids.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

#include "grids/degrees.h"

namespace jigsaw::inline grids {

namespace {

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

/// Every other bit of a number, from the lowest on.
std::int64_t every_other_bit(std::int64_t number) {
  std::int64_t result = 0;
  for (int bit = 0; number >> (2 * bit) != 0; ++bit) result |= (number >> (2 * bit) & 1) << bit;
  return result;
}

/// A place on a ring.
struct RingPlace {
  std::int64_t ring = 0;
  double half = 0;  ///< steps of half a pixel from Greenwich
};

/// The first pixel of each ring, counted from 1, where they are numbered by rings; then how many there are.
std::vector<std::int64_t> ring_begins(const std::vector<Ring>& rings) {
  std::vector<std::int64_t> begins = {0, 0};
  for (std::size_t number = 1; number < rings.size(); ++number)
    begins.push_back(begins.back() + rings[number].points);
  return begins;
}

RingPlace by_rings(const std::vector<Ring>& rings, const std::vector<std::int64_t>& begins,
                   std::int64_t pixel) {
  const std::int64_t number = std::ranges::upper_bound(begins, pixel) - begins.begin() - 1;
  const auto ring = static_cast<std::size_t>(number);
  return {number, static_cast<double>(2 * (pixel - begins[ring]) + (rings[ring].shifted ? 1 : 0))};
}

RingPlace nested_in_faces(const std::vector<Ring>& rings, std::int64_t sides, std::int64_t pixel) {
  // Of each face the ring of its southern corner in quarters of the rings, and eighths of the circle to it.
  constexpr std::array<std::int64_t, 12> kRing = {2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4},
                                         kEighth = {1, 3, 5, 7, 0, 2, 4, 6, 1, 3, 5, 7};
  const auto face = static_cast<std::size_t>(pixel / (sides * sides));
  const std::int64_t within = pixel % (sides * sides);
  const std::int64_t x = every_other_bit(within), y = every_other_bit(within >> 1);
  const std::int64_t ring = kRing[face] * sides - x - y - 1;
  const std::int64_t quarter = rings[static_cast<std::size_t>(ring)].points / 4;
  return {ring, static_cast<double>(kEighth[face] * quarter + x - y)};
}

}  // namespace

ListedPlaces healpix_places(std::int64_t sides, bool nested) {
  std::vector<std::int64_t> pixels(static_cast<std::size_t>(12 * sides * sides));
  std::iota(pixels.begin(), pixels.end(), std::int64_t{0});
  return healpix_places(sides, nested, pixels);
}

ListedPlaces healpix_places(std::int64_t sides, bool nested, const std::vector<std::int64_t>& pixels) {
  std::vector<Ring> rings(1);
  for (std::int64_t number = 1; number < 4 * sides; ++number) rings.push_back(ring_of(sides, number));
  const std::vector<std::int64_t> begins = ring_begins(rings);
  ListedPlaces places;
  for (const std::int64_t pixel : pixels) {
    const RingPlace place = nested ? nested_in_faces(rings, sides, pixel) : by_rings(rings, begins, pixel);
    const Ring& ring = rings[static_cast<std::size_t>(place.ring)];
    places.latitudes.push_back(ring.latitude);
    places.longitudes.push_back(on_circle(place.half * (kCircle / 2) / static_cast<double>(ring.points)));
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
