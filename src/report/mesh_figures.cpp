#include <algorithm>

#include "base/text.h"
#include "report/colours.h"
#include "report/figures.h"
#include "report/svg.h"

namespace jigsaw::inline report {

namespace {

constexpr std::size_t kMostParameters = 96;

std::vector<std::int64_t> list_of(const Json& json) {
  return json.get<std::vector<std::int64_t>>();
}

std::string by_extents(const std::vector<std::int64_t>& extents) {
  return extents.empty() ? "one number" : join(extents, " × ");
}

std::string axes_of(const Json& placement) {
  std::vector<std::string> axes;
  for (const Json& axis : placement.at("axes"))
    axes.push_back(concat(axis.at("name").get<std::string>(), " ", axis.at("size").get<int>()));
  return join(axes, " × ");
}

/// The field seen on its last two spatial axes, each rank's piece in the rank's colour. Pieces that lie on
/// each other (other samples, channels or depths) stand in layers beside each other, for those in front would
/// hide the others.
std::string field_picture(const Json& placement) {
  const std::vector<std::int64_t> space = list_of(placement.at("space"));
  const std::size_t axes = space.size();
  const double rows = axes > 1 ? static_cast<double>(space.at(axes - 2)) : 1,
               columns = static_cast<double>(space.at(axes - 1));
  std::vector<std::vector<std::int64_t>> layers;  // what of the other axes a piece holds, by its begin
  const auto others = [&](const Json& box) {
    std::vector<std::int64_t> begin = list_of(box.at(0));
    const std::size_t last = begin.size() - 1;
    begin.at(last - 1) = 0;
    if (axes > 1) begin.at(last - 2) = 0;
    return begin;
  };
  for (const Json& box : placement.at("field")) {
    if (std::ranges::find(layers, others(box)) == layers.end()) layers.push_back(others(box));
  }
  std::ranges::sort(layers);
  constexpr double kApart = 12;
  const std::size_t across = std::clamp<std::size_t>(layers.size(), 1, 4),
                    lines = (layers.size() + across - 1) / across;
  const double width = across == 1   ? 360
                       : across == 2 ? 240
                                     : 160,
               height = std::clamp(width * rows / columns, 60.0, 360.0);
  Svg svg((width + kApart) * static_cast<double>(across), 28 + (height + kApart) * static_cast<double>(lines),
          "Which rank holds what of the field");
  svg.text(0, 14, concat("field of ", by_extents(space), " points"), "start", 12);
  for (std::size_t k = 0; k < layers.size(); ++k) {
    const std::size_t line = k / across;
    const double x0 = 4 + (width + kApart) * static_cast<double>(k % across),
                 y0 = 24 + (height + kApart) * static_cast<double>(line);
    int rank = 0;
    for (const Json& box : placement.at("field")) {
      const int number = rank++;
      if (others(box) != layers[k]) continue;
      const std::vector<std::int64_t> begin = list_of(box.at(0)), extent = list_of(box.at(1));
      const std::size_t c = begin.size() - 2;
      const double x = static_cast<double>(begin.at(c)) / columns,
                   w = static_cast<double>(extent.at(c)) / columns;
      const double y = axes > 1 ? static_cast<double>(begin.at(c - 1)) / rows : 0,
                   h = axes > 1 ? static_cast<double>(extent.at(c - 1)) / rows : 1;
      svg.rectangle(x0 + x * width, y0 + y * height, w * width, h * height,
                    hex_of(category_colour(static_cast<std::size_t>(number))),
                    concat("rank ", number, ": from [", join(begin, ", "), "], ", by_extents(extent)),
                    "#fff");
      svg.text(x0 + (x + w / 2) * width, y0 + (y + h / 2) * height + 4, std::to_string(number), "middle");
    }
  }
  return svg.finish();
}

/// A part of a parameter, and the ranks that store it.
struct StoredPart {
  std::vector<int> ranks;
  Json part;  ///< number of the parameter, begin and extents of a box, first element and number of elements
};

/// A parameter as a matrix of its first dim by the others; each part in the colour of the first rank that
/// stores it, of a run of elements whole rows.
void draw_parameter(Svg& svg, double x0, double y0, const std::vector<std::int64_t>& shape,
                    const std::vector<StoredPart>& stored) {
  constexpr double kWidth = 84, kHeight = 44, kLetter = 6;
  double rows = shape.empty() ? 1 : static_cast<double>(shape[0]), columns = 1;
  for (std::size_t d = 1; d < shape.size(); ++d) columns *= static_cast<double>(shape[d]);
  const bool vector = shape.size() < 2;
  if (vector) std::swap(rows, columns);
  for (const auto& [ranks, part] : stored) {
    const std::vector<std::int64_t> begin = list_of(part.at(1)), extent = list_of(part.at(2));
    // Columns are ordered so that a piece is one block of them.
    double inner = 1, at = 0, part_of_columns = 1;
    for (std::size_t d = 1; d < shape.size(); ++d) {
      const auto all = static_cast<double>(shape[d]);
      inner *= static_cast<double>(extent.at(d));
      at += static_cast<double>(begin.at(d)) / all * part_of_columns;
      part_of_columns *= static_cast<double>(extent.at(d)) / all;
    }
    const double from = static_cast<double>(begin.empty() ? 0 : begin[0]) + part.at(3).get<double>() / inner,
                 rows_here = part.at(4).get<double>() / inner;
    const double x = vector ? from / columns * kWidth : at * kWidth, y = vector ? 0 : from / rows * kHeight,
                 w = vector ? rows_here / columns * kWidth : part_of_columns * kWidth,
                 h = vector ? kHeight : rows_here / rows * kHeight;
    const std::string names = join(ranks, ", ");
    svg.rectangle(x0 + x, y0 + y, w, h, hex_of(category_colour(static_cast<std::size_t>(ranks[0]))),
                  concat(ranks.size() == 1 ? "rank " : "ranks ", names, ": ", part.at(4).get<std::int64_t>(),
                         " elements of the box from [", join(begin, ", "), "], ", by_extents(extent)));
    const auto most = static_cast<std::size_t>(w / kLetter);
    if (h >= 9 && most >= std::min<std::size_t>(names.size(), 5))
      svg.text(x0 + x + w / 2, y0 + y + h / 2 + 4, shortened(names, most), "middle", 10);
  }
  svg.rectangle(x0, y0, kWidth, kHeight, "none", "", "#444");
}

std::string weights_picture(const Json& placement) {
  const Json &parameters = placement.at("parameters"), &stored = placement.at("stored");
  std::vector<std::vector<StoredPart>> parts(parameters.size());
  for (std::size_t rank = 0; rank < stored.size(); ++rank) {
    for (const Json& part : stored.at(rank)) {
      std::vector<StoredPart>& of_parameter = parts.at(part.at(0).get<std::size_t>());
      const auto same = std::ranges::find(of_parameter, part, &StoredPart::part);
      if (same == of_parameter.end()) {
        of_parameter.push_back({{static_cast<int>(rank)}, part});
      } else {
        same->ranks.push_back(static_cast<int>(rank));
      }
    }
  }
  constexpr double kEach = 176, kDown = 92;
  constexpr std::size_t kInLine = 5;
  const std::size_t shown = std::min(parameters.size(), kMostParameters),
                    lines = (shown + kInLine - 1) / kInLine;
  Svg svg(kEach * kInLine, kDown * static_cast<double>(lines) + 6,
          "Which rank stores what of each layer's weights");
  for (std::size_t i = 0; i < shown; ++i) {
    const std::size_t line = i / kInLine;
    const double x = kEach * static_cast<double>(i % kInLine), y = kDown * static_cast<double>(line);
    const std::string name = parameters.at(i).at("name").get<std::string>();
    const std::vector<std::int64_t> shape = list_of(parameters.at(i).at("shape"));
    svg.text(x, y + 14, shortened(name, 28), "start", 10);
    svg.text(x, y + 26, parameters.at(i).at("layout").get<std::string>(), "start", 9);
    draw_parameter(svg, x, y + 31, shape, parts[i]);
  }
  return svg.finish();
}

void add_placement(const Json& placement, const std::string& suffix, Figures& figures) {
  figures.push_back(
      {"fig-mesh-field" + suffix, field_picture(placement),
       concat("The pieces of the input field, numbered by rank; pieces of other samples, channels or depths "
              "stand beside each other. ",
              counted(placement.at("ranks").get<int>(), "rank"), ": ", axes_of(placement), ".")});
  if (!placement.at("stored").is_array()) return;
  const std::size_t count = placement.at("parameters").size();
  figures.push_back(
      {"fig-mesh-weights" + suffix, weights_picture(placement),
       concat(
           "What each rank stores of each layer's weights, as rows by columns, in the rank's colour of the "
           "picture above, and of what several ranks store in that of the first; behind the shape how a step "
           "uses it along each mesh axis (R: whole, S(d): cut "
           "along d).",
           count > kMostParameters ? concat(" The first ", kMostParameters, " of ", count, ".") : "")});
}

}  // namespace

Figures mesh_figures(const RunRecord& run, const std::string& suffix) {
  Figures figures;
  if (run.placement.is_object())
    naming_malformed(run.path + "/placement.json", [&] { add_placement(run.placement, suffix, figures); });
  return figures;
}

}  // namespace jigsaw::inline report
