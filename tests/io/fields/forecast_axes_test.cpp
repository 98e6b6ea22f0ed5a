// How files say when forecasts start and what they are of: predict, WeatherBench 2, cfgrib, files of one
// start or one lead each.
#include "fields/forecast_axes.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "base/text.h"
#include "io/netcdf_writer.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace forecast_axes_test {

using testing::NetcdfWriter;

constexpr Time kFirst = 18628 * kDay;  // 2021-01-01

/// A coordinate, of a dimension of its name or without one.
struct Coordinate {
  std::string name;
  std::vector<double> values;
  std::string units, standard_name = "";
  std::string along = "";  ///< another dimension
  bool scalar = false;
};

ForecastAxes axes_of(const std::vector<Coordinate>& coordinates, const std::string& order) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/v.nc";
  {
    NetcdfWriter file(path);
    std::map<std::string, int> dimensions;
    std::vector<int> variables;
    for (const Coordinate& one : coordinates)
      if (!one.scalar && one.along.empty())
        dimensions[one.name] = file.dimension(one.name, one.values.size());
    dimensions["latitude"] = file.dimension("latitude", 3);
    dimensions["longitude"] = file.dimension("longitude", 4);
    for (const Coordinate& one : coordinates) {
      const std::string along = one.along.empty() ? one.name : one.along;
      variables.push_back(file.variable(one.name, NC_DOUBLE,
                                        one.scalar ? std::vector<int>{} : std::vector{dimensions.at(along)}));
      file.text(variables.back(), "units", one.units);
      file.text(variables.back(), "standard_name", one.standard_name);
    }
    std::vector<int> of_field;
    for (const std::string& name : split(order + " latitude longitude", ' '))
      if (!name.empty()) of_field.push_back(dimensions.at(name));
    file.variable("v", NC_FLOAT, of_field);
    const int latitude = file.variable("latitude", NC_DOUBLE, {dimensions.at("latitude")}),
              longitude = file.variable("longitude", NC_DOUBLE, {dimensions.at("longitude")});
    file.text(latitude, "units", "degrees_north");
    file.text(longitude, "units", "degrees_east");
    file.end();
    file.put(latitude, {10.0, 5.0, 0.0});
    file.put(longitude, {0.0, 5.0, 10.0, 15.0});
    for (std::size_t i = 0; i < coordinates.size(); ++i) file.put(variables[i], coordinates[i].values);
  }
  DataFile file(opener(Dimensions::kByName)(path));
  return forecast_axes(file, *file.file().find("v"));
}

const std::string kHours = "hours since 2021-01-01", kReference = "forecast_reference_time";

void expect_axes(const ForecastAxes& axes, const std::string& start, const std::string& lead,
                 const std::vector<Time>& starts, const std::vector<Time>& leads) {
  EXPECT_EQ(axes.start, start);
  EXPECT_EQ(axes.lead, lead);
  EXPECT_EQ(axes.starts, starts);
  EXPECT_EQ(axes.leads, leads);
}

TEST(ForecastAxes, StandAlongStartsAndLeads) {
  expect_axes(
      axes_of({{"time", {0, 12}, kHours, kReference}, {"lead_time", {6, 12, 18}, "hours", "forecast_period"}},
              "time lead_time"),
      "time", "lead_time", {kFirst, kFirst + 12 * kHour}, {6 * kHour, 12 * kHour, 18 * kHour});
  // WeatherBench 2 says no standard_name, and xarray nanoseconds.
  expect_axes(axes_of({{"time", {0, 12}, kHours}, {"prediction_timedelta", {0, 21600e9}, "nanoseconds"}},
                      "prediction_timedelta time"),
              "time", "prediction_timedelta", {kFirst, kFirst + 12 * kHour}, {0, 6 * kHour});
  // Whoever calls the start `time` by standard_name, too, cannot mean what several leads are of.
  expect_axes(axes_of({{"time", {0, 12}, kHours, "time"}, {"lead", {1, 2}, "days"}}, "time lead"), "time",
              "lead", {kFirst, kFirst + 12 * kHour}, {kDay, 2 * kDay});
  expect_axes(axes_of({{"init_time", {24}, kHours}, {"lead", {1, 2}, "days"}}, "init_time lead"), "init_time",
              "lead", {kFirst + kDay}, {kDay, 2 * kDay});
}

TEST(ForecastAxes, OfOneStart) {
  expect_axes(axes_of({{"time", {12}, kHours, "", "", true}, {"step", {6, 12}, "hours"}}, "step"), "", "step",
              {kFirst + 12 * kHour}, {6 * kHour, 12 * kHour});
  // As cfgrib has it: the leads are known by what they are of, too.
  expect_axes(axes_of({{"time", {12}, kHours, kReference, "", true},
                       {"step", {6, 12}, "hours", "forecast_period"},
                       {"valid_time", {18, 24}, kHours, "time", "step"}},
                      "step"),
              "", "step", {kFirst + 12 * kHour}, {6 * kHour, 12 * kHour});
  // The same without the scalar time.
  expect_axes(axes_of({{"step", {6, 12}, "hours", "forecast_period"},
                       {"valid_time", {18, 24}, kHours, "time", "step"}},
                      "step"),
              "", "step", {kFirst + 12 * kHour}, {6 * kHour, 12 * kHour});
  // The times that it is of, beside its start.
  expect_axes(
      axes_of({{"time", {18, 24}, kHours, "time"}, {kReference, {12}, kHours, kReference, "", true}}, "time"),
      "", "time", {kFirst + 12 * kHour}, {6 * kHour, 12 * kHour});
}

TEST(ForecastAxes, OfOneLead) {
  const std::vector<Time> starts = {kFirst, kFirst + 12 * kHour};
  expect_axes(axes_of({{"time", {0, 12}, kHours, kReference}, {"step", {6}, "hours", "", "", true}}, "time"),
              "time", "", starts, {6 * kHour});
  // The times are those that states hold for.
  expect_axes(axes_of({{"time", {6, 18}, kHours, "time"}, {"step", {6}, "hours", "", "", true}}, "time"),
              "time", "", starts, {6 * kHour});
  expect_axes(axes_of({{"time", {6, 18}, kHours, "time"}, {"step", {6}, "hours"}}, "time step"), "time",
              "step", starts, {6 * kHour});
  expect_axes(axes_of({{"time", {0, 12}, kHours, kReference},
                       {"step", {6}, "hours", "forecast_period", "", true},
                       {"valid_time", {6, 18}, kHours, "time", "time"}},
                      "time"),
              "time", "", starts, {6 * kHour});
  expect_axes(
      axes_of({{"valid_time", {6}, kHours, "time", "", true}, {"step", {6}, "hours", "", "", true}}, ""), "",
      "", {kFirst}, {6 * kHour});
  expect_axes(axes_of({{"valid_time", {18}, kHours, "time", "", true},
                       {"forecast_reference_time", {12}, kHours, kReference, "", true}},
                      ""),
              "", "", {kFirst + 12 * kHour}, {6 * kHour});
  // Of the same time: what has no start is of no lead.
  expect_axes(axes_of({{"time", {0, 12}, kHours, "time"}}, "time"), "time", "", starts, {0});
}

TEST(ForecastAxes, SayWhereAForecastStands) {
  const ForecastAxes axes = axes_of({{"number", {3, 5}, "1", "realization"},
                                     {"time", {0, 12}, kHours, kReference},
                                     {"lead_time", {6, 12}, "hours"}},
                                    "number time lead_time");
  EXPECT_EQ(axes.members, 2);
  using Positions = std::map<std::string, std::int64_t>;
  EXPECT_EQ(axes.positions(kFirst + 12 * kHour, 6 * kHour, 1).value(),
            (Positions{{"time", 1}, {"lead_time", 0}, {"number", 1}}));
  EXPECT_FALSE(axes.positions(kFirst + 6 * kHour, 6 * kHour, 0));
  EXPECT_FALSE(axes.positions(kFirst, 18 * kHour, 0));
  EXPECT_FALSE(axes.positions(kFirst, 6 * kHour, 2));
}

TEST(ForecastAxes, RefusesWhatDoesNotSaySo) {
  const auto error_of = [](const std::vector<Coordinate>& coordinates,
                           const std::string& order) -> std::string {
    try {
      axes_of(coordinates, order);
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(error_of({{"step", {6, 12}, "hours"}}, "step").find("nothing says when they start"),
            std::string::npos);
  EXPECT_NE(error_of({{"time", {0, 12}, kHours}, {"run", {1, 2, 3}, "1"}}, "time run")
                .find("entries of its dimension run"),
            std::string::npos);
  EXPECT_NE(
      error_of({{"time", {0, 12}, kHours}, {"init", {0, 12}, kHours}}, "time init").find("times stand along"),
      std::string::npos);
}

TEST(ForecastAxes, RefusesLeadsOfSeveralStarts) {
  EXPECT_THROW(
      axes_of({{"step", {6, 12}, "hours"}, {"valid_time", {18, 30}, kHours, "time", "step"}}, "step"),
      DataError);
}

}  // namespace forecast_axes_test
}  // namespace jigsaw
