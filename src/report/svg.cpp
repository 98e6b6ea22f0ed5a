#include "report/svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

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

/// What all names of a list have in front, up to one of these separators; "" where there are less than two.
std::string common_begin(const std::vector<std::string>& names, const char* separators) {
  if (names.size() < 2) return "";
  std::size_t common = names[0].size();
  for (const std::string& name : names) {
    const auto end = names[0].begin() + static_cast<std::ptrdiff_t>(common);
    common = static_cast<std::size_t>(std::mismatch(names[0].begin(), end, name.begin(), name.end()).first -
                                      names[0].begin());
  }
  const std::size_t separator =
      common == 0 ? std::string::npos : names[0].find_last_of(separators, common - 1);
  if (separator == std::string::npos) return "";
  const bool blank = separator + 1 < common && names[0][separator + 1] == ' ';
  return names[0].substr(0, separator + (blank ? 2 : 1));
}

}  // namespace

std::vector<std::string> short_names(std::vector<std::string> names, std::size_t most) {
  std::size_t begin = common_begin(names, "/,:").size();
  // The key of what differs goes where there is no room for it.
  if (std::ranges::any_of(names, [&](const std::string& name) { return name.size() - begin > most; }))
    begin = common_begin(names, "/,=:").size();
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

std::size_t letters_in(double width, double size) {
  constexpr double kLetter = 0.6;  // of the size
  return static_cast<std::size_t>(std::max(0.0, width) / (kLetter * size));
}

std::string with_name(const std::string& name, const std::string& what, std::size_t most) {
  const auto letters = static_cast<std::size_t>(columns_of(what));
  return shortened(name, most - std::min(most, letters)) + what;
}

Svg::Svg(double width, double height, const std::string& title) {
  out_ << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << coordinate(width) << ' '
       << coordinate(height) << "\" width=\"" << coordinate(width) << "\" height=\"" << coordinate(height)
       << "\" role=\"img\" font-family=\"sans-serif\" font-size=\"11\" fill=\"#222\" "
          "style=\"background:#fff\">\n<title>"
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
