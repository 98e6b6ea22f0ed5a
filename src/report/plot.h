#pragma once
#include <string>
#include <vector>

namespace jigsaw::inline report {

/// A line of a plot. Points that are not finite part it. Behind the last colour dashes tell lines apart.
struct Series {
  std::string label;
  std::vector<double> x, y;
  std::size_t colour = 0;
  bool dashed = false;
};

struct Plot {
  std::string title, x_label, y_label;
  std::vector<Series> series;
  bool log_x = false, log_y = false;
  bool from_zero = false;  ///< the y axis begins at 0
  double mark = 0;         ///< a horizontal line there, if `marks`
  bool marks = false;
  /// Bars from 0 in place of lines, those of several series beside each other; x are whole numbers.
  bool bars = false;
  bool turned = false;     ///< x and y change places: for profiles
  bool downwards = false;  ///< what stands up the side grows downwards
  /// Numbers y that are so much larger than those of most lines do not set the axis, see limits_of_most(); 0:
  /// all do.
  double far = 0;
  double always = 0;  ///< values of at most this size are shown, however far the others are from them
  double width = 480, height = 300;  ///< names of several lines come on top of the height
};

/// The plot as SVG. Each line is a <polyline> with the attributes data-label, data-points and data-last, or
/// several where it leaves the frame; of many points means of neighbours are drawn. Where all x are whole
/// numbers, so are the marks of their axis. A line alone has its name above the plot unless title or axis say
/// it.
std::string svg_of(const Plot& plot);

/// "t2m: skill" of a name and what is said of it, with the name shortened where the plot is too narrow.
std::string title_of(const std::string& name, const std::string& what, const Plot& plot);

/// Names the lines that leave the frame, for captions: " Beyond the axis, cut at its end: …."; or "".
std::string beyond_axis(const Plot& plot);

}  // namespace jigsaw::inline report
