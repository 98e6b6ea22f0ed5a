// What is said of periods before a run begins.
#include "train/data_report.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "task/grid_warnings.h"

namespace jigsaw {
namespace data_report_test {

Time at(const std::string& text) {
  return parse_time(text).value();
}

std::vector<Time> six_hourly(const std::string& first, const std::string& last) {
  std::vector<Time> times;
  for (Time time = at(first); time <= at(last); time += 6 * kHour) times.push_back(time);
  return times;
}

std::vector<std::string> warnings(const std::vector<Time>& times, const char* first, const char* last) {
  return period_warnings(times, parse_dates(first, last).value().in(Calendar::kStandard, "data.train"),
                         "data.train");
}

using Lines = std::vector<std::string>;

TEST(PeriodWarnings, NoneWhereTheFilesCoverIt) {
  const auto times = six_hourly("2020-01-01", "2020-01-31T18:00");
  EXPECT_EQ(warnings(times, "2020-01-01", "2020-01-31"), Lines());
  EXPECT_EQ(warnings(times, "2020-01-05T03:00", "2020-01-06T09:00"), Lines());
  EXPECT_EQ(warnings({at("2020-01-05")}, "2020-01-05", "2020-01-05T00:00"), Lines());
}

TEST(PeriodWarnings, SayWhatTheFilesHoldOfIt) {
  const auto times = six_hourly("2020-01-03", "2020-01-31T18:00");
  EXPECT_EQ(
      warnings(times, "2020-01-01", "2020-01-31"),
      Lines{"data.train (2020-01-01 to 2020-01-31) is not covered by the files, which hold 2020-01-03T00:00 "
            "to 2020-01-31T18:00 of it"});
  EXPECT_EQ(warnings(times, "2020-01-10", "2020-02-01").size(), 1U);
  EXPECT_EQ(warnings(times, "2021-01-01", "2021-01-02"),
            Lines{"data.train (2021-01-01 to 2021-01-02) is not in the files"});
}

TEST(PeriodWarnings, CountGapsAndNameTheLongest) {
  auto times = six_hourly("2020-01-01", "2020-01-31T18:00");
  std::erase(times, at("2020-01-04T06:00"));
  EXPECT_EQ(
      warnings(times, "2020-01-01", "2020-01-31"),
      Lines{"data.train (2020-01-01 to 2020-01-31) has 1 gap in the files, whose times are 6 h apart: from "
            "2020-01-04T00:00 to 2020-01-04T12:00"});
  std::erase_if(times, [](Time time) { return time > at("2020-01-20") && time < at("2020-01-22"); });
  EXPECT_EQ(
      warnings(times, "2020-01-01", "2020-01-31"),
      Lines{"data.train (2020-01-01 to 2020-01-31) has 2 gaps in the files, whose times are 6 h apart: the "
            "longest from 2020-01-20T00:00 to 2020-01-22T00:00"});
  EXPECT_EQ(warnings(times, "2020-01-05", "2020-01-19"), Lines());
}

TEST(PrescribedWarnings, SayWhereFieldsLackThatAllElseIsThereFor) {
  const auto times = six_hourly("2020-01-01", "2020-01-31T18:00");
  const auto warnings = [&](const std::vector<Time>& there, const char* first, const char* last) {
    return prescribed_warnings(times, there, "sst",
                               parse_dates(first, last).value().in(Calendar::kStandard, "data.train"),
                               "data.train");
  };
  EXPECT_EQ(warnings(times, "2020-01-01", "2020-01-31"), Lines());
  auto some = six_hourly("2020-01-03", "2020-01-20");
  EXPECT_EQ(warnings(some, "2020-01-03", "2020-01-19"), Lines());
  EXPECT_EQ(warnings(some, "2020-01-10", "2020-01-25"),
            Lines{"data.train (2020-01-10 to 2020-01-25) is not covered by sst of data.forcing_variables, "
                  "there from 2020-01-10T00:00 to 2020-01-20T00:00 of it; windows that need more are left "
                  "out"});
  EXPECT_EQ(warnings(some, "2020-01-01", "2020-01-10").size(), 1U);
  std::erase_if(some, [](Time time) { return time > at("2020-01-07") && time < at("2020-01-09"); });
  EXPECT_EQ(warnings(some, "2020-01-03", "2020-01-19"),
            Lines{"data.train (2020-01-03 to 2020-01-19) has 1 gap in sst of data.forcing_variables: from "
                  "2020-01-07T00:00 to 2020-01-09T00:00; windows that need more are left out"});
  // Every other time lacks.
  std::vector<Time> twelve_hourly;
  for (std::size_t i = 0; i < times.size(); i += 2) twelve_hourly.push_back(times[i]);
  EXPECT_EQ(warnings(twelve_hourly, "2020-01-03T00:00", "2020-01-04T00:00"),
            Lines{"data.train (2020-01-03 to 2020-01-04T00:00) has 2 gaps in sst of data.forcing_variables: "
                  "the longest from 2020-01-03T00:00 to 2020-01-03T12:00; windows that need more are left "
                  "out"});
  EXPECT_EQ(warnings(some, "2020-01-25", "2020-01-26"),
            Lines{"data.train (2020-01-25 to 2020-01-26) holds no sst of data.forcing_variables"});
}

std::vector<double> range(double first, double step, int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(first + i * step);
  return values;
}

TEST(EdgeWarnings, NoneWhereTheGridHasWhatIsReadBeyondItsEnds) {
  const Grid cells = make_geographic_grid(range(75, -30, 6), range(0, 60, 6)),
             points = make_geographic_grid(range(90, -30, 7), range(-180, 60, 6)),
             area = make_geographic_grid(range(60, -10, 4), range(0, 10, 6));
  EXPECT_EQ(edge_warnings({{"type", "unet"}, {"padding_mode", {"pole_cell", "circular"}}}, cells), Lines());
  EXPECT_EQ(edge_warnings({{"type", "unet"}, {"padding_mode", {"pole_point", "circular"}}}, points), Lines());
  EXPECT_EQ(edge_warnings({{"type", "swin"}, {"circular", true}}, points), Lines());
  EXPECT_EQ(edge_warnings({{"type", "swin"}, {"circular", false}}, area), Lines());
  EXPECT_EQ(edge_warnings({{"type", "unet"}, {"padding_mode", "zeros"}}, area), Lines());
  EXPECT_EQ(edge_warnings({{"type", "unet"}, {"padding_mode", {"replicate"}}}, area), Lines());
  EXPECT_EQ(edge_warnings({{"type", "unet"}, {"padding_mode", "circular"}}, make_plain_grid({4, 6})),
            Lines());
}

TEST(EdgeWarnings, SayWhatTheGridDoesNotHave) {
  const Grid cells = make_geographic_grid(range(75, -30, 6), range(0, 60, 6)),
             area = make_geographic_grid(range(60, -10, 4), range(0, 10, 6));
  EXPECT_EQ(
      edge_warnings({{"type", "unet"}, {"padding_mode", {"pole_cell", "circular"}}}, area),
      (Lines{
          "model.padding_mode is \"pole_cell\" along latitude, but the rows of the grid do not go round, so "
          "that no other half of the circle lies beyond a pole; \"replicate\" takes the last point there",
          "model.padding_mode is \"circular\" along longitude, but the longitudes of the data, 0 to 50, do "
          "not go round; \"replicate\" takes the last point there"}));
  EXPECT_EQ(
      edge_warnings({{"type", "swin"}, {"circular", true}}, area),
      Lines{"model.circular is true, but the longitudes of the data, 0 to 50, do not go round; set it to "
            "false"});
  EXPECT_EQ(edge_warnings({{"type", "unet"}, {"padding_mode", {"pole_point", "circular"}}}, cells),
            Lines{"model.padding_mode is \"pole_point\" along latitude, but the latitudes of the data, 75 to "
                  "-75, do not end with rows at both poles; \"replicate\" takes the last point there"});
  // All of it within layers of layers, each once.
  const Json conv = {{"type", "conv"}, {"padding_mode", "circular"}};
  const Lines twice = edge_warnings({{"type", "sequential"}, {"layers", Json::array({conv, conv})}}, cells);
  ASSERT_EQ(twice.size(), 1U);
  EXPECT_EQ(twice[0].substr(0, twice[0].find(", but")),
            "model.layers[0].padding_mode is \"circular\" along latitude");
}

TEST(EdgeWarnings, SayWhatASphereDoesNotHave) {
  const Grid points = make_geographic_grid(range(-90, 30, 7), range(0, 60, 6)),
             area = make_geographic_grid(range(60, -10, 4), range(0, 10, 6)),
             without_south = make_geographic_grid(range(90, -30, 6), range(0, 60, 6));
  const Json sfno = {{"type", "sfno"}, {"latitudes", "pole_cell"}};
  EXPECT_EQ(edge_warnings(sfno, points), Lines());
  EXPECT_EQ(edge_warnings(sfno, make_geographic_grid({59.444, 19.876, -19.876, -59.444}, range(0, 60, 6))),
            Lines());
  const std::string begin = "model works with spherical harmonics, for fields around the globe, but the ",
                    unknown = ", are none of those between both poles that it knows";
  EXPECT_EQ(edge_warnings(sfno, without_south), Lines{begin + "latitudes of the data, 90 to -60" + unknown});
  const Lines of_area = {begin + "longitudes of the data, 0 to 50, do not go round",
                         begin + "latitudes of the data, 60 to 30" + unknown};
  EXPECT_EQ(edge_warnings(sfno, area), of_area);
  const Json residual = {{"type", "residual"}, {"layers", {{{"type", "spherical_conv"}}}}};
  EXPECT_EQ(edge_warnings({{"type", "sequential"}, {"layers", {residual}}}, area), of_area);
  EXPECT_EQ(edge_warnings({{"type", "sequential"}, {"layers", {{{"type", "linear"}}}}}, area), Lines());
}

/// Rows and columns that are numbers, of points with latitudes and longitudes of their own.
TEST(EdgeWarnings, SayWhatPointsWithPlacesOfTheirOwnDoNotHave) {
  Grid grid = make_plain_grid({4, 6});
  grid.corners = {0, 0, 0, 50, 30, 0, 30, 50};
  const Json globe = {{"type", "unet"}, {"padding_mode", {"pole_cell", "circular"}}};
  const std::string poles =
      "model.padding_mode is \"pole_cell\" along the first dim, but each point of the data has a latitude "
      "and "
      "a longitude of its own, so that rows do not end at poles; \"replicate\" takes the last point there";
  EXPECT_EQ(edge_warnings(globe, grid, FileSet::GoesRound{false, true}), Lines{poles});
  EXPECT_EQ(edge_warnings(globe, grid, FileSet::GoesRound{false, false}),
            (Lines{poles,
                   "model.padding_mode is \"circular\" along the second dim, but the last column of the data "
                   "does not lie beside the first one; \"replicate\" takes the last point there"}));
  EXPECT_EQ(
      edge_warnings(globe, grid, FileSet::GoesRound{false, false, 2}),
      (Lines{poles,
             "model.padding_mode is \"circular\" along the second dim, but the last 2 columns of the data "
             "lie where the first 2 do, not beside, and go round once cut off (in xarray "
             "isel(x=slice(0, -2))); \"replicate\" takes the last point there"}));
  const Json swin = {{"type", "swin"}, {"circular", true}};
  EXPECT_EQ(edge_warnings(swin, grid, FileSet::GoesRound{false, true}), Lines());
  EXPECT_EQ(
      edge_warnings(swin, grid, FileSet::GoesRound{}),
      Lines{"model.circular is true, but the last column of the data does not lie beside the first one; "
            "set it to false"});
  EXPECT_EQ(
      edge_warnings({{"type", "unet"}, {"padding_mode", "circular"}}, grid, FileSet::GoesRound{false, true}),
      Lines{"model.padding_mode is \"circular\" along the first dim, but the last row of the data does "
            "not lie at the first one; \"replicate\" takes the last point there"});
  EXPECT_EQ(edge_warnings({{"type", "unet"}, {"padding_mode", "replicate"}}, grid, FileSet::GoesRound{}),
            Lines());
}

/// Windows that hold a part of what goes round.
TEST(WindowWarnings, NameAxesThatWindowsCut) {
  const std::vector<std::string> axes = {"depth", "height", "width"};
  const Shape window{16, 32, 8}, whole{32, 32, 32};
  const auto of = [&](const Json& mode) {
    return window_warnings({{"type", "unet"}, {"padding_mode", mode}}, axes, window, whole);
  };
  const std::string reads =
      ": beyond its ends a window then reads its own other end, not what lies there, in training and in "
      "predictions; let data.crop hold all points along them (--set 'data.crop=[";
  EXPECT_EQ(of("circular"),
            Lines{"model.padding_mode is \"circular\", but windows of the images hold 16 of 32 points along "
                  "depth, 8 of 32 points along width" +
                  reads + "32,32,32]', for predict and evaluate, too), or take \"zeros\""});
  EXPECT_EQ(of({"circular", "circular", "zeros"}),
            Lines{"model.padding_mode is \"circular\", but windows of the images hold 16 of 32 points along "
                  "depth" +
                  reads + "32,32,8]', for predict and evaluate, too), or take \"zeros\""});
  EXPECT_EQ(window_warnings({{"type", "swin"}, {"circular", true}}, axes, window, whole),
            Lines{"model.circular is true, but windows of the images hold 8 of 32 points along width" +
                  reads + "16,32,32]', for predict and evaluate, too), or set it to false"});
  EXPECT_EQ(of({"zeros", "circular", "replicate"}), Lines());
  EXPECT_EQ(of("reflect"), Lines());
  EXPECT_EQ(window_warnings({{"type", "unet"}, {"padding_mode", "circular"}}, axes, whole, whole), Lines());
}

TEST(Harmonics, AreRefusedWherePointsHavePlacesOfTheirOwn) {
  Grid grid = make_plain_grid({4, 6});
  const Json sfno = {{"type", "sfno"}, {"latitudes", "pole_cell"}};
  EXPECT_NO_THROW(refuse_harmonics(sfno, grid)) << "of data that are only described";
  EXPECT_NO_THROW(refuse_harmonics(sfno, make_geographic_grid(range(60, -10, 4), range(0, 10, 6))));
  grid.corners = {0, 0, 0, 50, 30, 0, 30, 50};
  EXPECT_NO_THROW(refuse_harmonics({{"type", "unet"}}, grid));
  const Json layers = {{"type", "sequential"}, {"layers", {{{"type", "spherical_conv"}}}}};
  for (const Json& model : {sfno, layers}) EXPECT_THROW(refuse_harmonics(model, grid), ConfigError);
}

}  // namespace data_report_test
}  // namespace jigsaw
