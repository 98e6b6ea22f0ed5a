#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "files/variable_file.h"
#include "predict/fourier.h"
#include "report/figures.h"
#include "report/svg.h"
#include "samples/axis_map.h"
#include "samples/calendar.h"
#include "samples/time_axis.h"

namespace jigsaw::inline report {

namespace {

std::vector<float> difference(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> result(a.size());
  std::ranges::transform(a, b, result.begin(), std::minus<>());
  return result;
}

/// A number and its unit, where it has one.
std::string with_unit(const std::string& number, const std::string& units) {
  return units.empty() ? number : concat(number, " ", units);
}

std::string row_of(const std::vector<std::string>& pictures) {
  return concat("<div class=\"row\">", join(pictures, "\n"), "</div>");
}

/// Of truth and prediction together.
Colouring common_colouring(const ExamplePlane& plane, ColourMap map) {
  std::vector<float> both = plane.truth;
  both.insert(both.end(), plane.predicted.begin(), plane.predicted.end());
  return colouring_of(both, map);
}

/// √ of the mean of squares where both are there.
double rmse_of(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0, count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double error = static_cast<double>(a[i]) - b[i];
    if (std::isnan(error)) continue;
    sum += error * error;
    ++count;
  }
  return std::sqrt(sum / count);
}

/// The peak that validations of the run refer PSNR of a variable to, by the scores that they wrote; NaN where
/// none of them says it.
double peak_of_validations(const RunRecord& run, const std::string& variable) {
  for (const Json& line : run.valid) {
    const auto scores = line.at("metrics").find(variable);
    if (scores == line.at("metrics").end() || !scores->is_object()) continue;
    const double peak = number_at(*scores, "rmse") * std::pow(10, number_at(*scores, "psnr") / 20);
    if (std::isfinite(peak) && peak > 0) return peak;
  }
  return std::nan("");
}

std::string scores_of(const RunRecord& run, const ExamplePlane& plane) {
  const double rmse = rmse_of(plane.predicted, plane.truth);
  std::string text = concat("RMSE of what is shown ", with_unit(short_number(rmse), plane.units));
  if (plane.input.empty()) return text;
  double peak = peak_of_validations(run, plane.name);
  const bool known = std::isfinite(peak);
  if (!known) {
    peak = 0;
    for (const float value : plane.truth) peak = std::fmax(peak, value);
  }
  if (!(peak > 0)) return text;
  const auto psnr = [&](double error) { return short_number(20 * std::log10(peak / error)); };
  return concat(text, "; PSNR ", psnr(rmse), " dB, of the input ", psnr(rmse_of(plane.input, plane.truth)),
                " dB (peak ", short_number(peak),
                known ? ", as in validations)" : ", the most that is shown)");
}

/// Dice of each class that the slice holds or that is predicted there.
std::string dice_of(const ExamplePlane& plane, int classes) {
  std::vector<std::string> texts;
  for (int k = 0; k < classes; ++k) {
    double both = 0, sum = 0;
    for (std::size_t i = 0; i < plane.truth.size(); ++i) {
      if (std::isnan(plane.truth[i]) || std::isnan(plane.predicted[i])) continue;
      const bool is = plane.truth[i] == static_cast<float>(k),
                 said = plane.predicted[i] == static_cast<float>(k);
      both += is && said;
      sum += (is ? 1 : 0) + (said ? 1 : 0);
    }
    if (sum > 0) texts.push_back(concat("class ", k, " ", short_number(2 * both / sum)));
  }
  return "Dice of what is shown: " + join(texts, ", ");
}

std::string when(const Examples& examples) {
  std::string text = concat("validation of step ", examples.step);
  if (examples.lead_hours > 0)
    text += concat(", the forecast of ", examples.lead_hours, " h from ", format_time(examples.start));
  if (examples.slice >= 0) text += concat(", slice ", examples.slice, " of the first axis");
  return text;
}

void add_planes(const RunRecord& run, const std::string& suffix, Figures& figures) {
  const Examples& examples = *run.examples;
  const PlaneGrid& grid = examples.grid;
  const bool classes = examples.classes > 0;
  for (const ExamplePlane& plane : examples.planes) {
    if (plane.predicted.empty() || plane.truth.size() != plane.predicted.size()) continue;
    constexpr double kWidth = 300;
    Colouring colours = common_colouring(plane, examples.colours());
    if (classes) colours = {ColourMap::kSequential, 0, std::max(1.0, examples.classes - 1.0)};
    const std::vector<float> error = difference(plane.predicted, plane.truth);
    std::vector<std::string> pictures;
    const auto add = [&](const std::vector<float>& values, const Colouring& colouring, const char* what) {
      pictures.push_back(
          svg_of_map(grid, values, colouring, concat(plane.name, ", ", what), plane.units, kWidth));
    };
    if (!plane.input.empty()) add(plane.input, colours, "input");
    add(plane.predicted, colours, examples.lead_hours > 0 ? "forecast" : "prediction");
    add(plane.truth, colours, "truth");
    add(error, colouring_of_difference(error), "difference");
    figures.push_back({concat("fig-map-", plane.name, suffix), row_of(pictures),
                       concat(plane.name, ", ", when(examples), ". ",
                              classes ? dice_of(plane, examples.classes) : scores_of(run, plane), ".")});
  }
}

void add_rows(const Examples& examples, const std::string& suffix, Figures& figures) {
  if (examples.rmse_by_row.empty()) return;
  const std::string rows = examples.grid.geographic ? "latitude" : "row";
  Plot plot{concat("Error by ", rows, ", beside its mean"), rows, "RMSE / mean RMSE", {}};
  plot.turned = examples.grid.geographic;
  std::size_t colour = 0;
  for (const ExamplePlane& plane : examples.planes) {
    const auto found = std::ranges::find(examples.targets, plane.name);
    if (found == examples.targets.end()) continue;
    const std::vector<double>& rmse =
        examples.rmse_by_row[static_cast<std::size_t>(found - examples.targets.begin())];
    double sum = 0, count = 0;
    for (const double value : rmse) {
      if (std::isfinite(value)) sum += value, ++count;
    }
    Series series{plane.name, {}, {}, colour++, false};
    for (std::size_t row = 0; row < rmse.size(); ++row) {
      series.x.push_back(examples.grid.rows[row]);
      series.y.push_back(rmse[row] / (sum / count));
    }
    plot.series.push_back(series);
  }
  figures.push_back({"fig-latitude" + suffix, svg_of(plot),
                     concat("RMSE of the first lead by ", rows,
                            " over the whole validation, divided by its mean over rows.",
                            examples.grid.upwards ? " Row 0 is the southernmost." : "")});
}

/// Mean over rows of the variance by wave number along columns. A row of an area that does not go around is
/// tapered (Hann), so that its ends do not stand as a step.
std::vector<double> mean_power(const PlaneGrid& grid, const std::vector<float>& values) {
  constexpr std::size_t kMostRows = 181;
  const std::size_t rows = grid.rows.size(), columns = grid.columns.size();
  Fourier fourier(columns);
  std::vector<double> power(fourier.wave_numbers(), 0.0), row(columns);
  double weights = 0;
  const std::size_t every = (rows + kMostRows - 1) / kMostRows;
  for (std::size_t r = 0; r < rows; r += every) {
    double mean = 0;
    for (std::size_t c = 0; c < columns; ++c) mean += row[c] = values[r * columns + c];
    mean /= static_cast<double>(columns);
    const double weight = grid.geographic ? std::cos(grid.rows[r] * std::numbers::pi / 180) : 1;
    if (!std::isfinite(mean) || weight < 1e-6) continue;
    for (std::size_t c = 0; c < columns; ++c) {
      const double phase = 2 * std::numbers::pi * static_cast<double>(c) / static_cast<double>(columns);
      row[c] = (row[c] - mean) * (grid.periodic ? 1 : (1 - std::cos(phase)) / 2);
    }
    const std::vector<double> of_row = fourier.power(row);
    for (std::size_t k = 0; k < power.size(); ++k) power[k] += weight * of_row[k];
    weights += weight;
  }
  for (double& each : power) each /= weights;
  return power;
}

Series spectrum(const std::string& label, const std::vector<double>& power, std::size_t colour, bool dashed) {
  Series series{label, {}, {}, colour, dashed};
  for (std::size_t k = 1; k < power.size(); ++k) {
    series.x.push_back(static_cast<double>(k));
    series.y.push_back(power[k]);
  }
  return series;
}

Plot spectrum_plot(const std::string& variable) {
  Plot plot{variable, "zonal wave number", "variance", {}};
  plot.log_x = plot.log_y = true;
  plot.width = 320;
  plot.height = 240;
  return plot;
}

void add_spectra(const RunRecord& run, const std::string& suffix, Figures& figures) {
  const Json spectra = run.scores.is_object() ? run.scores.value("spectra", Json::object()) : Json::object();
  std::vector<std::string> plots;
  std::string caption = "Variance by zonal wave number over the period that evaluate scored.";
  for (const auto& [variable, kinds] : spectra.items()) {
    if (plots.size() == 4) break;
    if (!kinds.contains("forecast") || !kinds.contains("truth")) continue;
    const std::vector<double> first = numbers_of(kinds.at("forecast").at(0)),
                              last = numbers_of(kinds.at("forecast").back()),
                              truth = numbers_of(kinds.at("truth").at(0));
    // None where every row has missing points.
    if (std::ranges::none_of(truth, [](double value) { return std::isfinite(value); })) continue;
    Plot plot = spectrum_plot(variable);
    plot.series = {spectrum("forecast, first lead", first, 0, false), spectrum("last lead", last, 1, false),
                   spectrum("truth", truth, 7, true)};
    plots.push_back(svg_of(plot));
  }
  if (plots.empty() && run.examples && run.examples->classes == 0) {
    caption = "Variance along rows by wave number, of the planes shown above.";
    for (const ExamplePlane& plane : run.examples->planes) {
      if (plane.predicted.empty() || run.examples->grid.columns.size() < 8) continue;
      Plot plot = spectrum_plot(plane.name);
      plot.series = {spectrum("predicted", mean_power(run.examples->grid, plane.predicted), 0, false),
                     spectrum("truth", mean_power(run.examples->grid, plane.truth), 7, true)};
      plots.push_back(svg_of(plot));
    }
  }
  if (!plots.empty()) figures.push_back({"fig-spectra" + suffix, row_of(plots), caption});
}

/// What evaluate said, by lead.
void add_scores(const RunRecord& run, const std::string& suffix, Figures& figures) {
  if (!run.scores.is_object()) return;
  std::vector<std::string> plots;
  const std::vector<double> leads = numbers_of(run.scores.at("lead_hours"));
  for (const auto& [variable, regions] : run.scores.at("scores").items()) {
    if (plots.size() == 8) break;
    if (!regions.contains("all")) continue;
    const Json& all = regions.at("all");
    Plot plot{variable, "lead, hours", concat("RMSE ", regions.value("units", std::string())), {}};
    plot.from_zero = true;
    plot.width = 320;
    plot.height = 240;
    std::size_t colour = 0;
    for (const char* measure : {"rmse", "persistence_rmse"}) {
      if (all.contains(measure))
        plot.series.push_back({measure, leads, numbers_of(all.at(measure)), colour++, colour > 1});
    }
    plots.push_back(svg_of(plot));
  }
  if (!plots.empty())
    figures.push_back(
        {"fig-scores" + suffix, row_of(plots), "RMSE by lead over the period that evaluate scored."});
}

/// Whether rows of a projection begin in the south: by latitudes of the points, else by the projection's y.
bool runs_northwards(VariableFile& file, const FileVariable& variable, const std::vector<double>& rows) {
  const int rank = variable.shape.rank();
  const std::string &row = variable.dimensions[static_cast<std::size_t>(rank - 2)],
                    &column = variable.dimensions[static_cast<std::size_t>(rank - 1)];
  for (const FileVariable& other : file.variables()) {
    if (other.dimensions != std::vector<std::string>{row, column} ||
        other.text("standard_name") != "latitude")
      continue;
    const std::vector<double> latitudes = file.read_all(other);
    const std::size_t last_row = latitudes.size() - static_cast<std::size_t>(other.shape[1]);
    return latitudes[last_row] > latitudes[0];
  }
  const FileVariable* const y = file.find(row);
  return y != nullptr && y->text("standard_name") == "projection_y_coordinate" && rows.back() > rows.front();
}

/// Of the last two dims of a variable: latitudes and longitudes, or rows and columns of a projection.
PlaneGrid plane_grid(VariableFile& file, const FileVariable& variable) {
  const auto rank = static_cast<std::size_t>(variable.shape.rank());
  const auto coordinates = [&](std::size_t dim) {
    const FileVariable* const found = file.find(variable.dimensions[dim]);
    if (found != nullptr && found->shape.rank() == 1) return file.read_all(*found);
    std::vector<double> numbers(static_cast<std::size_t>(variable.shape[static_cast<int>(dim)]));
    std::iota(numbers.begin(), numbers.end(), 0.0);
    return numbers;
  };
  const std::string& name = variable.dimensions[rank - 2];
  const FileVariable* const rows = file.find(name);
  PlaneGrid grid{rows != nullptr && rows->shape.rank() == 1 &&
                     (name.starts_with("lat") || rows->text("standard_name") == "latitude" ||
                      rows->text("units").starts_with("degree")),
                 false, coordinates(rank - 2), coordinates(rank - 1)};
  if (grid.geographic) {
    grid.columns = without_jumps(std::move(grid.columns));  // forecasts have them as their input does
    grid.periodic = make_geographic_grid(grid.rows, grid.columns).periodic;
  } else {
    grid.upwards = runs_northwards(file, variable, grid.rows);
  }
  return grid;
}

}  // namespace

Figures example_figures(const RunRecord& run, const std::string& suffix) {
  Figures figures;
  if (run.examples) {
    add_planes(run, suffix, figures);
    add_rows(*run.examples, suffix, figures);
  }
  naming_malformed(run.scores_path, [&] {
    add_spectra(run, suffix, figures);
    add_scores(run, suffix, figures);
  });
  return figures;
}

Figures forecast_figures(const std::string& path) {
  const auto file = open_variables(path, Dimensions::kByName);
  const FileVariable* const leads = file->find("lead_time");
  if (leads == nullptr)
    throw DataError(concat(path, " holds no forecasts as predict writes them: it has no lead_time"));
  const std::vector<double> hours = file->read_all(*leads);
  Figures figures;
  for (const FileVariable& variable : file->variables()) {
    const int rank = variable.shape.rank();
    if (rank < 4 || figures.size() == 4 || !variable.numeric() || variable.dimensions[1] != "lead_time")
      continue;
    const PlaneGrid grid = plane_grid(*file, variable);
    std::vector<std::string> pictures;
    std::optional<Colouring> colours;
    const std::int64_t count = variable.shape[1];
    for (const std::int64_t lead : std::set<std::int64_t>{0, count / 2, count - 1}) {
      Box box = Box::whole(variable.shape);
      for (int d = 0; d < rank - 2; ++d) {
        box.begin[d] = d == 1 ? lead : d == 0 ? 0 : variable.shape[d] / 2;
        box.extent[d] = 1;
      }
      std::vector<float> values(static_cast<std::size_t>(box.extent.count()));
      file->read<float>(variable, box, values);
      if (!colours) colours = colouring_of(values, ColourMap::kSequential);
      pictures.push_back(svg_of_map(grid, values, *colours,
                                    concat(variable.name, ", ", hours[static_cast<std::size_t>(lead)], " h"),
                                    variable.text("units"), 300));
    }
    figures.push_back({"fig-forecast-" + variable.name, row_of(pictures),
                       concat(variable.name, " of the first forecast in ", path, ".")});
  }
  return figures;
}

}  // namespace jigsaw::inline report
