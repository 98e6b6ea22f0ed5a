#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "report/colours.h"

namespace jigsaw::inline report {

/// Where the points of a plane of numbers [rows, columns] lie.
struct PlaneGrid {
  bool geographic = false;            ///< rows and columns are latitudes and longitudes in degrees
  bool periodic = false;              ///< longitude closes the circle
  std::vector<double> rows, columns;  ///< coordinates, monotonic
  bool upwards = false;               ///< without geography: rows run northwards, the first is the lowest
};

/// Values from `low` to `high` in colours.
struct Colouring {
  ColourMap map = ColourMap::kSequential;
  double low = 0, high = 1;
  bool cut = false;  ///< whether values that it was made of are beyond
};

struct Raster {
  std::int64_t width = 0, height = 0;
  std::vector<std::uint8_t> rgb;
};

/// The projection that suits a grid: Robinson's (1974, by its table) where it goes around the globe, an
/// equirectangular one true to scale at its middle latitude elsewhere on the globe, rows and columns as they
/// are without geography.
class Projection {
 public:
  explicit Projection(const PlaneGrid& grid);

  /// Height over width of the picture.
  double aspect() const { return aspect_; }
  /// Where a place lies, x and y from 0 to 1 from the upper left, of an area also beyond. The grid is
  /// geographic.
  void project(double longitude, double latitude, double& x, double& y) const;
  /// By how much x grows along a circle of latitude; 0 for Robinson's, which shows it once.
  double turn() const { return robinson_ ? 0 : 360 / (east_ - west_); }
  /// Row and column of the grid's point that is nearest to a place in the picture.
  /// @return  whether there is one.
  bool point_at(double x, double y, std::int64_t& row, std::int64_t& column) const;
  bool is_robinson() const { return robinson_; }

 private:
  const PlaneGrid& grid_;
  bool robinson_ = false;
  double aspect_ = 1;
  double west_ = 0, east_ = 0, south_ = 0, north_ = 0;
};

/// Calls draw(x0, y0, x1, y1) for what of each piece of a coast lies in the picture, x and y from 0 to 1.
void for_each_coast(const Projection& projection,
                    const std::function<void(double x0, double y0, double x1, double y1)>& draw);

/// A width in which a picture is at most twice as high as `width`, and true to scale.
double fitted_width(const Projection& projection, double width);

/// A plane in colours, so many pixels wide.
Raster raster_of(const PlaneGrid& grid, std::span<const float> values, const Colouring& colouring,
                 std::int64_t width, bool coasts);
/// Pictures of one height beside each other, two white pixels apart.
Raster beside(const std::vector<Raster>& rasters);

/// The plane as SVG, so wide: the picture, no wider than fitted_width(), on the globe with coastlines, and
/// the colours' scale. Above it stand the name, shortened where there is too little room, and what is shown
/// of it (", forecast").
std::string svg_of_map(const PlaneGrid& grid, std::span<const float> values, const Colouring& colouring,
                       const std::string& name, const std::string& what, const std::string& units,
                       double width);

/// The range of values that are no NaN, without the outermost thousandth on either side.
Colouring colouring_of(std::span<const float> values, ColourMap map);
/// For captions: which values of maps are beyond that range, of those of the first map alone where the others
/// have its colours; "" where none are.
std::string remark_on_range(const Colouring& colouring, bool of_first);
/// The same range, made symmetric around 0.
Colouring colouring_of_difference(std::span<const float> values);

}  // namespace jigsaw::inline report
