#pragma once
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace jigsaw::inline report {

/// The text with what HTML and SVG give a meaning (& < > " ') written as entities; control characters as
/// blanks, and bytes that are no UTF-8 as printable() has them.
std::string escaped(std::string_view text);

/// A number for coordinates: at most two digits behind the point.
std::string coordinate(double value);
/// A number for people: four significant digits; a whole one below a million in full.
std::string short_number(double value);

/// Marks of an axis for people, with as many digits as their distance needs.
std::vector<std::string> mark_labels(const std::vector<double>& marks);
/// At most so many code points of a UTF-8 text, "…" in place of its middle.
std::string shortened(const std::string& text, std::size_t most);
/// Names of a list, each of at most so many code points, and all different where the names are: without what
/// all have in front up to a separator, shortened, and behind their number in the list where that makes some
/// alike.
std::vector<std::string> short_names(std::vector<std::string> names, std::size_t most);

/// An inline SVG picture put together piece by piece. Texts are escaped; y grows downwards.
class Svg {
 public:
  Svg(double width, double height, const std::string& title);

  void line(double x0, double y0, double x1, double y1, const std::string& stroke, double width = 1,
            const std::string& dashes = "");
  void rectangle(double x, double y, double width, double height, const std::string& fill,
                 const std::string& title = "", const std::string& stroke = "");
  /// @param anchor  start, middle or end.
  void text(double x, double y, std::string_view text, const std::string& anchor = "start", double size = 11,
            double turned = 0);
  /// Raw SVG.
  void add(const std::string& element) { out_ << element << '\n'; }
  std::string finish() const { return out_.str() + "</svg>\n"; }

 private:
  std::ostringstream out_;
};

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
  bool turned = false;               ///< x and y change places: for profiles
  bool downwards = false;            ///< what stands up the side grows downwards
  double width = 480, height = 300;  ///< names of several lines come on top of the height
};

/// The plot as SVG. Each line is a <polyline> with the attributes data-label, data-points and data-last; of
/// many points means of neighbours are drawn.
std::string svg_of(const Plot& plot);

/// A part of a bar.
struct BarPart {
  std::string label;
  double value = 0;
};
/// Rows of stacked horizontal bars; each part says what it stands for as a title, and the sum stands behind.
struct Bars {
  std::string title, unit;
  std::vector<std::pair<std::string, std::vector<BarPart>>> rows;
  bool bytes = false;  ///< values are bytes, for people
  double width = 480;
};
std::string svg_of(const Bars& bars);

/// Round values in a range, about `count` of them.
std::vector<double> ticks(double low, double high, int count);

}  // namespace jigsaw::inline report
