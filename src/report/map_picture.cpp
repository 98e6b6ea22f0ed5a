#include "report/map_picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <numbers>
#include <tuple>

#include "base/error.h"
#include "base/text.h"
#include "report/coastline.h"
#include "report/png.h"
#include "report/svg.h"

namespace jigsaw::inline report {

namespace {

/// Robinson's table: length of the parallel and distance from the equator, each 5 degrees of latitude.
constexpr std::array kParallel = {1.0000, 0.9986, 0.9954, 0.9900, 0.9822, 0.9730, 0.9600,
                                  0.9427, 0.9216, 0.8962, 0.8679, 0.8350, 0.7986, 0.7597,
                                  0.7186, 0.6732, 0.6213, 0.5722, 0.5322};
constexpr std::array kDistance = {0.0000, 0.0620, 0.1240, 0.1860, 0.2480, 0.3100, 0.3720,
                                  0.4340, 0.4958, 0.5571, 0.6176, 0.6769, 0.7346, 0.7903,
                                  0.8435, 0.8936, 0.9394, 0.9761, 1.0000};
constexpr double kAcross = 0.8487, kUp = 1.3523;

/// The table at |latitude| / 5.
template <typename Table>
double looked_up(const Table& table, double place) {
  const auto low = std::min(static_cast<std::size_t>(place), table.size() - 2);
  return table[low] + (place - static_cast<double>(low)) * (table[low + 1] - table[low]);
}

/// Limits of the outer cells.
std::pair<double, double> limits(const std::vector<double>& coordinates) {
  const auto [low, high] = std::ranges::minmax(coordinates);
  const double half = coordinates.size() > 1 ? std::abs(coordinates[1] - coordinates[0]) / 2 : 0.5;
  return {low - half, high + half};
}

/// The coordinate that is nearest, in a monotonic list.
std::int64_t nearest(const std::vector<double>& coordinates, double value) {
  const bool up = coordinates.size() < 2 || coordinates.back() > coordinates.front();
  const auto after = up ? std::ranges::lower_bound(coordinates, value)
                        : std::ranges::lower_bound(coordinates, value, std::greater<>());
  const std::int64_t at = after - coordinates.begin(), last = std::ssize(coordinates) - 1;
  if (at > last) return last;
  if (at == 0) return 0;
  const auto i = static_cast<std::size_t>(at);
  return std::abs(coordinates[i] - value) < std::abs(coordinates[i - 1] - value) ? at : at - 1;
}

/// The longitude less whole turns, from `west` on.
double turned_to(double longitude, double west) {
  return longitude - 360 * std::floor((longitude - west) / 360);
}

}  // namespace

Projection::Projection(const PlaneGrid& grid) : grid_(grid) {
  std::tie(south_, north_) = limits(grid.rows);
  std::tie(west_, east_) = limits(grid.columns);
  if (!grid.geographic) {
    aspect_ = static_cast<double>(grid.rows.size()) / static_cast<double>(grid.columns.size());
    return;
  }
  south_ = std::max(south_, -90.0);
  north_ = std::min(north_, 90.0);
  robinson_ = grid.periodic && north_ - south_ > 120;
  if (robinson_) {
    aspect_ = kUp / (kAcross * std::numbers::pi);
    return;
  }
  const double middle = (south_ + north_) / 2 * std::numbers::pi / 180;
  // Beyond these a picture would be a line.
  aspect_ = std::clamp((north_ - south_) / ((east_ - west_) * std::max(std::cos(middle), 0.1)), 0.05, 20.0);
}

void Projection::project(double longitude, double latitude, double& x, double& y) const {
  if (!robinson_) {
    x = (longitude - west_) / (east_ - west_);
    y = (north_ - latitude) / (north_ - south_);
    return;
  }
  const double place = std::min(std::abs(latitude) / 5, 18.0);
  x = 0.5 + looked_up(kParallel, place) * longitude / 360;
  y = 0.5 - std::copysign(looked_up(kDistance, place), latitude) / 2;
}

bool Projection::point_at(double x, double y, std::int64_t& row, std::int64_t& column) const {
  if (!grid_.geographic) {
    row = std::min(static_cast<std::int64_t>(y * static_cast<double>(grid_.rows.size())),
                   std::ssize(grid_.rows) - 1);
    column = std::min(static_cast<std::int64_t>(x * static_cast<double>(grid_.columns.size())),
                      std::ssize(grid_.columns) - 1);
    if (grid_.upwards) row = std::ssize(grid_.rows) - 1 - row;
    return true;
  }
  double longitude = west_ + x * (east_ - west_), latitude = north_ - y * (north_ - south_);
  if (robinson_) {
    const double distance = std::abs(1 - 2 * y);
    const auto above = std::ranges::upper_bound(kDistance, distance);
    const auto low = std::min<std::size_t>(static_cast<std::size_t>(above - kDistance.begin()) - 1, 17);
    const double place =
        static_cast<double>(low) + (distance - kDistance[low]) / (kDistance[low + 1] - kDistance[low]);
    latitude = std::copysign(5 * place, 1 - 2 * y);
    longitude = (x - 0.5) * 360 / looked_up(kParallel, place);
    if (std::abs(longitude) > 180 || latitude > north_ + 1e-9 || latitude < south_ - 1e-9) return false;
    // Nearest around the circle: as seen from half a cell before the first column.
    longitude = turned_to(longitude, west_);
  }
  row = nearest(grid_.rows, latitude);
  column = nearest(grid_.columns, longitude);
  return true;
}

namespace {

/// What of the way from (x0, y0) to (x1, y1) lies in the picture (Liang and Barsky, 1984). @return  whether
/// there is any.
bool clip(double& x0, double& y0, double& x1, double& y1) {
  const double dx = x1 - x0, dy = y1 - y0;
  double begin = 0, end = 1;
  for (const auto& [step, room] :
       {std::pair{-dx, x0}, std::pair{dx, 1 - x0}, std::pair{-dy, y0}, std::pair{dy, 1 - y0}}) {
    if (step == 0 && room < 0) return false;
    if (step < 0) begin = std::max(begin, room / step);
    if (step > 0) end = std::min(end, room / step);
  }
  if (begin > end) return false;
  x1 = x0 + end * dx;
  y1 = y0 + end * dy;
  x0 += begin * dx;
  y0 += begin * dy;
  return true;
}

}  // namespace

void for_each_coast(const Projection& projection,
                    const std::function<void(double x0, double y0, double x1, double y1)>& draw) {
  const double turn = projection.turn();
  const std::vector<double> shifts = turn > 0 ? std::vector<double>{-turn, 0, turn} : std::vector<double>{0};
  for (const CoastLine& line : coastlines()) {
    for (const double shift : shifts) {
      for (std::size_t i = 0; i + 1 < line.size(); ++i) {
        double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
        projection.project(line[i].first, line[i].second, x0, y0);
        projection.project(line[i + 1].first, line[i + 1].second, x1, y1);
        double across = x1 - x0;
        if (turn > 0) {
          across = std::remainder(across, turn);  // the shorter way around
          x0 += shift - turn * std::floor(x0 / turn);
        } else if (std::abs(across) > 0.5) {
          continue;  // from one edge of the globe to the other
        }
        x1 = x0 + across;
        if (clip(x0, y0, x1, y1)) draw(x0, y0, x1, y1);
      }
    }
  }
}

double fitted_width(const Projection& projection, double width) {
  return std::min(width, 2 * width / projection.aspect());
}

namespace {

void draw_point(Raster& raster, double x, double y) {
  const auto column = static_cast<std::int64_t>(x * static_cast<double>(raster.width)),
             row = static_cast<std::int64_t>(y * static_cast<double>(raster.height));
  if (column < 0 || row < 0 || column >= raster.width || row >= raster.height) return;
  std::fill_n(raster.rgb.begin() + 3 * (row * raster.width + column), 3, std::uint8_t{40});
}

void draw_coasts(const Projection& projection, Raster& raster) {
  for_each_coast(projection, [&](double x0, double y0, double x1, double y1) {
    const double length = std::max(std::abs(x1 - x0) * static_cast<double>(raster.width),
                                   std::abs(y1 - y0) * static_cast<double>(raster.height));
    const int points = static_cast<int>(std::ceil(length)) + 1;
    for (int k = 0; k <= points; ++k)
      draw_point(raster, x0 + (x1 - x0) * k / points, y0 + (y1 - y0) * k / points);
  });
}

}  // namespace

Raster raster_of(const PlaneGrid& grid, std::span<const float> values, const Colouring& colouring,
                 std::int64_t width, bool coasts) {
  require(values.size() == grid.rows.size() * grid.columns.size(),
          "a plane's values are not those of its grid");
  const Projection projection(grid);
  Raster raster{
      width, std::max<std::int64_t>(1, std::llround(projection.aspect() * static_cast<double>(width))), {}};
  raster.rgb.assign(static_cast<std::size_t>(3 * raster.width * raster.height), 255);
  std::size_t at = 0;
  for (std::int64_t j = 0; j < raster.height; ++j) {
    for (std::int64_t i = 0; i < raster.width; ++i, at += 3) {
      std::int64_t row = 0, column = 0;
      if (!projection.point_at((static_cast<double>(i) + 0.5) / static_cast<double>(raster.width),
                               (static_cast<double>(j) + 0.5) / static_cast<double>(raster.height), row,
                               column))
        continue;
      const double value =
          values[static_cast<std::size_t>(row) * grid.columns.size() + static_cast<std::size_t>(column)];
      const Rgb colour = colour_of(colouring.map, (value - colouring.low) / (colouring.high - colouring.low));
      std::copy(colour.begin(), colour.end(), raster.rgb.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  if (coasts && grid.geographic) draw_coasts(projection, raster);
  return raster;
}

Raster beside(const std::vector<Raster>& rasters) {
  constexpr std::int64_t kGap = 2;
  Raster all{-kGap, 0, {}};
  for (const Raster& raster : rasters) {
    all.width += raster.width + kGap;
    all.height = std::max(all.height, raster.height);
  }
  all.rgb.assign(static_cast<std::size_t>(3 * all.width * all.height), 255);
  std::int64_t left = 0;
  for (const Raster& raster : rasters) {
    for (std::int64_t row = 0; row < raster.height; ++row)
      std::copy_n(raster.rgb.begin() + 3 * row * raster.width, 3 * raster.width,
                  all.rgb.begin() + 3 * (row * all.width + left));
    left += raster.width + kGap;
  }
  return all;
}

namespace {

std::string coast_path(const Projection& projection, double width, double height) {
  std::string path, last;
  for_each_coast(projection, [&](double x0, double y0, double x1, double y1) {
    const std::string from = concat(coordinate(x0 * width), " ", coordinate(y0 * height)),
                      to = concat(coordinate(x1 * width), " ", coordinate(y1 * height));
    if (from != last) path += "M" + from;
    path += "L" + to;
    last = to;
  });
  return path;
}

std::string scale_url(ColourMap map) {
  std::vector<std::uint8_t> rgb;
  constexpr std::int64_t kColours = 128;
  for (std::int64_t i = 0; i < kColours; ++i) {
    const Rgb colour = colour_of(map, static_cast<double>(i) / (kColours - 1));
    rgb.insert(rgb.end(), colour.begin(), colour.end());
  }
  return data_url_of_png(png_of(kColours, 1, rgb));
}

}  // namespace

std::string svg_of_map(const PlaneGrid& grid, std::span<const float> values, const Colouring& colouring,
                       const std::string& name, const std::string& what, const std::string& units,
                       double whole_width) {
  const Projection projection(grid);
  const double width = fitted_width(projection, whole_width);
  const double height = width * projection.aspect();
  const auto points = static_cast<std::int64_t>(grid.columns.size());
  // Without geography as many pixels as points, so that they are seen as they are.
  const std::int64_t pixels = grid.geographic ? std::llround(width) : std::min<std::int64_t>(points, 512);
  const Raster raster = raster_of(grid, values, colouring, pixels, false);
  constexpr double kTitle = 12;
  Svg svg(whole_width, height + 46, name + what);
  svg.text(0, 13, with_name(name, what, letters_in(whole_width, kTitle)), "start", kTitle);
  const auto image = [](double x, double y, double w, double h, const std::string& url) {
    return concat("<image x=\"", coordinate(x), "\" y=\"", coordinate(y), "\" width=\"", coordinate(w),
                  "\" height=\"", coordinate(h),
                  "\" preserveAspectRatio=\"none\" style=\"image-rendering:pixelated\" href=\"", url, "\"/>");
  };
  svg.add(image(0, 18, width, height, data_url_of_png(png_of(raster.width, raster.height, raster.rgb))));
  if (grid.geographic) {
    svg.add(concat("<svg x=\"0\" y=\"18\" width=\"", coordinate(width), "\" height=\"", coordinate(height),
                   "\" class=\"coast\"><path d=\"", coast_path(projection, width, height),
                   "\" fill=\"none\" stroke=\"#222\" stroke-width=\"0.6\"/></svg>"));
  }
  svg.add(image(0, height + 23, width, 7, scale_url(colouring.map)));
  svg.text(0, height + 42, short_number(colouring.low), "start", 10);
  svg.text(width / 2, height + 42, units, "middle", 10);
  svg.text(width, height + 42, short_number(colouring.high), "end", 10);
  return svg.finish();
}

namespace {

constexpr std::size_t kThousand = 1000;  // of so many values the range leaves out one on either side

}  // namespace

std::string remark_on_range(const Colouring& colouring, bool of_first) {
  const bool left_out = colouring.cut;
  if (!left_out && !of_first) return "";
  return concat(" Colours span the values", of_first ? " of the first map" : "",
                left_out ? " but the lowest and the highest 0.1 %" : "",
                "; what lies beyond has the colours of the ends.");
}

Colouring colouring_of(std::span<const float> values, ColourMap map) {
  std::vector<float> sorted;
  std::ranges::copy_if(values, std::back_inserter(sorted), [](float value) { return std::isfinite(value); });
  if (sorted.empty()) return {map, 0, 1};
  std::ranges::sort(sorted);
  const std::size_t skip = sorted.size() / kThousand;
  Colouring result{map, sorted[skip], sorted[sorted.size() - 1 - skip], skip > 0};
  if (!(result.high > result.low)) result.high = result.low + 1;
  return result;
}

Colouring colouring_of_difference(std::span<const float> values) {
  const Colouring range = colouring_of(values, ColourMap::kDiverging);
  const double most = std::max({std::abs(range.low), std::abs(range.high), 1e-30});
  return {ColourMap::kDiverging, -most, most};
}

}  // namespace jigsaw::inline report
