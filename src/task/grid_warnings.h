#pragma once
#include <optional>
#include <string>
#include <vector>

#include "array/grid.h"
#include "array/shape.h"
#include "config/json.h"
#include "fields/file_set.h"
#include "samples/sample_source.h"
#include "task/configuration.h"

namespace jigsaw::inline task {

/// Of keys by which a model reads beyond the ends of a grid (padding_mode, circular): those that go round a
/// circle which the grid does not close, or across poles which its rows do not reach in that way. One for
/// each, with the first place in the configuration that has it. And of a model of spherical harmonics on a
/// geographic grid, whose rows are others than it says, or do not go round.
///
/// @param model   its section, as it is written out.
/// @param places  of a grid whose points have latitudes and longitudes of their own, whether it goes round;
///                nothing of other grids, of which those that are not geographic have none of these warnings.
std::vector<std::string> edge_warnings(const Json& model, const Grid& grid,
                                       const std::optional<FileSet::GoesRound>& places = {});
/// Of a model that reads round the ends of windows which hold only a part of the images, where its own other
/// end is not what lies there: one sentence that names the axes, or none.
/// @param axes  their names. @param largest  the largest extent of an image along each.
std::vector<std::string> window_warnings(const Json& model, const std::vector<std::string>& axes,
                                         const Shape& window, const Shape& largest);
/// The same of the grid of data, or of its windows of images.
std::vector<std::string> edge_warnings(const Json& model, const SampleSource& data);

/// That loss.area_weighted says nothing, where the points of a grid have latitudes and longitudes of their
/// own and data.cell_area does not say how they count; and that points count twice which stand in the first
/// and in the last columns.
std::vector<std::string> area_warnings(const Configuration& configuration, const SampleSource& data);

/// Of each target whose fields are brought from another grid to that of the first target, so that what is
/// predicted is compared with interpolated values; none where the configuration names a grid.
std::vector<std::string> target_warnings(const SampleSource& data);

/// That rows and columns lie elsewhere than those that a model was trained with, and what the forcings
/// latitude and longitude make of it, which are counted from the middle of the grid in its deviations.
/// @param trained  the ends of its rows and columns, or its corners.
/// @param model  what it is called.
std::vector<std::string> place_warnings(const SampleSource& data, const GridOrder& trained,
                                        const std::string& model);

/// @throws ConfigError  when a model works with spherical harmonics on a grid whose points have latitudes and
///                      longitudes of their own: these are functions of rows and columns of a globe.
void refuse_harmonics(const Json& model, const Grid& grid);

}  // namespace jigsaw::inline task
