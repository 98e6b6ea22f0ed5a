#include "report/svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "base/terminal.h"
#include "base/text.h"
#include "report/colours.h"

namespace jigsaw::inline report {

std::string escaped(std::string_view text) {
  std::string result, blank(text);
  std::ranges::replace_if(
      blank, [](unsigned char c) { return c < 0x20; }, ' ');
  for (const char c : printable(blank)) {
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
        result += c;
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

std::vector<std::string> mark_labels(const std::vector<double>& marks) {
  std::vector<std::string> labels;
  for (const double mark : marks) labels.push_back(short_number(mark));
  double step = std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i < marks.size(); ++i) step = std::min(step, std::abs(marks[i] - marks[i - 1]));
  const auto exact = [&](std::size_t i) {
    return !std::isfinite(step) || std::abs(std::strtod(labels[i].c_str(), nullptr) - marks[i]) < 0.01 * step;
  };
  for (std::size_t i = 0; i < marks.size(); ++i) {
    for (int digits = 5; digits <= 15 && !exact(i); ++digits) {
      std::array<char, 32> text{};
      std::snprintf(text.data(), text.size(), "%.*g", digits, marks[i]);
      labels[i] = text.data();
    }
  }
  return labels;
}

std::string shortened(const std::string& text, std::size_t most) {
  std::vector<std::size_t> begins;  // of code points
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) begins.push_back(i);
  }
  most = std::max<std::size_t>(most, 3);
  if (begins.size() <= most) return text;
  const std::size_t kept = most - 1, first = kept / 2, last = kept - first;
  return text.substr(0, begins[first]) + "…" + text.substr(begins[begins.size() - last]);
}

namespace {

/// What all names of a list have in front, up to a separator; "" where there are less than two.
std::string common_begin(const std::vector<std::string>& names) {
  if (names.size() < 2) return "";
  std::size_t common = names[0].size();
  for (const std::string& name : names) {
    const auto end = names[0].begin() + static_cast<std::ptrdiff_t>(common);
    common = static_cast<std::size_t>(std::mismatch(names[0].begin(), end, name.begin(), name.end()).first -
                                      names[0].begin());
  }
  const std::size_t separator = common == 0 ? std::string::npos : names[0].find_last_of("/,= :", common - 1);
  return separator == std::string::npos ? "" : names[0].substr(0, separator + 1);
}

}  // namespace

std::vector<std::string> short_names(std::vector<std::string> names, std::size_t most) {
  const std::size_t begin = common_begin(names).size();
  std::map<std::string, std::set<std::string>> whole;  // by what is shown of them
  for (std::string& name : names) {
    name.erase(0, begin);
    whole[shortened(name, most)].insert(name);
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string shown = shortened(names[i], most), number = concat(i + 1, " ");
    names[i] = whole.at(shown).size() == 1
                   ? shown
                   : number + shortened(names[i], most - std::min(most, number.size()));
  }
  return names;
}

Svg::Svg(double width, double height, const std::string& title) {
  out_ << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << coordinate(width) << ' '
       << coordinate(height) << "\" width=\"" << coordinate(width) << "\" height=\"" << coordinate(height)
       << "\" role=\"img\" font-family=\"sans-serif\" font-size=\"11\" fill=\"#222\">\n<title>"
       << escaped(title) << "</title>\n";
}

void Svg::line(double x0, double y0, double x1, double y1, const std::string& stroke, double width,
               const std::string& dashes) {
  out_ << "<line x1=\"" << coordinate(x0) << "\" y1=\"" << coordinate(y0) << "\" x2=\"" << coordinate(x1)
       << "\" y2=\"" << coordinate(y1) << "\" stroke=\"" << stroke << "\" stroke-width=\""
       << coordinate(width) << '"';
  if (!dashes.empty()) out_ << " stroke-dasharray=\"" << dashes << '"';
  out_ << "/>\n";
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
    // Nor do ticks tell apart what lies closer than float64 does.
    if (!(high_ - low_ > 1e-12 * std::abs(high_))) {
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

/// Names of lines above a plot, as many beside each other as there is room for.
class Legend {
 public:
  Legend(const std::vector<Series>& series, double width) {
    if (series.size() < 2) return;
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

class PlotPicture {
 public:
  explicit PlotPicture(const Plot& plot)
      : plot_(plot),
        right_(plot.width - 12),
        legend_(plot.series, right_ - kLeft),
        height_(plot.height + legend_.height()),
        bottom_(height_ - 42),
        x_(plot.turned ? plot.log_y : plot.log_x, kLeft, right_),
        y_(plot.turned ? plot.log_x : plot.log_y, plot.downwards ? top() : bottom_,
           plot.downwards ? bottom_ : top()),
        svg_(plot.width, height_, plot.title) {
    for (const Series& series : plot.series) {
      require(series.x.size() == series.y.size(), "the points of a line have two coordinates");
      for (std::size_t i = 0; i < series.x.size(); ++i) {
        if (!std::isfinite(series.x[i]) || !std::isfinite(series.y[i])) continue;
        x_.include(plot.turned ? series.y[i] : series.x[i]);
        y_.include(plot.turned ? series.x[i] : series.y[i]);
        if (!plot.bars) continue;
        x_.include(series.x[i] - 0.5);
        x_.include(series.x[i] + 0.5);
      }
    }
    if (plot.from_zero || plot.bars) (plot.turned ? x_ : y_).include(0);
    if (plot.marks) y_.include(plot.mark);
    x_.close();
    y_.close();
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

  void draw_axes() {
    svg_.text(kLeft, 15, plot_.title, "start", 13);
    std::vector<double> columns = x_.marks(6);
    const std::vector<double> rows = y_.marks(5);
    if (plot_.bars) std::erase_if(columns, [](double mark) { return mark != std::round(mark); });
    const std::vector<std::string> below = mark_labels(columns), beside = mark_labels(rows);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      svg_.line(x_.at(columns[i]), top(), x_.at(columns[i]), bottom_, "#e4e4e4");
      svg_.text(x_.at(columns[i]), bottom_ + 14, below[i], "middle");
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
    const std::string colour = hex_of(category_colour(series.colour)), dashes = dashes_of(series);
    std::string points;
    std::size_t count = 0;
    double x = 0, y = 0;
    const auto end = [&] {
      if (count == 0) return;
      svg_.add(concat("<polyline data-label=\"", escaped(whole.label), "\" data-points=\"", whole.x.size(),
                      "\" data-last=\"", short_number(whole.y.back()), "\" points=\"", points,
                      "\" fill=\"none\" stroke=\"", colour, "\" stroke-width=\"1.6\"",
                      dashes.empty() ? "" : concat(" stroke-dasharray=\"", dashes, "\""), "><title>",
                      escaped(whole.label), "</title></polyline>"));
      // A line of one point would not be seen.
      if (count == 1)
        svg_.add(concat("<circle cx=\"", coordinate(x), "\" cy=\"", coordinate(y), "\" r=\"2.5\" fill=\"",
                        colour, "\"/>"));
      points.clear();
      count = 0;
    };
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      const double across = plot_.turned ? series.y[i] : series.x[i],
                   up = plot_.turned ? series.x[i] : series.y[i];
      if (!x_.shows(across) || !y_.shows(up)) {
        end();
        continue;
      }
      x = x_.at(across);
      y = y_.at(up);
      points += concat(count++ == 0 ? "" : " ", coordinate(x), ",", coordinate(y));
    }
    end();
  }

  const Plot& plot_;
  double right_;
  Legend legend_;
  double height_, bottom_;
  Axis x_, y_;
  Svg svg_;
};

}  // namespace

std::string svg_of(const Plot& plot) {
  return PlotPicture(plot).draw();
}

namespace {

/// Three names of parts beside each other, each behind its colour.
void draw_part_labels(const std::vector<std::string>& labels, double width, Svg& svg) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::size_t row = i / 3;
    const double x = 8 + (width - 16) / 3 * static_cast<double>(i % 3),
                 y = 31 + 14 * static_cast<double>(row);
    svg.rectangle(x, y - 9, 10, 10, hex_of(category_colour(i)));
    svg.text(x + 14, y, shortened(labels[i], static_cast<std::size_t>((width - 16) / 3 - 18) / 6), "start",
             10);
  }
}

}  // namespace

std::string svg_of(const Bars& bars) {
  constexpr std::size_t kMostLetters = 26;
  double most = 0;
  std::vector<std::string> labels, names;
  int longest = 4;
  for (const auto& row : bars.rows) names.push_back(row.first);
  names = short_names(std::move(names), kMostLetters);
  for (const std::string& name : names) longest = std::max(longest, columns_of(name));
  for (const auto& [name, parts] : bars.rows) {
    double sum = 0;
    for (const BarPart& part : parts) {
      sum += part.value;
      if (std::ranges::find(labels, part.label) == labels.end()) labels.push_back(part.label);
    }
    most = std::max(most, sum);
  }
  const auto shown = [&](double value) {
    return bars.bytes ? human_bytes(std::llround(value)) : concat(short_number(value), " ", bars.unit);
  };
  const double left = 14 + 6.2 * longest, right = bars.width - 84;
  const std::size_t rows_of_labels = (labels.size() + 2) / 3;
  const double top = 34 + 14 * static_cast<double>(rows_of_labels), each = 20;
  Svg svg(bars.width, top + each * static_cast<double>(bars.rows.size()) + 10, bars.title);
  svg.text(8, 15, bars.title, "start", 13);
  draw_part_labels(labels, bars.width, svg);
  double y = top;
  for (std::size_t i = 0; i < bars.rows.size(); ++i) {
    const auto& [name, parts] = bars.rows[i];
    svg.text(left - 6, y + 12, names[i], "end");
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
