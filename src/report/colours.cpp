#include "report/colours.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace jigsaw::inline report {

namespace {

using Stops = std::array<Rgb, 9>;
constexpr Stops kViridis = {{{68, 1, 84},
                             {71, 44, 122},
                             {59, 81, 139},
                             {44, 113, 142},
                             {33, 144, 141},
                             {39, 173, 129},
                             {92, 200, 99},
                             {170, 220, 50},
                             {253, 231, 37}}};
constexpr Stops kBlueRed = {{{33, 102, 172},
                             {67, 147, 195},
                             {146, 197, 222},
                             {209, 229, 240},
                             {247, 247, 247},
                             {253, 219, 199},
                             {244, 165, 130},
                             {214, 96, 77},
                             {178, 24, 43}}};

Rgb interpolated(const Stops& stops, double value) {
  const double at = value * static_cast<double>(stops.size() - 1);
  const auto low = std::min(static_cast<std::size_t>(at), stops.size() - 2);
  const double part = at - static_cast<double>(low);
  Rgb result{};
  for (std::size_t i = 0; i < 3; ++i)
    result[i] = static_cast<std::uint8_t>(std::lround(stops[low][i] * (1 - part) + stops[low + 1][i] * part));
  return result;
}

}  // namespace

Rgb colour_of(ColourMap map, double value) {
  if (std::isnan(value)) return {225, 225, 225};
  value = std::clamp(value, 0.0, 1.0);
  if (map == ColourMap::kSequential) return interpolated(kViridis, value);
  if (map == ColourMap::kDiverging) return interpolated(kBlueRed, value);
  const auto grey = static_cast<std::uint8_t>(std::lround(255 * value));
  return {grey, grey, grey};
}

Rgb category_colour(std::size_t number) {
  static constexpr std::array<Rgb, kCategoryColours> kColours = {{{31, 119, 180},
                                                                  {255, 127, 14},
                                                                  {44, 160, 44},
                                                                  {214, 39, 40},
                                                                  {148, 103, 189},
                                                                  {140, 86, 75},
                                                                  {227, 119, 194},
                                                                  {127, 127, 127},
                                                                  {188, 189, 34},
                                                                  {23, 190, 207}}};
  return kColours[number % kColours.size()];
}

std::string hex_of(const Rgb& colour) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "#%02x%02x%02x", colour[0], colour[1], colour[2]);
  return text.data();
}

}  // namespace jigsaw::inline report
