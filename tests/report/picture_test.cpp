// Pictures: PNG read back by a decoder of the test, Robinson's projection against his table, coasts against
// capes that everybody knows.
#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>

#include "report/coastline.h"
#include "report/colours.h"
#include "report/map_picture.h"
#include "report/png.h"

namespace jigsaw {
namespace {

std::uint32_t big_endian(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8U | static_cast<unsigned char>(bytes.at(at + i));
  return value;
}

/// CRC-32 of ISO 3309, bit by bit.
std::uint32_t slow_crc32(const std::string& bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1U) != 0 ? crc >> 1U ^ 0xEDB88320U : crc >> 1U;
  }
  return ~crc;
}

struct DecodedPng {
  std::uint32_t width = 0, height = 0;
  std::vector<std::uint8_t> rgb;

  explicit DecodedPng(const std::string& png) {
    EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
    std::string data, last;
    for (std::size_t at = 8; at < png.size();) {
      const std::uint32_t length = big_endian(png, at);
      const std::string type = png.substr(at + 4, 4), chunk = png.substr(at + 8, length);
      EXPECT_EQ(big_endian(png, at + 8 + length), slow_crc32(type + chunk)) << type;
      if (type == "IHDR") {
        width = big_endian(chunk, 0);
        height = big_endian(chunk, 4);
        EXPECT_EQ(chunk.substr(8), std::string("\x08\x02\x00\x00\x00", 5));
      }
      if (type == "IDAT") data += chunk;
      last = type;
      at += 12 + length;
    }
    EXPECT_EQ(last, "IEND");
    std::string raw((3 * width + 1) * height, '\0');
    uLongf size = raw.size();
    EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(raw.data()), &size,
                         reinterpret_cast<const Bytef*>(data.data()), data.size()),
              Z_OK);
    EXPECT_EQ(size, raw.size());
    for (std::size_t row = 0; row < height; ++row) {
      const std::size_t at = row * (3 * width + 1);
      EXPECT_EQ(raw[at], 0) << "filter of row " << row;
      for (std::size_t i = 1; i <= 3 * width; ++i) rgb.push_back(static_cast<std::uint8_t>(raw[at + i]));
    }
  }
};

TEST(Png, HoldsThePixelsThatWerePut) {
  std::vector<std::uint8_t> rgb;
  for (int i = 0; i < 3 * 7 * 5; ++i) rgb.push_back(static_cast<std::uint8_t>(i * 37));
  const DecodedPng decoded(png_of(7, 5, rgb));
  EXPECT_EQ(decoded.width, 7U);
  EXPECT_EQ(decoded.height, 5U);
  EXPECT_EQ(decoded.rgb, rgb);
}

TEST(Base64, IsThatOfRfc4648) {
  EXPECT_EQ(base64_of(""), "");
  EXPECT_EQ(base64_of("f"), "Zg==");
  EXPECT_EQ(base64_of("fo"), "Zm8=");
  EXPECT_EQ(base64_of("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64_of("\xff\xfe"), "//4=");
}

PlaneGrid globe(int rows, int columns, bool from_north) {
  PlaneGrid grid{true, true, {}, {}};
  for (int i = 0; i < rows; ++i) {
    const double latitude = -90 + 180.0 * i / (rows - 1);
    grid.rows.push_back(from_north ? -latitude : latitude);
  }
  for (int i = 0; i < columns; ++i) grid.columns.push_back(360.0 * i / columns);
  return grid;
}

TEST(Projection, OfTheGlobeIsRobinsons) {
  const PlaneGrid grid = globe(181, 360, true);
  const Projection projection(grid);
  ASSERT_TRUE(projection.is_robinson());
  EXPECT_NEAR(projection.aspect(), 0.5072, 1e-4);  // Snyder and Voxland (1989): 1 to 0.5072
  double x = 0, y = 0;
  projection.project(180, 0, x, y);
  EXPECT_NEAR(x, 1, 1e-12);
  EXPECT_NEAR(y, 0.5, 1e-12);
  projection.project(180, 45, x, y);  // of the table: length 0.8962, distance 0.5571
  EXPECT_NEAR(x, 0.5 + 0.8962 / 2, 1e-12);
  EXPECT_NEAR(y, 0.5 - 0.5571 / 2, 1e-12);
  std::int64_t row = 0, column = 0;
  EXPECT_FALSE(projection.point_at(0.01, 0.01, row, column));  // a corner beyond the globe
  for (const auto& [longitude, latitude] :
       {std::pair{-120.0, 37.0}, {0.0, 0.0}, {151.0, -33.0}, {-0.4, 51.0}}) {
    projection.project(longitude, latitude, x, y);
    ASSERT_TRUE(projection.point_at(x, y, row, column));
    EXPECT_EQ(grid.rows[static_cast<std::size_t>(row)], latitude);
    EXPECT_EQ(grid.columns[static_cast<std::size_t>(column)], std::fmod(std::round(longitude) + 360, 360))
        << longitude;
  }
}

TEST(Colours, OfTheEndsAndBeyondAreTheFirstAndTheLast) {
  EXPECT_EQ(colour_of(ColourMap::kSequential, 0), (Rgb{68, 1, 84}));
  EXPECT_EQ(colour_of(ColourMap::kSequential, 1), (Rgb{253, 231, 37}));
  EXPECT_EQ(colour_of(ColourMap::kSequential, 7), (Rgb{253, 231, 37}));
  EXPECT_EQ(colour_of(ColourMap::kSequential, 15.0 / 16), (Rgb{212, 226, 44}));
  EXPECT_EQ(colour_of(ColourMap::kDiverging, 0.5), (Rgb{247, 247, 247}));
  EXPECT_EQ(colour_of(ColourMap::kDiverging, 1), (Rgb{178, 24, 43}));
  EXPECT_EQ(colour_of(ColourMap::kGrey, -1), (Rgb{0, 0, 0}));
  EXPECT_EQ(colour_of(ColourMap::kGrey, std::nan("")), (Rgb{225, 225, 225}));
}

/// A pixel shows the point that lies there, whichever way latitudes go.
TEST(Raster, ShowsNorthAboveForEitherOrderOfRows) {
  for (const bool from_north : {true, false}) {
    const PlaneGrid grid = globe(19, 36, from_north);
    std::vector<float> values;
    for (const double latitude : grid.rows) values.insert(values.end(), 36, latitude > 0 ? 1.0F : 0.0F);
    const Raster raster = raster_of(grid, values, {ColourMap::kGrey, 0, 1}, 72, false);
    ASSERT_EQ(raster.height, 37);
    const auto pixel = [&](std::int64_t x, std::int64_t y) {
      return raster.rgb[static_cast<std::size_t>(3 * (y * 72 + x))];
    };
    EXPECT_EQ(pixel(36, 5), 255);
    EXPECT_EQ(pixel(36, 30), 0);
    EXPECT_EQ(pixel(0, 36), 255) << "beyond the globe";
  }
}

/// Rows of a projection that run northwards stand from below; those of images from above.
TEST(Raster, ShowsNorthAboveOfProjectedRowsThatRunNorthwards) {
  PlaneGrid grid{false, false, {0, 1}, {0, 1, 2}};
  const std::vector<float> values = {1, 1, 1, 0, 0, 0};
  EXPECT_EQ(raster_of(grid, values, {ColourMap::kGrey, 0, 1}, 3, false).rgb.front(), 255);
  grid.upwards = true;
  const Raster raster = raster_of(grid, values, {ColourMap::kGrey, 0, 1}, 3, false);
  EXPECT_EQ(raster.rgb.front(), 0);
  EXPECT_EQ(raster.rgb.back(), 255);
}

TEST(Projection, OfAnAreaIsTrueToScaleInItsMiddle) {
  const PlaneGrid grid{true, false, {61, 60, 59}, {-2, -1, 0, 1, 2}};
  const Projection projection(grid);
  EXPECT_FALSE(projection.is_robinson());
  EXPECT_NEAR(projection.aspect(), 3 / (5 * std::cos(60 * M_PI / 180)), 1e-12);
  std::int64_t row = 9, column = 9;
  ASSERT_TRUE(projection.point_at(0.5, 0.1, row, column));
  EXPECT_EQ(row, 0);
  EXPECT_EQ(column, 2);
}

TEST(Coastlines, PassByKnownCapes) {
  const auto distance = [](double longitude, double latitude) {
    double least = 1e9;
    for (const CoastLine& line : coastlines()) {
      for (const auto& [x, y] : line) least = std::min(least, std::hypot(x - longitude, y - latitude));
    }
    return least;
  };
  EXPECT_LT(distance(20.0, -34.8), 0.6);   // Agulhas
  EXPECT_LT(distance(-67.3, -55.9), 1.2);  // Horn
  EXPECT_LT(distance(142.5, -10.7), 0.6);  // York
  EXPECT_LT(distance(-5.7, 50.1), 0.6);    // Land's End
  EXPECT_LT(distance(-77.9, 8.0), 1.5);    // the isthmus of Panama
  EXPECT_GT(distance(-35.0, 30.0), 10);    // the Atlantic
  EXPECT_GT(distance(90.0, 50.0), 10);     // Asia
}

/// All parts of coasts that are drawn of an area, from west and north: their places in degrees.
struct Drawn {
  double least_x = 2, most_x = -1, least_y = 2, most_y = -1, length = 0;
  int pieces = 0;

  explicit Drawn(const PlaneGrid& grid) {
    for_each_coast(Projection(grid), [&](double x0, double y0, double x1, double y1) {
      least_x = std::min({least_x, x0, x1});
      most_x = std::max({most_x, x0, x1});
      least_y = std::min({least_y, y0, y1});
      most_y = std::max({most_y, y0, y1});
      length += std::hypot(x1 - x0, y1 - y0);
      ++pieces;
    });
  }
};

std::vector<double> steps(double first, double step, int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(first + step * i);
  return values;
}

/// Of a band around the globe nothing is left out east of 270 degrees from its edge, wherever that is.
TEST(Coastlines, OfABandAreDrawnToItsEasternEdge) {
  double before = 0;
  for (const double west : {0.0, -180.0, 100.0}) {
    const Drawn drawn({true, true, steps(-40, 2, 41), steps(west, 2, 180)});
    EXPECT_GE(drawn.least_x, 0);
    EXPECT_LT(drawn.least_x, 0.03) << west;
    EXPECT_LE(drawn.most_x, 1 + 1e-12);
    EXPECT_GT(drawn.most_x, 0.97) << west;
    if (before > 0) {
      EXPECT_NEAR(drawn.length, before, 1e-6 * before) << "the same coasts, turned";
    }
    before = drawn.length;
  }
}

/// The coast of Chile crosses two degrees in pieces that are longer than the area.
TEST(Coastlines, AreClippedAtTheFrameOfASmallArea) {
  const Drawn drawn({true, false, steps(-30.1, 0.1, 3), steps(-71.8, 0.1, 9)});
  EXPECT_GT(drawn.pieces, 0);
  EXPECT_NEAR(drawn.least_y, 0, 1e-9) << "from the upper edge";
  EXPECT_NEAR(drawn.most_y, 1, 1e-9) << "to the lower one";
}

/// A narrow country is a narrow picture.
TEST(Projection, OfATallAreaIsTrueToScaleInLessWidth) {
  const PlaneGrid grid{true, false, steps(-55, 1, 38), steps(-76, 1, 9)};
  const Projection projection(grid);
  EXPECT_NEAR(projection.aspect(), 38 / (9 * std::cos(36.5 * M_PI / 180)), 1e-9);
  EXPECT_NEAR(fitted_width(projection, 300) * projection.aspect(), 600, 1e-9);
}

}  // namespace
}  // namespace jigsaw
