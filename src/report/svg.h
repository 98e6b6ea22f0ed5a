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

/// At most so many code points of a UTF-8 text, "…" in place of its middle.
std::string shortened(const std::string& text, std::size_t most);
/// Names of a list, each of at most so many code points, and all different where the names are: without what
/// all have in front up to a separator (/ , = :), shortened, and behind their number in the list where that
/// makes some alike.
std::vector<std::string> short_names(std::vector<std::string> names, std::size_t most);

/// How many letters of a font size fit in a width, both in pixels, when they are as wide as most are.
std::size_t letters_in(double width, double size);
/// A name and what is said of it, "t2m" and ", forecast", in at most so many letters: the name alone is
/// shortened.
std::string with_name(const std::string& name, const std::string& what, std::size_t most);

/// An inline SVG picture put together piece by piece, on white. Texts are escaped; y grows downwards.
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

}  // namespace jigsaw::inline report
