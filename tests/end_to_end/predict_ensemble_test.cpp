// Ensembles of which all members are samples: training, scores over all of them, forecasts of one.
#include <gtest/gtest.h>

#include <cmath>

#include "end_to_end/trained_forecasts.h"
#include "io/netcdf_writer.h"

namespace jigsaw::e2e {
namespace predict_ensemble_test {

constexpr int kRows = 8, kColumns = 12, kTimes = 24;
constexpr std::size_t kPoints = std::size_t{kRows} * kColumns;

/// What a member holds at a time and point, as float.
double state(int member, int time, std::size_t point) {
  const auto i = static_cast<double>(point);
  return static_cast<float>(280 + 8 * std::sin(0.3 * time + 0.7 * i + member) + 0.2 * time + 0.5 * member +
                            std::cos(1.7 * i * (member + 1)));
}

/// Six days from 2021-01-01 on, every six hours. @param members  none: of one member without a dimension
void write_states(const std::string& path, const std::vector<int>& members, bool alone) {
  testing::NetcdfWriter file(path);
  const int number = alone ? -1 : file.dimension("number", members.size()),
            time = file.dimension("time", kTimes), lat = file.dimension("latitude", kRows),
            lon = file.dimension("longitude", kColumns);
  const int numbers = alone ? -1 : file.variable("number", NC_INT, {number}),
            times = file.variable("time", NC_DOUBLE, {time}),
            lats = file.variable("latitude", NC_DOUBLE, {lat}),
            lons = file.variable("longitude", NC_DOUBLE, {lon}),
            t2m = file.variable("t2m", NC_FLOAT,
                                alone ? std::vector{time, lat, lon} : std::vector{number, time, lat, lon});
  file.text(times, "units", "hours since 2021-01-01");
  file.text(lats, "units", "degrees_north");
  file.text(lons, "units", "degrees_east");
  file.text(t2m, "units", "K");
  file.end();
  std::vector<double> hours, rows, columns, values;
  for (int i = 0; i < kTimes; ++i) hours.push_back(6 * i);
  for (int i = 0; i < kRows; ++i) rows.push_back(50 - 5 * i);
  for (int i = 0; i < kColumns; ++i) columns.push_back(5 * i);
  for (const int member : members)
    for (int t = 0; t < kTimes; ++t)
      for (std::size_t i = 0; i < kPoints; ++i) values.push_back(state(member, t, i));
  if (!alone) file.put(numbers, std::vector<double>(members.begin(), members.end()));
  file.put(times, hours);
  file.put(lats, rows);
  file.put(lons, columns);
  file.put(t2m, values);
}

TEST(PredictEnsemble, WritesOneMemberAndScoresAll) {
  const TemporaryFolder folder;
  const std::vector<int> members = {3, 7};
  write_states(folder / "ensemble.nc", members, false);
  for (const int member : members)
    write_states(folder / ("alone_" + std::to_string(member) + ".nc"), {member}, true);
  const Json config = {{"data",
                        {{"files", {folder / "ensemble.nc"}},
                         {"member", "all"},
                         {"variables", {"t2m"}},
                         {"forcings", {"latitude"}},
                         {"train", {"2021-01-01", "2021-01-04"}},
                         {"valid", {"2021-01-05", "2021-01-06"}}}},
                       {"model", small_mixer(8)},
                       {"optimizer", {{"learning_rate", 5e-3}}},
                       {"train", {{"steps", 10}, {"batch_size", 3}, {"precision", "fp64"}}},
                       {"validation", {{"every", 10}, {"rollout", 2}, {"climatology", true}}},
                       {"checkpoint", {{"every", 10}}}};
  folder.write("config.json", config.dump());
  const std::string with_config = "--config " + (folder / "config.json") + " ",
                    of_run = with_config + "--checkpoint " + (folder / "run") + " ";
  Outcome outcome = run(2, with_config + "--set output=" + (folder / "run") + " --set 'mesh={\"data\":2}'");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;

  outcome = run(2, "predict " + of_run + "--period valid --output " + (folder / "all.nc"));
  EXPECT_EQ(outcome.exit_code, 2);
  ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
  EXPECT_NE(outcome.errors()[0].find("say which by --set data.member=3 (the files have 3, 7)"),
            std::string::npos)
      << outcome.err;

  const auto predict = [&](const std::string& output, const std::string& more) {
    outcome = run(1, "predict " + of_run + "--steps 2 --period valid --output " + (folder / output) + more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return NetcdfReader(folder / output).values("t2m");
  };
  double squares = 0, count = 0;
  const std::vector<double> weights = row_weights(NetcdfReader(folder / "ensemble.nc").values("latitude"));
  constexpr int kFirst = 16, kWindows = 6;  // those of 5 and 6 January whose second lead is in the files
  for (const int member : members) {
    const std::string number = std::to_string(member);
    const std::vector<double> forecast = predict("member_" + number + ".nc", " --set data.member=" + number);
    // The same from a file that holds this member alone, without saying so.
    EXPECT_EQ(forecast, predict("alone_of_" + number + ".nc",
                                " --set data.member=null --input " + (folder / ("alone_" + number + ".nc"))));
    ASSERT_EQ(forecast.size(), 8 * 2 * kPoints);
    const NetcdfReader of_member(folder / ("member_" + number + ".nc"));
    EXPECT_EQ(of_member.values("number"), std::vector<double>{static_cast<double>(member)});
    EXPECT_EQ(of_member.text("number", "standard_name"), "realization");
    EXPECT_EQ(of_member.text("t2m", "coordinates"), "valid_time number");
    for (std::size_t window = 0; window < kWindows; ++window) {
      for (std::size_t i = 0; i < kPoints; ++i) {
        const double error = forecast[(window * 2 + 1) * kPoints + i] -
                             state(member, kFirst + static_cast<int>(window) + 2, i);
        squares += weights[i / kColumns] * error * error;
        count += 1;
      }
    }
  }
  // From the state that a member's forecasts ended in that member alone goes on, from whatever file.
  predict("begun.nc", " --set data.member=3 --restart always");
  const auto go_on = [&](const std::string& more) {
    return run(1, "predict " + of_run + "--overwrite --output " + (folder / "rest.nc") + " --continue " +
                      (folder / "begun.nc") + " --set data.member=" + more);
  };
  outcome = go_on("3");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  outcome = go_on("null --input " + (folder / "alone_3.nc"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::pair<std::string, std::string> others[] = {
      {"7", "they are of member 3 of the data's ensemble, not 7"},
      {"null --input " + (folder / "alone_7.nc"), "began with another state"}};
  for (const auto& [more, says] : others) {
    outcome = go_on(more);
    EXPECT_EQ(outcome.exit_code, 4) << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(says), std::string::npos) << outcome.err;
  }
  outcome = run(
      2, "evaluate " + of_run + "--json " + (folder / "scores.json") + " --set 'mesh={\"domain\":[1,2]}'");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json scores = Json::parse(read(folder / "scores.json"));
  EXPECT_EQ(scores.at("forecasts"), 2 * kWindows);
  const Json& all = scores.at("scores").at("t2m").at("all");
  EXPECT_NEAR(all.at("rmse").at(1).get<double>() / std::sqrt(squares / count), 1, 1e-5);
  EXPECT_TRUE(all.at("acc").at(1).is_number()) << "the climatology is of all members";

  for (const char* member : {"\"all\"", "3"}) {
    outcome = run(1, "check " + with_config + "--set 'data.files=[\"" + (folder / "alone_3.nc") +
                         "\"]' --set 'data.member=" + member + "'");
    EXPECT_EQ(outcome.exit_code, 2);
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(std::string("data.member is ") + member +
                                       ", and none of the variables has a dimension of members"),
              std::string::npos)
        << outcome.err;
  }
}

}  // namespace predict_ensemble_test
}  // namespace jigsaw::e2e
