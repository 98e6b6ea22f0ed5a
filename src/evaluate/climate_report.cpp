#include "evaluate/climate_report.h"

#include <array>
#include <numeric>

#include "base/text.h"
#include "evaluate/climate_trend.h"
#include "evaluate/score_table.h"

namespace jigsaw::inline evaluate {

std::span<const ClimateMeasure> climate_measures() {
  using S = ClimateScore;
  static constexpr std::array kMeasuresOfClimate = {
      ClimateMeasure{"bias", "spatial mean of errors of the time mean", &S::bias, true, "bias"},
      ClimateMeasure{"rmse", "root mean square error of the time mean", &S::rmse, true, "RMSE"},
      ClimateMeasure{"pattern_correlation", "pattern correlation of the time mean", &S::pattern_correlation,
                     false, "pattern"},
      ClimateMeasure{"std_ratio", "ratio of standard deviations in time", &S::std_ratio, false, "std ratio"},
      ClimateMeasure{"std_rmse", "root mean square error of the standard deviation in time", &S::std_rmse,
                     true, "std RMSE"},
      ClimateMeasure{"forecast_mean", "spatial mean of the time mean of forecasts", &S::forecast_mean, true,
                     "forecast"},
      ClimateMeasure{"truth_mean", "spatial mean of the time mean of the truth", &S::truth_mean, true,
                     "truth"},
  };
  return kMeasuresOfClimate;
}

void add_group_attributes(NetcdfOutput& file, int variable, const std::vector<std::string>& groups) {
  std::vector<int> places(groups.size());
  std::iota(places.begin(), places.end(), 0);
  file.add_text(variable, "long_name", "group of times by their part of the year: " + join(groups, ", "));
  file.add_numbers(variable, "flag_values", places);
  file.add_text(variable, "flag_meanings", join(groups, " "));
}

namespace {

/// Of the leads that they are over one row.
std::vector<std::string> trend_table_of(const ScoreReport& report, std::size_t variable) {
  std::vector<std::string> columns;
  for (const TrendMeasure& measure : trend_measures()) columns.emplace_back(measure.title);
  const std::string& units = report.units[variable];
  return score_table(
      report,
      concat("trend of ", report.variables[variable], " in ten years",
             units.empty() ? "" : concat(" [", units, "]")),
      {"leads", {{0, concat(report.scores->climate()->options().spin_up + 1, "-", report.scores->leads())}}},
      columns, [&](std::size_t region, int) {
        const ClimateTrend trend = trend_of(report, variable, region);
        std::vector<double> numbers;
        for (const TrendMeasure& measure : trend_measures()) numbers.push_back(trend.*measure.value);
        return numbers;
      });
}

}  // namespace

MapContents climate_maps(const ClimateOptions& options, std::map<std::string, std::string> attributes) {
  const std::vector<std::string> groups = names_of(options.groups);
  MapContents contents;
  // In the order of ClimateMap.
  contents.maps = {{"_mean", "time mean of forecasts", true, "mean"},
                   {"_mean_truth", "time mean of the truth", true, "mean"},
                   {"_bias", "time mean of forecasts less that of the truth", false, "mean"},
                   {"_std", "standard deviation in time of forecasts", true, "standard_deviation"},
                   {"_std_truth", "standard deviation in time of the truth", true, "standard_deviation"},
                   {"_count", "number of forecasts and leads that count", false, "", true}};
  contents.along = "climate_group";
  contents.places.resize(groups.size());
  std::iota(contents.places.begin(), contents.places.end(), 0);
  contents.describe = [options, groups](NetcdfOutput& file, int variable) {
    add_group_attributes(file, variable, groups);
    file.add_numbers(NetcdfOutput::kFile, "spin_up", std::vector{options.spin_up});
  };
  contents.attributes = std::move(attributes);
  return contents;
}

std::vector<std::string> climate_tables_of(const ScoreReport& report) {
  const ClimateScores* const climate = report.scores->climate();
  if (climate == nullptr) return {};
  std::vector<std::string> columns, lines;
  for (const ClimateMeasure& measure : climate_measures()) columns.emplace_back(measure.title);
  const int spin_up = climate->options().spin_up;
  TableRows rows{"group", {}};
  for (const std::string& group : climate->groups())
    rows.rows.push_back({static_cast<int>(std::ssize(rows.rows)), group});
  for (std::size_t variable = 0; variable < report.variables.size(); ++variable) {
    const std::string& units = report.units[variable];
    const std::vector<std::string> table = score_table(
        report,
        concat("climate of ", report.variables[variable], units.empty() ? "" : concat(" [", units, "]"),
               spin_up > 0 ? concat(" behind ", counted(spin_up, "step")) : ""),
        rows, columns, [&](std::size_t region, int group) {
          const ClimateScore score = climate->score(variable, region, static_cast<std::size_t>(group));
          std::vector<double> numbers;
          for (const ClimateMeasure& measure : climate_measures()) numbers.push_back(score.*measure.value);
          return numbers;
        });
    lines.insert(lines.end(), table.begin(), table.end());
    const std::vector<std::string> trends = trend_table_of(report, variable);
    lines.insert(lines.end(), trends.begin(), trends.end());
  }
  return lines;
}

Json climate_of(const ScoreReport& report) {
  const ClimateScores& climate = *report.scores->climate();
  const std::vector<std::string> groups = climate.groups();
  Json json = {{"groups", groups},
               {"spin_up", climate.options().spin_up},
               {"scores", Json::object()},
               {"trends", Json::object()}};
  for (std::size_t variable = 0; variable < report.variables.size(); ++variable) {
    for (std::size_t region = 0; region < report.scores->regions().size(); ++region) {
      Json& to = json["scores"][report.variables[variable]][report.scores->regions()[region].name];
      for (const ClimateMeasure& measure : climate_measures()) {
        for (std::size_t group = 0; group < groups.size(); ++group)
          to[measure.name].push_back(climate.score(variable, region, group).*measure.value);
      }
      const ClimateTrend trend = trend_of(report, variable, region);
      Json& of = json["trends"][report.variables[variable]][report.scores->regions()[region].name];
      for (const TrendMeasure& measure : trend_measures()) of[measure.name] = trend.*measure.value;
    }
  }
  return json;
}

}  // namespace jigsaw::inline evaluate
