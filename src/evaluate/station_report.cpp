#include "evaluate/station_report.h"

#include <limits>
#include <utility>

#include "base/text.h"
#include "evaluate/score_table.h"
#include "files/netcdf_output.h"
#include "files/text_table_output.h"
#include "predict/forecast_file.h"
#include "predict/place_axis.h"

namespace jigsaw::inline evaluate {

namespace {

std::size_t variable_of(const StationScores& stations, std::size_t channel) {
  return static_cast<std::size_t>(stations.channels()[channel]);
}

}  // namespace

std::vector<std::string> station_tables_of(const ScoreReport& report) {
  if (report.stations == nullptr) return {};
  const StationScores& stations = *report.stations;
  const std::vector<StationMeasure> measures = station_measures(stations.members());
  std::vector<std::string> columns, lines;
  for (const StationMeasure& measure : measures) columns.emplace_back(measure.title);
  for (std::size_t channel = 0; channel < stations.channels().size(); ++channel) {
    const std::size_t variable = variable_of(stations, channel);
    const std::string& units = report.units[variable];
    const std::string title =
        concat(report.variables[variable], units.empty() ? "" : concat(" [", units, "]"), " at ",
               counted(stations.stations(channel), "station"));
    const std::vector<std::string> table =
        score_table(report, title, lead_rows(report), columns, [&](std::size_t region, int lead) {
          const StationScore score = stations.in_region(lead, channel, report.scores->regions()[region]);
          std::vector<double> numbers;
          for (const StationMeasure& measure : measures) numbers.push_back(score.*measure.value);
          return numbers;
        });
    lines.insert(lines.end(), table.begin(), table.end());
  }
  return lines;
}

Json stations_of(const ScoreReport& report) {
  const StationScores& stations = *report.stations;
  Json json = {{"places", stations.places().size()}, {"scores", Json::object()}};
  for (std::size_t channel = 0; channel < stations.channels().size(); ++channel) {
    const std::size_t variable = variable_of(stations, channel);
    Json& of_variable = json["scores"][report.variables[variable]];
    of_variable["units"] = report.units[variable];
    for (const Region& region : report.scores->regions()) {
      for (int lead = 0; lead < stations.leads(); ++lead) {
        const StationScore score = stations.in_region(lead, channel, region);
        for (const StationMeasure& measure : station_measures(stations.members()))
          of_variable[region.name][measure.name].push_back(score.*measure.value);
      }
    }
  }
  return json;
}

namespace {

void write_station_table(const ScoreReport& report, const std::string& path) {
  const StationScores& stations = *report.stations;
  const std::vector<StationMeasure> measures = station_measures(stations.members());
  TextTableOutput table(path);
  std::vector<std::string> titles = {"station", "latitude", "longitude", "variable", "units", "lead_hours"};
  for (const StationMeasure& measure : measures) titles.emplace_back(measure.name);
  table.add_line(titles);
  const auto number = [](double value) { return TextTableOutput::number(value); };
  const NamedPlaces& places = stations.places();
  for (std::size_t place = 0; place < places.size(); ++place) {
    for (std::size_t channel = 0; channel < stations.channels().size(); ++channel) {
      const std::size_t variable = variable_of(stations, channel);
      for (int lead = 0; lead < stations.leads(); ++lead) {
        const StationScore score = stations.at_place(lead, channel, place);
        std::vector<std::string> cells = {places.names[place],
                                          number(places.latitudes[place]),
                                          number(places.longitudes[place]),
                                          report.variables[variable],
                                          report.units[variable],
                                          number(in_hours((lead + 1) * report.lead_time))};
        for (const StationMeasure& measure : measures) cells.push_back(number(score.*measure.value));
        table.add_line(cells);
      }
    }
  }
  table.close();
}

}  // namespace

void write_station_scores(const ScoreReport& report, const std::string& path, bool as_table) {
  if (as_table) return write_station_table(report, path);
  using Type = NetcdfOutput::Type;
  const StationScores& stations = *report.stations;
  NetcdfOutput file(path, NetcdfOutput::Format::kNetcdf4);
  const PlaceAxis places(file, stations.places());
  const LeadUnit unit = lead_unit(report.lead_time, report.of_months);
  std::vector<int> leads;
  for (int lead = 1; lead <= stations.leads(); ++lead)
    leads.push_back(static_cast<int>(lead * report.lead_time / unit.seconds));
  const int along = file.add_dimension("lead_time", leads.size()),
            lead_variable = file.add_variable("lead_time", Type::kInt, {along});
  add_lead_attributes(file, lead_variable, unit);
  std::vector<std::pair<int, std::vector<double>>> numbers;
  for (std::size_t channel = 0; channel < stations.channels().size(); ++channel) {
    const std::size_t variable = variable_of(stations, channel);
    const std::string &name = report.variables[variable], &units = report.units[variable];
    for (const StationMeasure& measure : station_measures(stations.members())) {
      const int number = file.add_variable(file.free_name(concat(name, "_", measure.name)).c_str(),
                                           Type::kDouble, {places.dimension(), along});
      file.add_text(number, "long_name", concat(measure.long_name, ": ", name));
      if (!measure.has_units || !units.empty())
        file.add_text(number, "units", measure.has_units ? units : "1");
      file.add_text(number, "coordinates", join(PlaceAxis::coordinates(), " "));
      file.add_number(number, "_FillValue", std::numeric_limits<double>::quiet_NaN());
      std::vector<double> values;
      for (std::size_t place = 0; place < stations.places().size(); ++place)
        for (int lead = 0; lead < stations.leads(); ++lead)
          values.push_back(stations.at_place(lead, channel, place).*measure.value);
      numbers.emplace_back(number, std::move(values));
    }
  }
  file.add_text(NetcdfOutput::kFile, "Conventions", "CF-1.10");
  file.add_text(NetcdfOutput::kFile, "title", report.title);
  file.add_text(NetcdfOutput::kFile, "source", report.source);
  file.end_definitions();
  places.write(file);
  file.write(lead_variable, leads);
  for (const auto& [number, values] : numbers) file.write(number, values);
  file.close();
}

}  // namespace jigsaw::inline evaluate
