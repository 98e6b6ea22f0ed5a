#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "files/variable_file.h"
#include "report/figures.h"
#include "report/svg.h"
#include "report/written_plane.h"
#include "times/time_axis.h"

namespace jigsaw::inline report {

namespace {

/// What a time series has in place of starts and leads.
constexpr const char* kStartOfSeries = "forecast_reference_time";

/// "2021-02-01T00:00"; nothing where they are no times.
std::vector<std::string> dates_of(VariableFile& file, const std::string& name) {
  const FileVariable* const time = file.find(name);
  std::vector<std::string> dates;
  try {
    if (time == nullptr || !time->numeric()) return {};
    const std::string calendar = time->text("calendar");
    for (const Time date : decode_times(file.read_all(*time), time->text("units"), calendar, name))
      dates.push_back(format_time(date, parse_calendar(calendar, name)));
  } catch (const Error&) {
    return {};
  }
  return dates;
}

/// The leads of a file, or the times of a series.
struct Leads {
  int axis;  ///< along which variables have them
  std::string dimension;
  std::vector<std::string> titles;
  std::string start;  ///< "from 2021-02-01T00:00" of the first forecast, or "the first"
};

Leads leads_of(VariableFile& file) {
  const bool series = file.find(kStartOfSeries) != nullptr;
  const std::vector<std::string> starts = dates_of(file, series ? kStartOfSeries : "time");
  const std::string start = starts.empty() ? "the first" : "from " + starts.front();
  if (series) return {0, "time", dates_of(file, "time"), start};
  return {1, "lead_time", lead_titles(file), start};
}

/// Maps of the first forecast of a variable at its first, middle and last lead.
Figure forecast_figure(VariableFile& file, const FileVariable& variable, const Leads& leads,
                       const std::string& more) {
  const int rank = variable.shape.rank();
  const PlaneGrid grid = plane_grid(file, variable);
  Box box = Box::whole(variable.shape);
  std::string places;
  std::set<std::string> others;  // of which the file has more
  for (int d = 0; d < rank - 2; ++d) {
    box.begin[d] = 0;
    box.extent[d] = 1;
    if (d <= leads.axis) continue;
    const auto [at, name] =
        place_along(file, variable.dimensions[static_cast<std::size_t>(d)], variable.shape[d]);
    box.begin[d] = at;
    places += ", " + name;
    if (variable.shape[d] > 1) others.insert(name.starts_with("member ") ? "members" : "levels");
  }
  std::vector<std::string> pictures;
  std::optional<Colouring> colours;
  const std::int64_t count = variable.shape[leads.axis];
  for (const std::int64_t lead : std::set<std::int64_t>{0, count / 2, count - 1}) {
    box.begin[leads.axis] = lead;
    std::vector<float> values(static_cast<std::size_t>(box.extent.count()));
    file.read<float>(variable, box, values);
    if (!colours) colours = colouring_of(values, ColourMap::kSequential);
    const std::string what = concat(places, ", ", leads.titles.at(static_cast<std::size_t>(lead)));
    pictures.push_back(svg_of_map(grid, values, *colours, variable.name, what, variable.text("units"), 300));
  }
  const std::string range = remark_on_range(colours.value_or(Colouring()), pictures.size() > 1);
  return {"fig-forecast-" + variable.name, row_of(pictures),
          concat(variable.name, places, ": the forecast ", leads.start, " at the leads above.",
                 others.empty() ? ""
                                : concat(" The file has further ",
                                         join(std::vector(others.begin(), others.end()), " and "), "."),
                 range, more)};
}

}  // namespace

Figures forecast_figures(const std::string& path) {
  if (path.ends_with(".nii") || path.ends_with(".nii.gz"))
    throw DataError(concat(path,
                           " holds images; --forecast takes forecasts as predict writes them, and of "
                           "images a run with \"report\": true keeps slices"));
  const auto file = open_variables(path, Dimensions::kByName);
  if (file->find("lead_time") == nullptr && file->find(kStartOfSeries) == nullptr)
    throw DataError(
        concat(path,
               " holds no forecasts of fields as predict writes them: it has no lead_time; those "
               "of sequences are not drawn, but a run with \"report\": true keeps slices of them, "
               "and --scores shows what evaluate --json says of them"));
  const Leads leads = leads_of(*file);
  std::vector<std::string> names;
  for (const FileVariable& variable : file->variables()) {
    const auto axis = static_cast<std::size_t>(leads.axis);
    if (variable.shape.rank() >= leads.axis + 3 && variable.numeric() &&
        variable.dimensions[axis] == leads.dimension &&
        variable.shape[leads.axis] <= std::ssize(leads.titles))
      names.push_back(variable.name);
  }
  const ShownVariables shown = shown_of(names, 4);
  Figures figures;
  for (const std::string& name : shown.names)
    figures.push_back(forecast_figure(*file, *file->find(name), leads,
                                      name == shown.names.back() ? shown.remark(path) : ""));
  return figures;
}

}  // namespace jigsaw::inline report
