#include "report/svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/text.h"
#include "report/colours.h"

namespace jigsaw::inline report {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return result;
}

std::string coordinate(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", value);
  std::string result = text.data();
  while (result.ends_with('0')) result.pop_back();
  if (result.ends_with('.')) result.pop_back();
  return result == "-0" ? "0" : result;
}

std::string short_number(double value) {
  std::array<char, 32> text{};
  const bool in_full = std::abs(value) < 1e6 && value == std::round(value);
  std::snprintf(text.data(), text.size(), in_full ? "%.0f" : "%.4g", value == 0 ? 0.0 : value);  // no "-0"
  return text.data();
}

Svg::Svg(double width, double height, const std::string& title) {
  out_ << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << coordinate(width) << ' '
       << coordinate(height) << "\" width=\"" << coordinate(width) << "\" height=\"" << coordinate(height)
       << "\" role=\"img\" font-family=\"sans-serif\" font-size=\"11\" fill=\"#222\">\n<title>"
       << escaped(title) << "</title>\n";
}

void Svg::line(double x0, double y0, double x1, double y1, const std::string& stroke, double width) {
  out_ << "<line x1=\"" << coordinate(x0) << "\" y1=\"" << coordinate(y0) << "\" x2=\"" << coordinate(x1)
       << "\" y2=\"" << coordinate(y1) << "\" stroke=\"" << stroke << "\" stroke-width=\""
       << coordinate(width) << "\"/>\n";
}

void Svg::rectangle(double x, double y, double width, double height, const std::string& fill,
                    const std::string& title, const std::string& stroke) {
  out_ << "<rect x=\"" << coordinate(x) << "\" y=\"" << coordinate(y) << "\" width=\"" << coordinate(width)
       << "\" height=\"" << coordinate(height) << "\" fill=\"" << fill << '"';
  if (!stroke.empty()) out_ << " stroke=\"" << stroke << "\" stroke-width=\"0.6\"";
  if (title.empty()) {
    out_ << "/>\n";
  } else {
    out_ << "><title>" << escaped(title) << "</title></rect>\n";
  }
}

void Svg::text(double x, double y, std::string_view text, const std::string& anchor, double size,
               double turned) {
  out_ << "<text x=\"" << coordinate(x) << "\" y=\"" << coordinate(y) << "\" text-anchor=\"" << anchor
       << "\" font-size=\"" << coordinate(size) << '"';
  if (turned != 0)
    out_ << " transform=\"rotate(" << coordinate(turned) << ' ' << coordinate(x) << ' ' << coordinate(y)
         << ")\"";
  out_ << '>' << escaped(text) << "</text>\n";
}

std::vector<double> ticks(double low, double high, int count) {
  if (!(high > low)) return {low};
  const double rough = (high - low) / count, power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> result;
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; ++i)
    result.push_back(i * step);
  return result;
}

namespace {

constexpr std::size_t kMostPoints = 600;

/// An axis of numbers: where they stand on the paper.
class Axis {
 public:
  Axis(bool logarithmic, double first, double last) : log_(logarithmic), first_(first), last_(last) {}

  void include(double value) {
    if (!std::isfinite(value) || (log_ && value <= 0)) return;
    low_ = std::min(low_, value);
    high_ = std::max(high_, value);
  }
  void close() {
    if (!(low_ <= high_)) low_ = log_ ? 0.1 : 0, high_ = 1;
    if (low_ == high_) {
      const double around = low_ == 0 ? 1 : 0.1 * std::abs(low_);
      high_ += around;
      low_ = log_ ? low_ / 2 : low_ - around;
    }
  }
  double at(double value) const {
    const double part =
        log_ ? std::log(value / low_) / std::log(high_ / low_) : (value - low_) / (high_ - low_);
    return first_ + part * (last_ - first_);
  }
  bool shows(double value) const { return std::isfinite(value) && (!log_ || value > 0); }
  std::vector<double> marks(int count) const {
    if (!log_ || high_ < 10 * low_) return ticks(low_, high_, count);
    std::vector<double> result;
    const double first = std::floor(std::log10(low_)), last = std::ceil(std::log10(high_));
    const double every = std::max(1.0, std::ceil((last - first) / count));
    for (double power = first; power <= last; power += every) {
      for (const double factor : {1.0, 2.0, 5.0}) {
        const double value = factor * std::pow(10.0, power);
        if (value < low_ * 0.999 || value > high_ * 1.001 || (factor != 1 && last - first > 2)) continue;
        result.push_back(value);
      }
    }
    return result;
  }
  double low() const { return low_; }

 private:
  bool log_;
  double first_, last_;
  double low_ = std::numeric_limits<double>::infinity(), high_ = -low_;
};

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
    if (count == 0) continue;
    result.x.push_back(x / count);
    result.y.push_back(y / count);
  }
  return result;
}

class PlotPicture {
 public:
  explicit PlotPicture(const Plot& plot)
      : plot_(plot),
        right_(plot.width - 12),
        bottom_(plot.height - 42),
        x_(plot.turned ? plot.log_y : plot.log_x, kLeft, right_),
        y_(plot.turned ? plot.log_x : plot.log_y, bottom_, top()),
        svg_(plot.width, plot.height, plot.title) {
    for (const Series& series : plot.series) {
      for (std::size_t i = 0; i < series.x.size(); ++i) {
        if (!std::isfinite(series.x[i]) || !std::isfinite(series.y[i])) continue;
        x_.include(plot.turned ? series.y[i] : series.x[i]);
        y_.include(plot.turned ? series.x[i] : series.y[i]);
      }
    }
    if (plot.from_zero) (plot.turned ? x_ : y_).include(0);
    if (plot.marks) y_.include(plot.mark);
    x_.close();
    y_.close();
  }

  std::string draw() {
    draw_axes();
    for (const Series& series : plot_.series) draw_line(series);
    draw_legend();
    return svg_.finish();
  }

 private:
  static constexpr double kLeft = 64;

  double top() const { return 26 + 14 * static_cast<double>(legend_rows()); }
  /// Names of lines beside each other.
  std::size_t across() const { return plot_.width < 400 ? 2 : 4; }
  std::size_t legend_rows() const {
    return plot_.series.size() > 1 ? (plot_.series.size() + across() - 1) / across() : 0;
  }

  void draw_axes() {
    svg_.text(kLeft, 15, plot_.title, "start", 13);
    for (const double value : x_.marks(6)) {
      svg_.line(x_.at(value), top(), x_.at(value), bottom_, "#e4e4e4");
      svg_.text(x_.at(value), bottom_ + 14, short_number(value), "middle");
    }
    for (const double value : y_.marks(5)) {
      svg_.line(kLeft, y_.at(value), right_, y_.at(value), "#e4e4e4");
      svg_.text(kLeft - 5, y_.at(value) + 4, short_number(value), "end");
    }
    if (plot_.marks) svg_.line(kLeft, y_.at(plot_.mark), right_, y_.at(plot_.mark), "#888", 1.2);
    svg_.line(kLeft, bottom_, right_, bottom_, "#555");
    svg_.line(kLeft, top(), kLeft, bottom_, "#555");
    const std::string &across = plot_.turned ? plot_.y_label : plot_.x_label,
                      &up = plot_.turned ? plot_.x_label : plot_.y_label;
    svg_.text((kLeft + right_) / 2, plot_.height - 8, across, "middle");
    svg_.text(13, (top() + bottom_) / 2, up, "middle", 11, -90);
  }

  void draw_line(const Series& whole) {
    const Series series = thinned(whole);
    std::string points;
    const auto end = [&] {
      if (points.empty()) return;
      const double last = whole.y.empty() ? 0 : whole.y.back();
      svg_.add(concat("<polyline data-label=\"", escaped(whole.label), "\" data-points=\"", whole.x.size(),
                      "\" data-last=\"", short_number(last), "\" points=\"", points,
                      "\" fill=\"none\" stroke=\"", hex_of(category_colour(series.colour)),
                      "\" stroke-width=\"1.6\"", series.dashed ? " stroke-dasharray=\"5 3\"" : "", "><title>",
                      escaped(whole.label), "</title></polyline>"));
      points.clear();
    };
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      const double across = plot_.turned ? series.y[i] : series.x[i],
                   up = plot_.turned ? series.x[i] : series.y[i];
      if (!x_.shows(across) || !y_.shows(up)) {
        end();
        continue;
      }
      points += concat(points.empty() ? "" : " ", coordinate(x_.at(across)), ",", coordinate(y_.at(up)));
    }
    end();
    // A line of one point would not be seen.
    if (series.x.size() == 1 && x_.shows(plot_.turned ? series.y[0] : series.x[0]) &&
        y_.shows(plot_.turned ? series.x[0] : series.y[0]))
      svg_.add(concat("<circle cx=\"", coordinate(x_.at(plot_.turned ? series.y[0] : series.x[0])),
                      "\" cy=\"", coordinate(y_.at(plot_.turned ? series.x[0] : series.y[0])),
                      "\" r=\"2.5\" fill=\"", hex_of(category_colour(series.colour)), "\"/>"));
  }

  void draw_legend() {
    if (legend_rows() == 0) return;
    const double each = (right_ - kLeft) / static_cast<double>(across());
    for (std::size_t i = 0; i < plot_.series.size(); ++i) {
      const std::size_t row = i / across();
      const double x = kLeft + each * static_cast<double>(i % across()),
                   y = 29 + 14 * static_cast<double>(row);
      const Series& series = plot_.series[i];
      svg_.line(x, y - 4, x + 16, y - 4, hex_of(category_colour(series.colour)), series.dashed ? 1 : 2.5);
      std::string label = series.label;
      const auto most = static_cast<std::size_t>(each / 6);
      if (label.size() > most) label = label.substr(0, most - 2) + "…";
      svg_.text(x + 20, y, label, "start", 10);
    }
  }

  const Plot& plot_;
  double right_, bottom_;
  Axis x_, y_;
  Svg svg_;
};

}  // namespace

std::string svg_of(const Plot& plot) {
  return PlotPicture(plot).draw();
}

std::string svg_of(const Bars& bars) {
  double most = 0;
  std::vector<std::string> labels;
  std::size_t longest = 4;
  for (const auto& [name, parts] : bars.rows) {
    double sum = 0;
    for (const BarPart& part : parts) {
      sum += part.value;
      if (std::ranges::find(labels, part.label) == labels.end()) labels.push_back(part.label);
    }
    most = std::max(most, sum);
    longest = std::max(longest, name.size());
  }
  const auto shown = [&](double value) {
    return bars.bytes ? human_bytes(std::llround(value)) : concat(short_number(value), " ", bars.unit);
  };
  const double left = 14 + 6.2 * static_cast<double>(std::min<std::size_t>(longest, 26)),
               right = bars.width - 84;
  const std::size_t rows_of_labels = (labels.size() + 2) / 3;
  const double top = 34 + 14 * static_cast<double>(rows_of_labels), each = 20;
  Svg svg(bars.width, top + each * static_cast<double>(bars.rows.size()) + 10, bars.title);
  svg.text(8, 15, bars.title, "start", 13);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::size_t row = i / 3;
    const double x = 8 + (bars.width - 16) / 3 * static_cast<double>(i % 3),
                 y = 31 + 14 * static_cast<double>(row);
    svg.rectangle(x, y - 9, 10, 10, hex_of(category_colour(i)));
    svg.text(x + 14, y, labels[i], "start", 10);
  }
  double y = top;
  for (const auto& [name, parts] : bars.rows) {
    svg.text(left - 6, y + 12, name.substr(0, 26), "end");
    double x = left, sum = 0;
    for (const BarPart& part : parts) {
      const double width = most > 0 ? part.value / most * (right - left) : 0;
      const auto colour = static_cast<std::size_t>(std::ranges::find(labels, part.label) - labels.begin());
      svg.rectangle(x, y + 1, width, each - 5, hex_of(category_colour(colour)),
                    concat(name, ": ", part.label, " ", shown(part.value)));
      x += width;
      sum += part.value;
    }
    svg.text(x + 4, y + 12, shown(sum), "start", 10);
    y += each;
  }
  return svg.finish();
}

}  // namespace jigsaw::inline report
