#include "layers/spatial_keys.h"

#include <utility>

#include "base/text.h"
#include "config/config.h"

namespace jigsaw::inline layers {

FormPtr<Edges> edges_form() {
  return one_or_list<Edge>(choice<Edge>({
      {"zeros", Edge::kZero, "Zeros."},
      {"reflect", Edge::kReflect, "Mirrored at the last point."},
      {"replicate", Edge::kReplicate, "The last point."},
      {"circular", Edge::kPeriodic, "The other end: longitude around the globe."},
      {"pole_point", Edge::kPolePoint,
       "Across a pole that is itself the last row, to the other half of the circle (an even number of "
       "columns)."},
      {"pole_cell", Edge::kPoleCell,
       "Across a pole half a row beyond the last row, to the other half of the circle (an even number of "
       "columns)."},
  }));
}

std::string fault_of_count(std::size_t count, int dims) {
  if (count == 1 || std::cmp_equal(count, dims)) return "";
  return concat("has ", count, " entries for ", dims, " spatial dims; give it 1 or ", dims);
}

namespace {

void check_count(const LayerSite& site, const std::string& key, std::size_t count) {
  if (const std::string fault = fault_of_count(count, site.input.space.rank()); !fault.empty())
    site.error(key, fault);
}

const char* name_of_axis(const LayerSite& site, int dim) {
  static constexpr const char* kNames[] = {"depth", "height", "width"};
  return kNames[3 - site.input.space.rank() + dim];
}

void check_end(const LayerSite& site, int dim, Edge edge, std::int64_t points) {
  const Shape& space = site.input.space;
  const std::int64_t least = edge == Edge::kReflect ? points + 1 : edge == Edge::kPeriodic ? points : 0;
  if (space[dim] < least) {
    site.error("padding_mode",
               concat(edge == Edge::kReflect ? "mirrors" : "goes around a circle for", " the ",
                      counted(points, "point"), " that ", site.path, " reads beyond an end of ",
                      name_of_axis(site, dim), ", of which there are ", space[dim], " and must be ", least,
                      "; take another mode, a smaller kernel or a larger grid there"));
  }
  if (!is_pole(edge)) return;
  if (space.rank() < 2 || dim != space.rank() - 2) {
    site.error("padding_mode",
               concat("can cross poles along latitude only, the last axis but one, not along ",
                      name_of_axis(site, dim), "; use \"replicate\" there"));
  }
  if (space.back() % 2 != 0) {
    site.error("padding_mode",
               concat("crosses poles to the other half of the circle, but there are ", space.back(),
                      " columns here, an odd number; use \"replicate\" along latitude, or a grid and levels "
                      "that leave an even number everywhere"));
  }
}

}  // namespace

Shape per_dim(const LayerSite& site, const std::string& key, const Extents& values) {
  check_count(site, key, values.size());
  Shape shape = Shape::filled(site.input.space.rank(), values.front());
  for (std::size_t i = 0; i < values.size() && values.size() > 1; ++i) shape[static_cast<int>(i)] = values[i];
  return shape;
}

Edge edge_of(const Edges& edges, int dim) {
  return edges[edges.size() > 1 ? static_cast<std::size_t>(dim) : 0];
}

Padding padding_of(const LayerSite& site, const Shape& points, const Edges& edges, const Edges& far_edges) {
  check_count(site, "padding_mode", edges.size());
  Padding padding;
  padding.crossing = site.input.crossing;
  for (int dim = 0; dim < points.rank(); ++dim) {
    const Edge low = edge_of(edges, dim), high = far_edges.empty() ? low : edge_of(far_edges, dim);
    padding.dims.push_back({points[dim], points[dim], low, high});
    for (const Edge edge : {low, high}) check_end(site, dim, edge, points[dim]);
  }
  return padding;
}

void check_window(const LayerSite& site, const Window& window, const Padding& padding) {
  for (int dim = 0; dim < window.extent.rank(); ++dim) {
    const Ends& ends = padding.dims[static_cast<std::size_t>(dim)];
    const std::int64_t padded = site.input.space[dim] + ends.low + ends.high, reach = window.reach(dim);
    if (reach > padded) {
      site.error("kernel", concat("spans ", reach, " points along ", name_of_axis(site, dim),
                                  ", but the padded field has ", padded, "; at most ",
                                  (padded - 1) / window.dilation[dim] + 1, " would fit"));
    }
  }
}

}  // namespace jigsaw::inline layers
