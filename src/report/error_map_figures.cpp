// Maps that evaluate writes: of errors by lead, and of a climate.
#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "files/variable_file.h"
#include "report/figures.h"
#include "report/svg.h"
#include "report/written_plane.h"

namespace jigsaw::inline report {

namespace {

constexpr double kMapWidth = 300;
constexpr const char* kBias = "_bias";

/// A map of each variable: what its name ends in, and how it is called.
struct Shown {
  std::string ending, name;
  bool difference;  ///< colours are symmetric around 0
};

/// What stands along the first dimension of a file of maps.
struct Groups {
  std::string dimension;
  std::vector<std::string> titles;
  std::vector<std::size_t> shown;  ///< their numbers
  std::vector<Shown> maps;
  std::string caption;
};

Groups groups_of(VariableFile& file, const std::string& path) {
  if (const FileVariable* const group = file.find("climate_group")) {
    Groups groups{"climate_group",
                  split(group->text("flag_meanings"), ' '),
                  {},
                  {{kBias, "bias", true}},
                  "time mean of forecasts less that of the truth, over the times above."};
    constexpr std::size_t kMost = 13;  // all and the months
    for (std::size_t i = 0; i < std::min(groups.titles.size(), kMost); ++i) groups.shown.push_back(i);
    return groups;
  }
  if (file.find("lead_time") == nullptr)
    throw DataError(
        concat(path, " holds no maps as evaluate writes them: it has no lead_time and climate_group"));
  Groups groups{
      "lead_time",
      lead_titles(file),
      {0},
      {{kBias, "bias", true}, {"_rmse", "RMSE", false}, {"_spread", "spread", false}},
      "bias and RMSE at each point over the forecasts that evaluate scored, of ensembles also the spread, at "
      "the leads above."};
  if (groups.titles.size() > 1) groups.shown.push_back(groups.titles.size() - 1);
  return groups;
}

/// The values of a variable in one group, of a level that is shown.
std::vector<float> values_of(VariableFile& file, const FileVariable& variable, std::size_t group,
                             std::string& places) {
  Box box = Box::whole(variable.shape);
  places.clear();
  for (int d = 0; d < variable.shape.rank() - 2; ++d) {
    box.extent[d] = 1;
    box.begin[d] = static_cast<std::int64_t>(group);
    if (d == 0) continue;
    const auto [at, name] =
        place_along(file, variable.dimensions[static_cast<std::size_t>(d)], variable.shape[d]);
    box.begin[d] = at;
    places += ", " + name;
  }
  std::vector<float> values(static_cast<std::size_t>(box.extent.count()));
  file.read<float>(variable, box, values);
  return values;
}

Figure figure_of(VariableFile& file, const std::string& name, const Groups& groups, const std::string& more) {
  std::vector<std::string> pictures;
  std::string places, ranges;
  for (const Shown& map : groups.maps) {
    const FileVariable *const variable = file.find(name + map.ending), *const like = file.find(name + kBias);
    if (variable == nullptr || !variable->numeric() || variable->dimensions != like->dimensions ||
        !(variable->shape == like->shape))
      continue;
    const PlaneGrid grid = plane_grid(file, *variable);
    std::vector<std::vector<float>> planes;
    std::vector<float> all;
    for (const std::size_t group : groups.shown) {
      planes.push_back(values_of(file, *variable, group, places));
      all.insert(all.end(), planes.back().begin(), planes.back().end());
    }
    const Colouring colours =
        map.difference ? colouring_of_difference(all) : colouring_of(all, ColourMap::kSequential);
    for (std::size_t i = 0; i < planes.size(); ++i)
      pictures.push_back(svg_of_map(grid, planes[i], colours, concat(name, ": ", map.name),
                                    concat(places, ", ", groups.titles.at(groups.shown[i])),
                                    variable->text("units"), kMapWidth));
    ranges += remark_on_range(colours, false);
  }
  return {concat("fig-maps-", name), row_of(pictures),
          concat(name, places, ": ", groups.caption, ranges, more)};
}

}  // namespace

Figures map_figures(const std::string& path) {
  const auto file = open_variables(path, Dimensions::kByName);
  const Groups groups = groups_of(*file, path);
  std::vector<std::string> names;
  for (const FileVariable& variable : file->variables()) {
    const bool bias = variable.name.ends_with(kBias) && variable.numeric() && variable.shape.rank() >= 3 &&
                      variable.dimensions[0] == groups.dimension &&
                      variable.shape[0] <= std::ssize(groups.titles);
    if (bias) names.push_back(variable.name.substr(0, variable.name.size() - std::string(kBias).size()));
  }
  if (names.empty())
    throw DataError(concat(path, " holds no maps as evaluate writes them: none ends in ", kBias));
  const ShownVariables shown = shown_of(names, 4);
  Figures figures;
  for (const std::string& name : shown.names)
    figures.push_back(figure_of(*file, name, groups, name == shown.names.back() ? shown.remark(path) : ""));
  return figures;
}

}  // namespace jigsaw::inline report
