#pragma once
#include <array>
#include <cstdint>
#include <string>

namespace jigsaw::inline report {

using Rgb = std::array<std::uint8_t, 3>;

enum class ColourMap : std::uint8_t {
  kSequential,  ///< viridis (van der Walt and Smith, CC0), nine of its colours
  kDiverging,   ///< blue, white, red (ColorBrewer's RdBu, nine classes, Apache-2.0)
  kGrey
};

/// The colour of a value from 0 to 1, clamped; of a NaN a light grey.
Rgb colour_of(ColourMap map, double value);
inline constexpr std::size_t kCategoryColours = 10;
/// One of kCategoryColours that are easy to tell apart (Tableau 10), by number, beginning anew behind them.
Rgb category_colour(std::size_t number);
/// "#1f77b4".
std::string hex_of(const Rgb& colour);

}  // namespace jigsaw::inline report
