#pragma once
#include <string>
#include <vector>

#include "autograd/field_operations.h"
#include "config/keys.h"
#include "layers/layer.h"

namespace jigsaw::inline layers {

// Keys that layers over neighbourhoods share: each takes one value for all spatial dims, or one for each.

using Extents = std::vector<std::int64_t>;
using Edges = std::vector<Edge>;

/// What lies beyond the ends, by name: "zeros", "reflect", "replicate", "circular" as torch has them, and
/// "pole_point" and "pole_cell" across poles.
FormPtr<Edges> edges_form();

/// What is wrong with so many entries for all spatial dims or for each, behind a key's name: "has 2 entries
/// for 3 spatial dims; …"; "" where nothing is.
std::string fault_of_count(std::size_t count, int dims);

/// A list of one entry, or of one for each spatial dim, as one for each.
/// @throws ConfigError that names the key.
Shape per_dim(const LayerSite& site, const std::string& key, const Extents& values);

/// What lies beyond the ends of a spatial dim, of one entry for all of them or one for each.
Edge edge_of(const Edges& edges, int dim);

/// Padding by `points` at both ends of each dim.
/// @param far_edges  what lies beyond the far ends; empty: the same as beyond the near ones.
/// @throws ConfigError when the field has too few points to reflect, or an odd circle around a pole.
Padding padding_of(const LayerSite& site, const Shape& points, const Edges& edges,
                   const Edges& far_edges = {});

/// @throws ConfigError unless the window has a place in the padded field.
void check_window(const LayerSite& site, const Window& window, const Padding& padding);

}  // namespace jigsaw::inline layers
