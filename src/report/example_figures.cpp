#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <utility>

#include "array/grid.h"
#include "base/text.h"
#include "evaluate/fourier.h"
#include "report/figures.h"
#include "report/score_file.h"
#include "report/svg.h"
#include "times/time_axis.h"

namespace jigsaw::inline report {

namespace {

std::vector<float> difference(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> result(a.size());
  std::ranges::transform(a, b, result.begin(), std::minus<>());
  return result;
}

/// Of truth and prediction together.
Colouring common_colouring(const ExamplePlane& plane, ColourMap map) {
  std::vector<float> both = plane.truth;
  both.insert(both.end(), plane.predicted.begin(), plane.predicted.end());
  return colouring_of(both, map);
}

/// √ of the mean of squares where both are there, on the globe weighted by the areas of rows as those of
/// validations are.
double rmse_of(const PlaneGrid& grid, const std::vector<float>& a, const std::vector<float>& b) {
  const std::vector<double> weights = grid.geographic
                                          ? make_geographic_grid(grid.rows, grid.columns).row_weights()
                                          : std::vector<double>(grid.rows.size(), 1.0);
  double sum = 0, all = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double error = static_cast<double>(a[i]) - b[i], weight = weights[i / grid.columns.size()];
    if (std::isnan(error)) continue;
    sum += weight * error * error;
    all += weight;
  }
  return std::sqrt(sum / all);
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
  const PlaneGrid& grid = run.examples->grid;
  const double rmse = rmse_of(grid, plane.predicted, plane.truth);
  if (std::isnan(rmse)) return "There is no truth at any point of what is shown";
  std::string text = concat("RMSE of what is shown ", with_unit(short_number(rmse), plane.units));
  if (plane.input.empty()) return text;
  double peak = peak_of_validations(run, plane.name);
  const bool known = std::isfinite(peak);
  if (!known) {
    double least = HUGE_VAL, largest = -HUGE_VAL;
    for (const float value : plane.truth) {
      least = std::fmin(least, value);
      largest = std::fmax(largest, value);
    }
    peak = largest - least;
  }
  if (!(peak > 0)) return text;
  const auto psnr = [&](double error) { return short_number(20 * std::log10(peak / error)); };
  return concat(text, "; PSNR ", psnr(rmse), " dB, of the input ",
                psnr(rmse_of(grid, plane.input, plane.truth)), " dB (peak ", short_number(peak),
                known ? ", as in validations)" : ", the range of what is shown)");
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

/// Of the ensemble that the model makes.
int members_of(const RunRecord& run) {
  if (!run.config.is_object() || !run.config.contains("ensemble")) return 1;
  return static_cast<int>(number_at(run.config.at("ensemble"), "members", 1));
}

std::string when(const Examples& examples, int members) {
  std::string text = concat("validation of step ", examples.step);
  if (!examples.of.empty()) text += ", " + examples.of;
  if (members > 1) text += concat(", member 0 of ", members);
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
          svg_of_map(grid, values, colouring, plane.name, concat(", ", what), plane.units, kWidth));
    };
    if (!plane.input.empty()) add(plane.input, colours, "input");
    add(plane.predicted, colours, examples.lead_time > 0 ? "forecast" : "prediction");
    add(plane.truth, colours, "truth");
    add(error, colouring_of_difference(error), "difference");
    figures.push_back({concat("fig-map-", plane.name, suffix), row_of(pictures),
                       concat(plane.name, ", ", when(examples, members_of(run)), ". ",
                              classes ? dice_of(plane, examples.classes) : scores_of(run, plane), ".",
                              classes ? "" : remark_on_range(colours, false))});
  }
}

void add_rows(const Examples& examples, int members, const std::string& suffix, Figures& figures) {
  if (examples.rmse_by_row.empty()) return;
  const std::string rows = examples.grid.geographic ? "latitude" : "row";
  Plot plot{concat("Error by ", rows, ", beside its mean"), rows, "RMSE / mean RMSE", {}};
  plot.turned = examples.grid.geographic;
  std::size_t colour = 0;
  for (const ExamplePlane& plane : examples.planes) {
    const auto found = std::ranges::find(examples.targets, plane.name);
    if (found == examples.targets.end()) continue;
    const std::vector<double>& rmse =
        examples.rmse_by_row.at(static_cast<std::size_t>(found - examples.targets.begin()));
    double sum = 0, count = 0;
    for (const double value : rmse) {
      if (std::isfinite(value)) sum += value, ++count;
    }
    Series series{plane.name, {}, {}, colour++, false};
    for (std::size_t row = 0; row < std::min(rmse.size(), examples.grid.rows.size()); ++row) {
      series.x.push_back(examples.grid.rows[row]);
      series.y.push_back(rmse[row] / (sum / count));
    }
    plot.series.push_back(series);
  }
  figures.push_back({"fig-latitude" + suffix, svg_of(plot),
                     concat("RMSE of ", members > 1 ? "the ensemble mean at " : "", "the first lead by ",
                            rows, " over the whole validation, divided by its mean over rows.",
                            examples.grid.upwards ? " Row 0 is the southernmost." : "")});
}

/// The columns from the first to behind the last that holds a value: beside what a tile is scored at there is
/// no truth. Of a grid that goes around all.
std::pair<std::size_t, std::size_t> columns_with_values(const PlaneGrid& grid,
                                                        const std::vector<float>& values) {
  const std::size_t all = grid.columns.size();
  if (grid.periodic) return {0, all};
  std::size_t first = all, end = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) continue;
    first = std::min(first, i % all);
    end = std::max(end, i % all + 1);
  }
  return {std::min(first, end), end};
}

/// Mean over rows of the variance by wave number along some columns; NaN where every row has missing points.
/// A row of an area that does not go around is tapered (Hann), so that its ends do not stand as a step.
std::vector<double> mean_power(const PlaneGrid& grid, const std::vector<float>& values,
                               const std::pair<std::size_t, std::size_t>& part) {
  constexpr std::size_t kMostRows = 181;
  const std::size_t rows = grid.rows.size(), columns = part.second - part.first;
  Fourier fourier(columns);
  std::vector<double> power(fourier.wave_numbers(), 0.0), row(columns);
  double weights = 0;
  const std::size_t every = (rows + kMostRows - 1) / kMostRows;
  for (std::size_t r = 0; r < rows; r += every) {
    double mean = 0;
    for (std::size_t c = 0; c < columns; ++c)
      mean += row[c] = values[r * grid.columns.size() + part.first + c];
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

/// Spectra of some variables beside each other, and which have none.
struct Spectra {
  std::string axis;  ///< what is counted
  std::vector<std::string> plots = {}, missing = {};

  void add(const std::string& variable, const std::string& units, const std::vector<Series>& lines) {
    // None where every row has missing points.
    for (const Series& line : lines) {
      if (std::ranges::any_of(line.y, [](double value) { return std::isfinite(value); })) continue;
      missing.push_back(variable);
      return;
    }
    Plot plot{variable, axis, quantity("variance", squared(units)), lines};
    plot.log_x = plot.log_y = true;
    plot.width = 320;
    plot.height = 240;
    plots.push_back(svg_of(plot));
  }
  std::string remark() const {
    return missing.empty()
               ? ""
               : concat(" There are none of what has missing points in every row: ", join(missing, ", "),
                        ".");
  }
};

constexpr const char *kZonal = "zonal wave number", *kAlongRows = "wave number along rows";

/// Of the period that evaluate scored. @return  the caption
std::string spectra_of_scores(const RunRecord& run, const Json& all, Spectra& spectra) {
  std::vector<std::string> names;
  for (const auto& [variable, kinds] : all.items()) {
    if (!kinds.contains("forecast") || !kinds.contains("truth")) continue;
    const std::vector<double> truth = numbers_of(kinds.at("truth").at(0));
    if (std::ranges::any_of(truth, [](double value) { return std::isfinite(value); })) {
      names.push_back(variable);
    } else {
      spectra.missing.push_back(variable);
    }
  }
  const ShownVariables shown = shown_of(names, 4);
  for (const std::string& variable : shown.names) {
    const Json &forecast = all.at(variable).at("forecast"), &truth = all.at(variable).at("truth");
    const Json scores = run.scores.at("scores").value(variable, Json::object());
    spectra.add(variable, scores.value("units", std::string()),
                {spectrum("forecast, first lead", numbers_of(forecast.at(0)), 0, false),
                 spectrum("last lead", numbers_of(forecast.back()), 1, false),
                 spectrum("truth", numbers_of(truth.at(0)), 7, true)});
  }
  return concat("Variance by ", spectra.axis, " over the period that evaluate scored",
                run.scores.contains("members") ? ", the mean of that of members" : "", ".",
                shown.remark(run.scores_path), what_scored(run.scores));
}

std::string spectra_of_examples(const Examples& examples, Spectra& spectra) {
  for (const ExamplePlane& plane : examples.planes) {
    const auto part = columns_with_values(examples.grid, plane.truth);
    if (plane.predicted.size() != plane.truth.size() || plane.truth.empty()) continue;
    if (part.second == 0) spectra.missing.push_back(plane.name);
    if (part.second - part.first < 8) continue;
    spectra.add(plane.name, plane.units,
                {spectrum("predicted", mean_power(examples.grid, plane.predicted, part), 0, false),
                 spectrum("truth", mean_power(examples.grid, plane.truth, part), 7, true)});
  }
  return concat("Variance by ", spectra.axis, ", of the planes shown above.");
}

void add_spectra(const RunRecord& run, const std::string& suffix, Figures& figures) {
  const Json of_scores =
      run.scores.is_object() ? run.scores.value("spectra", Json::object()) : Json::object();
  Spectra spectra{run.examples && !run.examples->grid.periodic ? kAlongRows : kZonal};
  std::string caption = spectra_of_scores(run, of_scores, spectra);
  if (spectra.plots.empty() && run.examples && run.examples->classes == 0) {
    spectra.missing.clear();
    caption = spectra_of_examples(*run.examples, spectra);
  }
  if (spectra.plots.empty() && spectra.missing.empty()) return;
  if (spectra.plots.empty()) caption = "Spectra.";
  figures.push_back({"fig-spectra" + suffix, row_of(spectra.plots), caption + spectra.remark()});
}

}  // namespace

Figures example_figures(const RunRecord& run, const std::string& suffix) {
  Figures figures;
  if (run.examples) {
    add_planes(run, suffix, figures);
    naming_malformed(run.path + "/examples.json",
                     [&] { add_rows(*run.examples, members_of(run), suffix, figures); });
  }
  naming_malformed(run.scores_path, [&] { add_spectra(run, suffix, figures); });
  return figures;
}

}  // namespace jigsaw::inline report
