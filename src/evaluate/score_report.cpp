#include "evaluate/score_report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <numeric>
#include <span>

#include "base/text.h"
#include "evaluate/climate_report.h"
#include "evaluate/climate_trend.h"
#include "evaluate/score_axes.h"
#include "evaluate/score_measures.h"
#include "evaluate/score_table.h"
#include "evaluate/station_report.h"
#include "evaluate/threshold_report.h"
#include "fields/data_forms.h"
#include "files/netcdf_output.h"
#include "predict/forecast_file.h"

namespace jigsaw::inline evaluate {

namespace {

Json leads_of(const ScoreReport& report) {
  Json leads = Json::array();
  for (int lead = 1; lead <= report.scores->leads(); ++lead)
    leads.push_back(hours_json(lead * report.lead_time));
  return leads;
}

/// ", scored on 71.2 % of the area" where it is not all of it at every lead; then the least.
std::string scored_part(const ForecastScores& scores, std::size_t variable) {
  double least = 1;
  for (int lead = 0; lead < scores.leads(); ++lead)
    least = std::min(least, scores.score(lead, variable, 0).scored);
  constexpr double kWhole = 1e-9;
  if (!(least < 1 - kWhole)) return "";
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), ", scored on %.3g %% of the area", 100 * least);
  return text.data();
}

/// By variable, region and lead.
Json rank_histograms_of(const ScoreReport& report) {
  const ForecastScores& scores = *report.scores;
  Json json = Json::object();
  for (std::size_t variable = 0; variable < report.variables.size(); ++variable) {
    for (std::size_t region = 0; region < scores.regions().size(); ++region) {
      for (int lead = 0; lead < scores.leads(); ++lead) {
        json[report.variables[variable]][scores.regions()[region].name].push_back(
            scores.rank_histogram(lead, variable, region));
      }
    }
  }
  return json;
}

}  // namespace

std::vector<std::string> table_of(const ScoreReport& report) {
  const ForecastScores& scores = *report.scores;
  const std::span<const Measure> measures = measures_of(scores.members());
  std::vector<std::string> columns, lines;
  const auto has_column = [](const Measure& measure) { return *measure.title != '\0'; };
  for (const Measure& measure : measures)
    if (has_column(measure)) columns.emplace_back(measure.title);
  for (std::size_t variable = 0; variable < report.variables.size(); ++variable) {
    const std::string& units = report.units[variable];
    const std::vector<std::string> table =
        score_table(report,
                    concat(report.variables[variable], units.empty() ? "" : concat(" [", units, "]"),
                           scored_part(scores, variable)),
                    lead_rows(report), columns, [&](std::size_t region, int lead) {
                      const ForecastScore score = scores.score(lead, variable, region);
                      std::vector<double> numbers;
                      for (const Measure& measure : measures)
                        if (has_column(measure)) numbers.push_back(score.*measure.value);
                      return numbers;
                    });
    lines.insert(lines.end(), table.begin(), table.end());
  }
  const std::vector<std::string> tables = threshold_tables_of(report);
  lines.insert(lines.end(), tables.begin(), tables.end());
  const std::vector<std::string> climates = climate_tables_of(report);
  lines.insert(lines.end(), climates.begin(), climates.end());
  const std::vector<std::string> stations = station_tables_of(report);
  lines.insert(lines.end(), stations.begin(), stations.end());
  const auto left_out = scores.leads() - std::ssize(shown_leads(scores.leads()));
  if (left_out > 0)
    lines.push_back(concat("of ", scores.leads(), " leads ", left_out,
                           " are left out here; the files of --json and --netcdf hold all"));
  return lines;
}

Json json_of(const ScoreReport& report) {
  const ForecastScores& scores = *report.scores;
  Json json = {{"title", report.title},         {"source", report.source},        {"periods", report.periods},
               {"forecasts", report.forecasts}, {"lead_hours", leads_of(report)}, {"regions", Json::object()},
               {"scores", Json::object()}};
  json["coverage"] = report.coverage.to_json();
  for (int lead = 1; report.of_months && lead <= scores.leads(); ++lead)
    json["lead_months"].push_back(lead * report.lead_time / kMonth);
  if (scores.members() > 1) json["members"] = scores.members();
  for (const Region& region : scores.regions()) {
    json["regions"][region.name] = {
        {"south", region.south}, {"north", region.north}, {"west", region.west}, {"east", region.east}};
  }
  for (std::size_t variable = 0; variable < report.variables.size(); ++variable) {
    Json& of_variable = json["scores"][report.variables[variable]];
    of_variable["units"] = report.units[variable];
    for (std::size_t region = 0; region < scores.regions().size(); ++region) {
      Json& of_region = of_variable[scores.regions()[region].name];
      for (const Measure& measure : measures_of(scores.members())) {
        for (int lead = 0; lead < scores.leads(); ++lead)
          of_region[measure.name].push_back(scores.score(lead, variable, region).*measure.value);
      }
    }
    for (int lead = 0; lead < scores.leads(); ++lead) {
      const Spectrum spectrum = scores.spectrum(lead, variable);
      if (spectrum.truth.empty()) continue;
      json["spectra"][report.variables[variable]]["forecast"].push_back(spectrum.forecast);
      json["spectra"][report.variables[variable]]["truth"].push_back(spectrum.truth);
    }
  }
  if (scores.members() > 1) json["rank_histograms"] = rank_histograms_of(report);
  if (scores.thresholds().any()) json["thresholds"] = thresholds_of(report);
  if (scores.climate() != nullptr) json["climate"] = climate_of(report);
  if (report.stations != nullptr) json["stations"] = stations_of(report);
  return json;
}

namespace {

/// One variable of the file after the other: defined first, written later.
class ScoreFile {
 public:
  ScoreFile(const ScoreReport& report, const std::string& path)
      : report_(report), scores_(*report.scores), file_(path, NetcdfOutput::Format::kNetcdf4) {}

  void write() {
    define_axes();
    for (std::size_t variable = 0; variable < report_.variables.size(); ++variable) {
      define_scores(variable);
      if (scores_.members() > 1) define_ranks(variable);
      if (wave_numbers_ > 0) define_spectra(variable);
      if (scores_.thresholds().any() && !scores_.thresholds().of(variable).empty())
        define_thresholds(variable);
      if (scores_.climate() != nullptr) define_climate(variable);
    }
    file_.add_text(NetcdfOutput::kFile, "Conventions", "CF-1.10");
    file_.add_text(NetcdfOutput::kFile, "title", report_.title);
    file_.add_text(NetcdfOutput::kFile, "source", report_.source);
    const WindowCoverage& coverage = report_.coverage;
    file_.add_text(NetcdfOutput::kFile, "periods", join(report_.periods, ", "));
    file_.add_text(NetcdfOutput::kFile, "first_start", coverage.first_start);
    file_.add_text(NetcdfOutput::kFile, "last_start", coverage.last_start);
    file_.add_numbers(NetcdfOutput::kFile, "windows", std::vector{static_cast<int>(coverage.of_period)});
    file_.add_numbers(NetcdfOutput::kFile, "windows_scored", std::vector{static_cast<int>(coverage.scored)});
    if (const std::string why = coverage.sentence("these periods"); !why.empty())
      file_.add_text(NetcdfOutput::kFile, "left_out", why);
    if (scores_.members() > 1)
      file_.add_numbers(NetcdfOutput::kFile, "members", std::vector{static_cast<int>(scores_.members())});
    file_.end_definitions();
    axes_.write(file_);
    for (const auto& [variable, values] : integers_) file_.write(variable, values);
    for (const auto& [variable, values] : numbers_) file_.write(variable, values);
    file_.close();
  }

 private:
  using Type = NetcdfOutput::Type;

  int add_axis(const char* name, const std::vector<int>& values) {
    const int dimension = file_.add_dimension(name, values.size());
    integers_.emplace_back(file_.add_variable(name, Type::kInt, {dimension}), values);
    return dimension;
  }

  void define_axes() {
    axes_ = ScoreAxes(file_, {report_.lead_time, report_.of_months, scores_.leads()}, scores_.regions());
    if (scores_.members() > 1) {
      std::vector<int> ranks(static_cast<std::size_t>(scores_.members() + 1));
      std::iota(ranks.begin(), ranks.end(), 0);
      rank_ = add_axis("rank", ranks);
      file_.add_text(integers_.back().first, "long_name", "number of members below the truth");
    }
    define_threshold_axes();
    if (const ClimateScores* const climate = scores_.climate(); climate != nullptr) {
      const std::vector<std::string> groups = climate->groups();
      std::vector<int> places(groups.size());
      std::iota(places.begin(), places.end(), 0);
      group_ = add_axis("climate_group", places);
      add_group_attributes(file_, integers_.back().first, groups);
      file_.add_numbers(NetcdfOutput::kFile, "spin_up", std::vector{climate->options().spin_up});
    }
    wave_numbers_ = scores_.spectrum(0, 0).truth.size();
    if (wave_numbers_ == 0) return;
    std::vector<int> waves(wave_numbers_);
    std::iota(waves.begin(), waves.end(), 0);
    wave_ = add_axis("wave_number", waves);
    file_.add_text(integers_.back().first, "long_name", "zonal wave number");
  }

  void define_threshold_axes() {
    const ThresholdScores& thresholds = scores_.thresholds();
    if (!thresholds.any()) return;
    if (!thresholds.scales().empty()) {
      scale_ = add_axis("fss_scale", {thresholds.scales().begin(), thresholds.scales().end()});
      file_.add_text(integers_.back().first, "long_name",
                     "points along an edge of the squares of the fractions skill score");
    }
    if (scores_.members() == 1) return;
    std::vector<int> counts(static_cast<std::size_t>(scores_.members() + 1));
    std::iota(counts.begin(), counts.end(), 0);
    reaching_ = add_axis("members_reaching", counts);
    file_.add_text(integers_.back().first, "long_name", "number of members that reach the threshold");
  }

  void add(const std::string& name, const std::vector<int>& dimensions, const std::string& long_name,
           const std::string& units, std::vector<double> values) {
    const int variable = file_.add_variable(file_.free_name(name).c_str(), Type::kDouble, dimensions);
    file_.add_text(variable, "long_name", long_name);
    if (!units.empty()) file_.add_text(variable, "units", units);
    file_.add_number(variable, "_FillValue", std::numeric_limits<double>::quiet_NaN());
    numbers_.emplace_back(variable, std::move(values));
  }

  void define_scores(std::size_t variable) {
    const std::string& name = report_.variables[variable];
    for (const Measure& measure : measures_of(scores_.members())) {
      std::vector<double> values;
      for (std::size_t region = 0; region < scores_.regions().size(); ++region) {
        for (int lead = 0; lead < scores_.leads(); ++lead)
          values.push_back(scores_.score(lead, variable, region).*measure.value);
      }
      add(concat(name, "_", measure.name), {axes_.region(), axes_.lead()},
          concat(measure.long_name, " of ", name), measure.has_units ? report_.units[variable] : "1", values);
    }
  }

  void define_ranks(std::size_t variable) {
    const std::string& name = report_.variables[variable];
    std::vector<double> values;
    for (std::size_t region = 0; region < scores_.regions().size(); ++region) {
      for (int lead = 0; lead < scores_.leads(); ++lead) {
        const std::vector<double> shares = scores_.rank_histogram(lead, variable, region);
        values.insert(values.end(), shares.begin(), shares.end());
      }
    }
    add(name + "_rank_histogram", {axes_.region(), axes_.lead(), rank_},
        concat("share of the true ", name, " with each rank among the members"), "1", values);
  }

  void define_spectra(std::size_t variable) {
    const std::string& name = report_.variables[variable];
    const std::string units =
        report_.units[variable].empty() ? "" : concat("(", report_.units[variable], ")2");
    std::vector<double> forecast, truth;
    for (int lead = 0; lead < scores_.leads(); ++lead) {
      const Spectrum spectrum = scores_.spectrum(lead, variable);
      forecast.insert(forecast.end(), spectrum.forecast.begin(), spectrum.forecast.end());
      truth.insert(truth.end(), spectrum.truth.begin(), spectrum.truth.end());
    }
    add(name + "_power", {axes_.lead(), wave_},
        concat("variance of the forecast's ", name, " by zonal wave number"), units, forecast);
    add(name + "_power_truth", {axes_.lead(), wave_},
        concat("variance of the true ", name, " by zonal wave number"), units, truth);
  }

  /// By threshold, region and lead, with a dimension of its own for the thresholds of each variable.
  void define_thresholds(std::size_t variable) {
    const ThresholdScores& scores = scores_.thresholds();
    const std::vector<double>& thresholds = scores.of(variable);
    const std::string name = report_.variables[variable], axis = file_.free_name(name + "_threshold");
    const int dimension = file_.add_dimension(axis.c_str(), thresholds.size());
    const int coordinate = file_.add_variable(axis.c_str(), Type::kDouble, {dimension});
    file_.add_text(coordinate, "long_name", "threshold of " + name);
    if (!report_.units[variable].empty()) file_.add_text(coordinate, "units", report_.units[variable]);
    numbers_.emplace_back(coordinate, thresholds);
    const auto define = [&](const std::string& ending, const std::string& long_name, int last,
                            const auto& put) {
      std::vector<double> values;
      for (std::size_t t = 0; t < thresholds.size(); ++t) {
        for (std::size_t region = 0; region < scores_.regions().size(); ++region) {
          for (int lead = 0; lead < scores_.leads(); ++lead)
            put(scores.score(lead, variable, t, region), values);
        }
      }
      std::vector<int> dimensions = {dimension, axes_.region(), axes_.lead()};
      if (last >= 0) dimensions.push_back(last);
      add(concat(name, "_", ending), dimensions, concat(long_name, " of ", name), "1", values);
    };
    const auto append = [](const std::vector<double>& from, std::vector<double>& to) {
      to.insert(to.end(), from.begin(), from.end());
    };
    for (const ThresholdMeasure& measure : threshold_measures(scores.members())) {
      define(measure.name, measure.long_name, -1,
             [&](const ThresholdScore& score, std::vector<double>& values) {
               values.push_back(score.*measure.value);
             });
    }
    if (scale_ >= 0) {
      define("fss", "fractions skill score", scale_,
             [&](const ThresholdScore& score, std::vector<double>& values) { append(score.fss, values); });
    }
    for (std::size_t i = 0; reaching_ >= 0 && i < kReliability.size(); ++i) {
      define(kReliability[i].name, kReliability[i].long_name, reaching_,
             [&](const ThresholdScore& score, std::vector<double>& values) {
               append(score.*kReliability[i].values, values);
             });
    }
  }

  /// By region and group; trends by region.
  void define_climate(std::size_t variable) {
    const std::string& name = report_.variables[variable];
    for (const ClimateMeasure& measure : climate_measures()) {
      std::vector<double> values;
      for (std::size_t region = 0; region < scores_.regions().size(); ++region) {
        for (std::size_t group = 0; group < scores_.climate()->groups().size(); ++group)
          values.push_back(scores_.climate()->score(variable, region, group).*measure.value);
      }
      add(concat(name, "_climate_", measure.name), {axes_.region(), group_},
          concat(measure.long_name, " of ", name), measure.has_units ? report_.units[variable] : "1", values);
    }
    const std::string& units = report_.units[variable];
    for (const TrendMeasure& measure : trend_measures()) {
      std::vector<double> values;
      for (std::size_t region = 0; region < scores_.regions().size(); ++region)
        values.push_back(trend_of(report_, variable, region).*measure.value);
      add(concat(name, "_climate_", measure.name), {axes_.region()}, concat(measure.long_name, " of ", name),
          units.empty() ? "" : concat(units, " (10 year)-1"), values);
    }
  }

  const ScoreReport& report_;
  const ForecastScores& scores_;
  NetcdfOutput file_;
  ScoreAxes axes_;
  int rank_ = -1, wave_ = -1, scale_ = -1, reaching_ = -1, group_ = -1;
  std::size_t wave_numbers_ = 0;
  std::vector<std::pair<int, std::vector<int>>> integers_;
  std::vector<std::pair<int, std::vector<double>>> numbers_;
};

}  // namespace

void write_netcdf(const ScoreReport& report, const std::string& path) {
  ScoreFile(report, path).write();
}

}  // namespace jigsaw::inline evaluate
