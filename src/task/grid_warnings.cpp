#include "task/grid_warnings.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "grids/axis_map.h"
#include "grids/degrees.h"
#include "images/image_data.h"
#include "layers/global_rows.h"
#include "samples/dataset.h"
#include "task/loss_types.h"

namespace jigsaw::inline task {

namespace {

std::string coordinate_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

/// What a model reads beyond the ends of one axis, and the first place that says so.
struct EdgeUse {
  std::string mode, key;
  int axis = 0;  ///< of fields 0: of latitudes; 1: of longitudes
};

/// All of them in a section, each once. @param axes  how many there are.
void collect_edges(const Json& section, const std::string& key, int axes, std::vector<EdgeUse>& found) {
  const auto add = [&](const Json& mode, int axis) {
    if (!mode.is_string()) return;
    const auto is_same = [&](const EdgeUse& use) { return use.axis == axis && mode == use.mode; };
    if (std::ranges::none_of(found, is_same)) found.push_back({mode.get<std::string>(), key, axis});
  };
  if (section.is_object()) {
    for (const auto& [name, value] : section.items())
      collect_edges(value, concat(key, ".", name), axes, found);
  } else if (key.ends_with(".circular")) {
    if (section == true) add("circular", axes - 1);
  } else if (key.ends_with(".padding_mode")) {
    const bool of_each = section.is_array() && section.size() == static_cast<std::size_t>(axes);
    const Json& one = section.is_array() && section.size() == 1 ? section[0] : section;
    for (int axis = 0; axis < axes; ++axis)
      add(of_each ? section[static_cast<std::size_t>(axis)] : one, axis);
  } else if (section.is_array()) {
    for (std::size_t i = 0; i < section.size(); ++i)
      collect_edges(section[i], concat(key, "[", i, "]"), axes, found);
  }
}

bool crosses_poles(const EdgeUse& use) {
  return use.axis == 0 && (use.mode == "pole_point" || use.mode == "pole_cell");
}

/// Why an edge is none of a grid; "" where it is one, or the grid does not matter to it.
std::string misfit(const EdgeUse& use, const Grid& grid) {
  const bool rows = use.axis == 0;
  const std::vector<double>& points = grid.axes[static_cast<std::size_t>(use.axis)].coordinates;
  const std::string there =
      concat(rows ? "latitudes" : "longitudes", " of the data, ", coordinate_text(points.front()), " to ",
             coordinate_text(points.back()), ", ");
  if (use.mode == "circular" && (rows || !grid.periodic)) return concat("the ", there, "do not go round");
  if (!crosses_poles(use)) return "";
  if (!grid.periodic)
    return "the rows of the grid do not go round, so that no other half of the circle lies beyond a pole";
  const PoleKind wanted = use.mode == "pole_point" ? PoleKind::kPoint : PoleKind::kCellCentred;
  if (grid.north == wanted && grid.south == wanted) return "";
  return concat("the ", there,
                wanted == PoleKind::kPoint ? "do not end with rows at both poles"
                                           : "do not end half a row before both poles");
}

/// @param repeated  FileSet::GoesRound::repeated, above 0.
std::string copies_text(std::int64_t repeated) {
  return repeated == 1
             ? "the last column of the data lies where the first one does"
             : concat("the last ", repeated, " columns of the data lie where the first ", repeated, " do");
}

std::string cut_text(std::int64_t repeated) {
  return concat("isel(x=slice(0, -", repeated, "))");
}

/// The same of a grid whose points have latitudes and longitudes of their own.
std::string misfit_of_places(const EdgeUse& use, const FileSet::GoesRound& places) {
  if (crosses_poles(use))
    return "each point of the data has a latitude and a longitude of its own, so that rows do not end at "
           "poles";
  if (use.mode != "circular" || (use.axis == 0 ? places.rows : places.columns)) return "";
  if (use.axis == 1 && places.repeated > 0) {
    return concat(copies_text(places.repeated), ", not beside, and go round once cut off (in xarray ",
                  cut_text(places.repeated), ")");
  }
  return use.axis == 0 ? "the last row of the data does not lie at the first one"
                       : "the last column of the data does not lie beside the first one";
}

/// Whether some model or layer in a section works with spherical harmonics.
bool has_harmonics(const Json& section) {
  if (section.is_object()) {
    const std::string type = section.contains("type") && section["type"].is_string()
                                 ? section["type"].get<std::string>()
                                 : std::string();
    if (type == "sfno" || type.starts_with("spherical_")) return true;
  }
  return (section.is_object() || section.is_array()) && std::ranges::any_of(section, has_harmonics);
}

/// What a model of spherical harmonics takes the grid for and it is not. (One whose rows are others of those
/// that it knows, around the globe, is not built.)
std::vector<std::string> sphere_warnings(const Json& model, const Grid& grid) {
  if (!has_harmonics(model)) return {};
  const auto warn = [&](std::size_t axis, const char* name, const char* why) {
    const std::vector<double>& points = grid.axes[axis].coordinates;
    return concat("model works with spherical harmonics, for fields around the globe, but the ", name,
                  " of the data, ", coordinate_text(points.front()), " to ", coordinate_text(points.back()),
                  ", ", why);
  };
  std::vector<std::string> warnings;
  if (!grid.periodic) warnings.push_back(warn(1, "longitudes", "do not go round"));
  if (!global_rows_of(grid.axes[0].coordinates))
    warnings.push_back(warn(0, "latitudes", "are none of those between both poles that it knows"));
  return warnings;
}

}  // namespace

std::vector<std::string> edge_warnings(const Json& model, const Grid& grid,
                                       const std::optional<FileSet::GoesRound>& places) {
  if (!grid.geographic && !places) return {};
  std::vector<EdgeUse> found;
  collect_edges(model, "model", 2, found);
  std::vector<std::string> warnings;
  if (grid.geographic) warnings = sphere_warnings(model, grid);
  for (const EdgeUse& use : found) {
    const std::string why = grid.geographic ? misfit(use, grid) : misfit_of_places(use, *places);
    if (why.empty()) continue;
    const bool is_switch = use.key.ends_with(".circular");
    const std::string along = grid.geographic ? (use.axis == 0 ? "latitude" : "longitude")
                                              : (use.axis == 0 ? "the first dim" : "the second dim");
    warnings.push_back(
        concat(use.key, is_switch ? " is true" : concat(" is \"", use.mode, "\" along ", along), ", but ",
               why, is_switch ? "; set it to false" : "; \"replicate\" takes the last point there"));
  }
  return warnings;
}

std::vector<std::string> window_warnings(const Json& model, const std::vector<std::string>& axes,
                                         const Shape& window, const Shape& largest) {
  std::vector<EdgeUse> found;
  collect_edges(model, "model", window.rank(), found);
  Shape whole = window;
  std::vector<std::string> cut;
  std::string key;
  for (const EdgeUse& use : found) {
    if (use.mode != "circular" || window[use.axis] >= largest[use.axis]) continue;
    whole[use.axis] = largest[use.axis];
    cut.push_back(concat(window[use.axis], " of ", largest[use.axis], " points along ",
                         axes[static_cast<std::size_t>(use.axis)]));
    if (key.empty()) key = use.key;
  }
  if (cut.empty()) return {};
  const bool is_switch = key.ends_with(".circular");
  return {concat(key, is_switch ? " is true" : " is \"circular\"", ", but windows of the images hold ",
                 join(cut, ", "),
                 ": beyond its ends a window then reads its own other end, not what lies there, in training "
                 "and in predictions; let data.crop hold all points along them (--set 'data.crop=[",
                 join(whole, ","), "]', for predict and evaluate, too), or ",
                 is_switch ? "set it to false" : "take \"zeros\"")};
}

std::vector<std::string> edge_warnings(const Json& model, const SampleSource& data) {
  if (const auto* images = dynamic_cast<const ImageData*>(&data)) {
    Shape largest = data.grid().shape();
    for (std::int64_t image = 0; image < images->files().count(); ++image) {
      const Shape& extents = images->files().extents(image);
      for (int d = 0; d < largest.rank(); ++d) largest[d] = std::max(largest[d], extents[d]);
    }
    std::vector<std::string> axes;
    for (const ImageDim dim : images->options().space()) axes.emplace_back(name(dim));
    return window_warnings(model, axes, data.grid().shape(), largest);
  }
  const auto* forecasts = dynamic_cast<const Dataset*>(&data);
  if (forecasts == nullptr || data.grid().geographic) return edge_warnings(model, data.grid());
  return edge_warnings(model, data.grid(), forecasts->files().goes_round());
}

std::vector<std::string> area_warnings(const Configuration& configuration, const SampleSource& data) {
  const auto* forecasts = dynamic_cast<const Dataset*>(&data);
  if (forecasts == nullptr || data.grid().geographic || !forecasts->options().cell_area.empty()) return {};
  std::vector<std::string> warnings;
  if (field_loss_options(configuration.loss).area_weighted) {
    warnings.emplace_back(
        "loss.area_weighted is true, but all cells of the data count alike, in loss and scores, for each "
        "point has a latitude and a longitude of its own; data.cell_area names a variable with the areas of "
        "cells, or is \"auto\"; where cells are to count alike, set loss.area_weighted to false");
  }
  if (const std::int64_t repeated = forecasts->files().goes_round().repeated; repeated > 0) {
    warnings.push_back(
        concat(copies_text(repeated),
               ", so that these points count twice, in loss and scores; data.cell_area lets copies "
               "share the weight of one, or cut them off (in xarray ",
               cut_text(repeated), ")"));
  }
  return warnings;
}

std::vector<std::string> target_warnings(const SampleSource& data) {
  const auto* forecasts = dynamic_cast<const Dataset*>(&data);
  if (forecasts == nullptr || !forecasts->options().regrid.latitude.empty()) return {};
  std::vector<std::string> warnings;
  std::set<std::string> told;
  for (const Channel& target : data.channels().targets) {
    const FileSet::Regridded regridded = forecasts->files().regridded(target.field);
    if (regridded.files == 0 || !told.insert(target.field.variable).second) continue;
    warnings.push_back(
        concat(target.name,
               regridded.files < regridded.of
                   ? " lies on another grid in some of its files than in others ("
                   : " lies on another grid than the first target, whose grid is the model's (",
               regridded.path,
               "), and is brought to it by data.regrid: loss and scores compare with interpolated values; "
               "name the target of the finest grid first, leave files out, or name a grid by "
               "data.regrid.latitude and longitude"));
  }
  return warnings;
}

std::vector<std::string> place_warnings(const SampleSource& data, const GridOrder& trained,
                                        const std::string& model) {
  constexpr double kLeast = 0.1;  // of a step between points, by which an end has moved
  const auto* fields = dynamic_cast<const Dataset*>(&data);
  const Grid& grid = data.grid();
  if (fields == nullptr || (!grid.geographic && grid.corners.empty())) return {};
  if (!trained.corners.empty() || !grid.corners.empty()) {
    if (alike_corners(trained.corners, grid.corners)) return {};
    return {concat("the corners of the grid of the data do not lie where those did that ", model,
                   " was trained with")};
  }
  std::vector<std::string> warnings;
  const auto compare = [&](ForcingKind forcing, const char* name, std::size_t axis,
                           const std::array<double, 2>& ends) {
    const std::vector<double>& here = grid.axes[axis].coordinates;
    // Longitudes are the same place any number of circles on.
    const double turns = axis == 1 ? kCircle * std::round((here.front() - ends[0]) / kCircle) : 0;
    const double moved =
        std::max(std::abs(here.front() - turns - ends[0]), std::abs(here.back() - turns - ends[1]));
    const double step =
        std::abs(here.back() - here.front()) / static_cast<double>(std::max<std::size_t>(here.size() - 1, 1));
    if (!(moved > std::max(kLeast * step, kSameDegrees))) return;
    std::string warning =
        concat("the ", name, "s of the data, ", coordinate_text(here.front()), " to ",
               coordinate_text(here.back()), " degrees, are not those that ", model, " was trained with, ",
               coordinate_text(ends[0]), " to ", coordinate_text(ends[1]));
    if (std::ranges::count(fields->options().forcings, forcing) > 0) {
      warning += concat("; data.forcings' ", name,
                        " counts from the middle of the grid in deviations of it, and takes these places for "
                        "those, where sin_cos_",
                        name, " is of the place itself");
    }
    warnings.push_back(std::move(warning));
  };
  compare(ForcingKind::kLatitude, "latitude", 0, trained.rows);
  compare(ForcingKind::kLongitude, "longitude", 1, trained.columns);
  return warnings;
}

void refuse_harmonics(const Json& model, const Grid& grid) {
  const bool has_places = !grid.geographic && !grid.corners.empty();
  if (!has_places || !has_harmonics(model)) return;
  throw ConfigError(
      "model works with spherical harmonics, for rows of one latitude and columns of one longitude around "
      "the globe, and each point of the data has a latitude and a longitude of its own; use unet, vit, swin "
      "or "
      "weathermixer, or bring the data to such rows and columns by data.regrid");
}

}  // namespace jigsaw::inline task
