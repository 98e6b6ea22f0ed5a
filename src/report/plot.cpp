#include "report/plot.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/terminal.h"
#include "base/text.h"
#include "report/axis.h"
#include "report/colours.h"
#include "report/svg.h"

namespace jigsaw::inline report {

namespace {

constexpr std::size_t kMostPoints = 600;

Limits limits_of(const Plot& plot) {
  if (plot.far <= 0) return {};
  std::vector<std::vector<double>> lines;
  for (const Series& series : plot.series) lines.push_back(series.y);
  Limits limits = limits_of_most(lines, plot.log_y, plot.far);
  if (plot.always > 0) limits = {std::min(limits.low, -plot.always), std::max(limits.high, plot.always)};
  return limits;
}

/// Calls work(x, y) for each point of a plot of which both are finite.
template <typename Work>
void for_each_point(const Plot& plot, const Work& work) {
  for (const Series& series : plot.series) {
    require(series.x.size() == series.y.size(), "the points of a line have two coordinates");
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (std::isfinite(series.x[i]) && std::isfinite(series.y[i])) work(series.x[i], series.y[i]);
    }
  }
}

Axis axis_of_places(const Plot& plot) {
  Axis axis(plot.log_x);
  bool whole = true;
  for_each_point(plot, [&](double x, double) {
    whole = whole && x == std::round(x);
    axis.include(x);
    if (!plot.bars) return;
    axis.include(x - 0.5);
    axis.include(x + 0.5);
  });
  axis.close(0, 0, whole);
  return axis;
}

Axis axis_of_values(const Plot& plot) {
  constexpr double kMargin = 0.05;
  const Limits limits = limits_of(plot);
  Axis axis(plot.log_y);
  for_each_point(plot, [&](double, double y) {
    if (limits.hold(y)) axis.include(y);
  });
  if (plot.from_zero || plot.bars) axis.reach_to(0);
  if (plot.marks) axis.include(plot.mark);
  axis.close(plot.bars ? 0 : kMargin, kMargin, false);  // bars stand on 0
  return axis;
}

/// Means of neighbours where there are more points than can be seen.
Series thinned(const Series& series) {
  if (series.x.size() <= kMostPoints) return series;
  Series result{series.label, {}, {}, series.colour, series.dashed};
  const std::size_t group = (series.x.size() + kMostPoints - 1) / kMostPoints;
  for (std::size_t i = 0; i < series.x.size(); i += group) {
    double x = 0, y = 0, count = 0;
    for (std::size_t k = i; k < std::min(i + group, series.x.size()); ++k) {
      if (!std::isfinite(series.y[k])) continue;
      x += series.x[k];
      y += series.y[k];
      ++count;
    }
    result.x.push_back(count == 0 ? series.x[i] : x / count);
    result.y.push_back(y / count);  // NaN parts the line
  }
  return result;
}

/// Ten colours are told apart, and behind them dashes.
std::string dashes_of(const Series& series) {
  static constexpr std::array<std::array<const char*, 2>, 4> kDashes = {
      {{"", "5 3"}, {"10 3", "2 2"}, {"10 3 2 3", "6 2 2 2 2 2"}, {"16 4", "1 4"}}};
  return kDashes[series.colour / kCategoryColours % kDashes.size()][series.dashed ? 1 : 0];
}

bool alike(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char c, unsigned char d) { return std::tolower(c) == std::tolower(d); });
}

/// Whether a title or the label of an axis says the name of a line: as all of it, in its end, "mask: Dice" or
/// "t2m, 6 h", or before a unit, "RMSE (K)".
bool says(std::string_view text, std::string_view name) {
  if (alike(text, name)) return true;
  if (text.size() < name.size() + 2) return false;
  const std::size_t before = text.size() - name.size();
  const std::string_view separator = text.substr(before - 2, 2);
  if ((separator == ": " || separator == ", ") && alike(text.substr(before), name)) return true;
  return alike(text.substr(0, name.size()), name) && text.substr(name.size(), 2) == " (";
}

/// Names of lines above a plot, as many beside each other as there is room for.
class Legend {
 public:
  Legend(const Plot& plot, double width) {
    const std::vector<Series>& series = plot.series;
    if (series.empty()) return;
    if (const std::string& name = series[0].label; series.size() == 1) {
      if (name.empty() || says(plot.title, name) || says(plot.y_label, name)) return;
    }
    for (const Series& each : series) labels_.push_back(each.label);
    labels_ = short_names(std::move(labels_), static_cast<std::size_t>((width - kLine) / kLetter));
    int longest = 1;
    for (const std::string& label : labels_) longest = std::max(longest, columns_of(label));
    across_ = static_cast<std::size_t>(std::clamp(width / (kLine + kLetter * longest), 1.0, 4.0));
    each_ = width / static_cast<double>(across_);
  }

  double height() const {
    const std::size_t rows = (labels_.size() + across_ - 1) / across_;
    return kRow * static_cast<double>(rows);
  }
  void draw(const std::vector<Series>& series, double left, double top, Svg& svg) const {
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      const std::size_t row = i / across_;
      const double x = left + each_ * static_cast<double>(i % across_),
                   y = top + kRow * static_cast<double>(row);
      svg.line(x, y - 4, x + 18, y - 4, hex_of(category_colour(series[i].colour)), 2, dashes_of(series[i]));
      svg.text(x + 22, y, labels_[i], "start", 10);
    }
  }

 private:
  static constexpr double kRow = 14, kLine = 28, kLetter = 6;  // pixels; a letter as wide as most are

  std::vector<std::string> labels_;
  std::size_t across_ = 1;
  double each_ = 0;
};

constexpr double kTitleSize = 13, kTitleEdge = 4;

/// Of a title, above the plot and the labels on its left.
std::size_t most_letters(const Plot& plot) {
  return letters_in(plot.width - 2 * kTitleEdge, kTitleSize);
}

class PlotPicture {
 public:
  explicit PlotPicture(const Plot& plot)
      : plot_(plot),
        x_(plot.turned ? axis_of_values(plot) : axis_of_places(plot)),
        y_(plot.turned ? axis_of_places(plot) : axis_of_values(plot)),
        columns_(x_.marks(6)),
        below_(mark_labels(columns_)),
        right_(plot.width - margin_of(below_)),
        legend_(plot, right_ - kLeft),
        height_(plot.height + legend_.height()),
        bottom_(height_ - 42),
        svg_(plot.width, height_, plot.title) {
    x_.place(kLeft, right_);
    y_.place(plot.downwards ? top() : bottom_, plot.downwards ? bottom_ : top());
  }

  std::string draw() {
    draw_axes();
    if (!plot_.bars) draw_mark();
    for (std::size_t i = 0; i < plot_.series.size(); ++i) {
      if (plot_.bars) {
        draw_bars(i);
      } else {
        draw_line(plot_.series[i]);
      }
    }
    if (plot_.bars) draw_mark();  // which they would hide
    legend_.draw(plot_.series, kLeft, 29, svg_);
    return svg_.finish();
  }

 private:
  static constexpr double kLeft = 76;

  double top() const { return 26 + legend_.height(); }

  /// What is free on the right, so that half of the last mark's label has room.
  static double margin_of(const std::vector<std::string>& labels) {
    constexpr double kLeast = 12, kLetter = 7;  // digits are wide
    return labels.empty() ? kLeast : std::max(kLeast, 2 + kLetter / 2 * columns_of(labels.back()));
  }

  /// Above the plot, where it is long also above the labels on the left.
  void draw_title() {
    const std::string title = shortened(plot_.title, most_letters(plot_));
    const auto letters = static_cast<std::size_t>(columns_of(title));
    const bool fits = letters <= letters_in(plot_.width - kTitleEdge - kLeft, kTitleSize);
    svg_.text(fits ? kLeft : kTitleEdge, 15, title, "start", kTitleSize);
  }

  void draw_axes() {
    draw_title();
    const std::vector<double> rows = y_.marks(5);
    const std::vector<std::string> beside = mark_labels(rows);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      svg_.line(x_.at(columns_[i]), top(), x_.at(columns_[i]), bottom_, "#e4e4e4");
      svg_.text(x_.at(columns_[i]), bottom_ + 14, below_[i], "middle");
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      svg_.line(kLeft, y_.at(rows[i]), right_, y_.at(rows[i]), "#e4e4e4");
      svg_.text(kLeft - 5, y_.at(rows[i]) + 4, beside[i], "end");
    }
    svg_.line(kLeft, bottom_, right_, bottom_, "#555");
    svg_.line(kLeft, top(), kLeft, bottom_, "#555");
    const std::string &across = plot_.turned ? plot_.y_label : plot_.x_label,
                      &up = plot_.turned ? plot_.x_label : plot_.y_label;
    svg_.text((kLeft + right_) / 2, height_ - 8, across, "middle");
    svg_.text(13, (top() + bottom_) / 2, up, "middle", 11, -90);
  }

  void draw_mark() {
    if (plot_.marks)
      svg_.line(kLeft, y_.at(plot_.mark), right_, y_.at(plot_.mark), plot_.bars ? "#222" : "#888", 1.2);
  }

  /// Those of a series, by its number.
  void draw_bars(std::size_t number) {
    const Series& series = plot_.series[number];
    const double width = 0.9 / static_cast<double>(plot_.series.size()),
                 from = width * static_cast<double>(number) - 0.45;
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (!std::isfinite(series.y[i])) continue;
      const double left = x_.at(series.x[i] + from), right = x_.at(series.x[i] + from + width),
                   up = y_.at(series.y[i]);
      svg_.rectangle(left, up, right - left, y_.at(0) - up, hex_of(category_colour(series.colour)),
                     concat(series.label, ", ", plot_.x_label, " ", short_number(series.x[i]), ": ",
                            short_number(series.y[i])));
    }
  }

  void draw_line(const Series& whole) {
    const Series series = thinned(whole);
    std::vector<Point> points;  // one behind the other, with nothing missing between
    const auto end = [&] {
      for (const std::vector<Point>& piece : pieces_in_frame(points)) draw_piece(whole, piece);
      points.clear();
    };
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      const double across = plot_.turned ? series.y[i] : series.x[i],
                   up = plot_.turned ? series.x[i] : series.y[i];
      if (x_.shows(across) && y_.shows(up)) {
        points.push_back({x_.at(across), y_.at(up)});
      } else {
        end();
      }
    }
    end();
  }

  struct Point {
    double x, y;
  };

  /// What of a line lies between the ends of the axis of values, cut where it leaves them.
  std::vector<std::vector<Point>> pieces_in_frame(const std::vector<Point>& points) const {
    const double least = plot_.turned ? kLeft : top(), most = plot_.turned ? right_ : bottom_;
    const auto place = [&](const Point& point) { return plot_.turned ? point.x : point.y; };
    constexpr double kNothing = 0.01;
    const auto side = [&](const Point& point) {
      return place(point) < least - kNothing ? -1 : place(point) > most + kNothing ? 1 : 0;
    };
    const auto cut = [&](const Point& from, const Point& to, int at) {
      const double end = at < 0 ? least : most,
                   part = std::clamp((end - place(from)) / (place(to) - place(from)), 0.0, 1.0);
      return plot_.turned ? Point{end, from.y + part * (to.y - from.y)}
                          : Point{from.x + part * (to.x - from.x), end};
    };
    std::vector<std::vector<Point>> pieces;
    int before = 2;  // no point
    for (std::size_t i = 0; i < points.size(); ++i) {
      const int now = side(points[i]);
      const bool crosses = i > 0 && now != before;
      if (now == 0 && before != 0) pieces.emplace_back();
      if (crosses && before != 0) {
        if (now != 0) pieces.emplace_back();
        pieces.back().push_back(cut(points[i - 1], points[i], before));
      }
      if (now == 0) pieces.back().push_back(points[i]);
      if (crosses && now != 0) pieces.back().push_back(cut(points[i - 1], points[i], now));
      before = now;
    }
    return pieces;
  }

  void draw_piece(const Series& whole, const std::vector<Point>& piece) {
    const std::string colour = hex_of(category_colour(whole.colour)), dashes = dashes_of(whole);
    std::string points;
    for (const auto& [x, y] : piece)
      points += concat(points.empty() ? "" : " ", coordinate(x), ",", coordinate(y));
    svg_.add(concat("<polyline data-label=\"", escaped(whole.label), "\" data-points=\"", whole.x.size(),
                    "\" data-last=\"", short_number(whole.y.back()), "\" points=\"", points,
                    "\" fill=\"none\" stroke=\"", colour, "\" stroke-width=\"1.6\"",
                    dashes.empty() ? "" : concat(" stroke-dasharray=\"", dashes, "\""), "><title>",
                    escaped(whole.label), "</title></polyline>"));
    // A line of one point would not be seen.
    if (piece.size() == 1)
      svg_.add(concat("<circle cx=\"", coordinate(piece[0].x), "\" cy=\"", coordinate(piece[0].y),
                      "\" r=\"2.5\" fill=\"", colour, "\"/>"));
  }

  const Plot& plot_;
  Axis x_, y_;
  std::vector<double> columns_;
  std::vector<std::string> below_;
  double right_;
  Legend legend_;
  double height_, bottom_;
  Svg svg_;
};

}  // namespace

std::string svg_of(const Plot& plot) {
  return PlotPicture(plot).draw();
}

std::string title_of(const std::string& name, const std::string& what, const Plot& plot) {
  return with_name(name, what, most_letters(plot));
}

std::string beyond_axis(const Plot& plot) {
  constexpr std::size_t kMostNames = 4;
  const Limits limits = limits_of(plot);
  std::vector<std::string> names;
  for (const Series& series : plot.series) {
    const auto beyond = [&](double y) {
      return std::isfinite(y) && !limits.hold(y) && (!plot.log_y || y > 0);
    };
    if (std::ranges::any_of(series.y, beyond)) names.push_back(series.label);
  }
  if (names.empty()) return "";
  const std::size_t shown = std::min(names.size(), kMostNames), more = names.size() - shown;
  return concat(" Beyond the axis, cut at its end: ",
                join(std::vector(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown)), ", "),
                more == 0 ? "" : concat(" and ", more, " more"), ".");
}

}  // namespace jigsaw::inline report
