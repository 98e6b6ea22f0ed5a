// Long rollouts of the executable: every N-th step or means of the steps, going on to the last bit from where
// one ended or was stopped, and what is said of what cannot be.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <filesystem>

#include "end_to_end/trained_forecasts.h"
#include "support/small_disk.h"

namespace jigsaw::e2e {
namespace predict_long_test {

class PredictLong : public TrainedForecasts {
 protected:
  static constexpr std::size_t kPoints = std::size_t{kRows} * kColumns;

  static void forecast(int ranks, const std::string& output, const std::string& more) {
    const Outcome outcome = predict(ranks, output, "--overwrite " + more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  static void refused(const Outcome& outcome, int code, const std::string& says) {
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(says), std::string::npos) << outcome.err;
  }
  /// The field of a start and lead.
  static std::vector<double> field(const NetcdfReader& file, const std::string& variable, std::size_t start,
                                   std::size_t lead) {
    const std::vector<double> all = file.values(variable);
    const std::size_t leads = file.extents(variable)[1];
    const auto first = all.begin() + static_cast<std::ptrdiff_t>((start * leads + lead) * kPoints);
    return {first, first + static_cast<std::ptrdiff_t>(kPoints)};
  }
};

const std::vector<MeshCase> kMeshes = {
    {"{}", 1}, {R"({"domain":[2,1]})", 2}, {R"({"tensor":2})", 2}, {R"({"data":2})", 2}};
std::string on(const MeshCase& mesh) {
  return std::string(" --set 'mesh=") + mesh.json + "' ";
}

TEST_F(PredictLong, WritesEveryNthStepOrMeans) {
  for (const MeshCase& mesh : {kMeshes[0], kMeshes[1]}) {
    SCOPED_TRACE(mesh.json);
    const std::string from = "--start 2021-02-02 2021-02-03T06:00 --steps 7" + on(mesh);
    forecast(mesh.ranks, "each.nc", from);
    forecast(mesh.ranks, "every.nc", from + "--every 3");
    const Outcome outcome = predict(mesh.ranks, "mean.nc", "--overwrite " + from + "--mean 3");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("--mean 3 does not divide --steps 7: the rest of 1 step"), std::string::npos)
        << outcome.err;
    const NetcdfReader each(folder() / "each.nc"), every(folder() / "every.nc"), mean(folder() / "mean.nc");
    for (const NetcdfReader* file : {&every, &mean}) {
      EXPECT_EQ(file->values("lead_time"), (std::vector<double>{18, 36}));
      EXPECT_EQ(file->values("time"), each.values("time"));
    }
    EXPECT_EQ(mean.values("lead_time_bnds"), (std::vector<double>{0, 18, 18, 36}));
    for (const char* variable : {"t2m", "u10"}) {
      ASSERT_EQ(every.extents(variable), (std::vector<std::size_t>{2, 2, kRows, kColumns}));
      ASSERT_EQ(mean.extents(variable), every.extents(variable));
      double worst = 0;
      for (std::size_t start = 0; start < 2; ++start) {
        for (std::size_t lead = 0; lead < 2; ++lead) {
          EXPECT_EQ(field(every, variable, start, lead), field(each, variable, start, 3 * lead + 2));
          std::vector<double> wanted(kPoints);
          for (std::size_t step = 3 * lead; step < 3 * lead + 3; ++step) {
            const std::vector<double> state = field(each, variable, start, step);
            for (std::size_t i = 0; i < kPoints; ++i) wanted[i] += state[i] / 3;
          }
          const std::vector<double> found = field(mean, variable, start, lead);
          for (std::size_t i = 0; i < kPoints; ++i) worst = std::max(worst, std::abs(found[i] - wanted[i]));
        }
      }
      // Of steps that are rounded to float32 in the file, as the mean is.
      EXPECT_LE(worst, 3.1e-5) << variable;
    }
  }
}

/// Days begin at midnight; a forecast from then on has its first day, without the start, and none that it
/// does not end.
TEST_F(PredictLong, WritesMeansOverDaysOfTheCalendar) {
  const std::string from = "--start 2021-02-02 2021-02-04 --steps 10" + on(kMeshes[3]);
  forecast(2, "each.nc", from);
  forecast(2, "days.nc", from + "--mean day");
  const NetcdfReader each(folder() / "each.nc"), days(folder() / "days.nc");
  EXPECT_EQ(days.values("time"), each.values("time"));
  EXPECT_EQ(days.values("lead_time"), (std::vector<double>{18, 42}));
  EXPECT_EQ(days.values("lead_time_bnds"), (std::vector<double>{0, 24, 24, 48}));
  for (std::size_t start = 0; start < 2; ++start) {
    for (const auto& [lead, first, last] : {std::array<std::size_t, 3>{0, 0, 2}, {1, 3, 6}}) {
      std::vector<double> wanted(kPoints);
      for (std::size_t step = first; step <= last; ++step) {
        const std::vector<double> state = field(each, "t2m", start, step);
        for (std::size_t i = 0; i < kPoints; ++i)
          wanted[i] += state[i] / static_cast<double>(last - first + 1);
      }
      const std::vector<double> found = field(days, "t2m", start, lead);
      double worst = 0;
      for (std::size_t i = 0; i < kPoints; ++i) worst = std::max(worst, std::abs(found[i] - wanted[i]));
      EXPECT_LE(worst, 3.1e-5) << start << lead;
    }
  }
  const std::string start = "--start 2021-02-02T06:00 ";
  refused(predict(2, "no.nc", start + "2021-02-03 --steps 12 --mean day"), 2,
          "those from 2021-02-02T06:00 and 2021-02-03T00:00 are not; give each start an --output of its own");
  refused(predict(1, "no.nc", start + "--steps 5 --mean day"), 2, "has all states of no day");
  refused(predict(1, "no.nc", start + "--steps 5 --mean months"), 2,
          "or day, month, season or year, not months");
  refused(predict(1, "no.nc", start + "--steps 5 --mean 0"), 2, "a number of steps between 1 and 100000");
  refused(predict(1, "no.nc", start + "2021-02-03 --time-series"), 2,
          "--time-series is of one forecast, and there are 2 starts");
}

/// Whatever leads and variables the file to go on from holds; once more from what went on; some starts alone.
TEST_F(PredictLong, GoesOnToTheLastBit) {
  for (const MeshCase& mesh : kMeshes) {
    SCOPED_TRACE(mesh.json);
    const std::string from = "--start 2021-02-02 2021-02-03T06:00 ", here = on(mesh);
    forecast(mesh.ranks, "whole.nc", from + "--steps 7" + here);
    forecast(mesh.ranks, "begun.nc", from + "--steps 3 --every 2 --variables u10" + here);
    forecast(mesh.ranks, "more.nc", "--continue " + (folder() / "begun.nc") + " --steps 2" + here);
    forecast(mesh.ranks, "rest.nc",
             "--continue " + (folder() / "more.nc") + " --start 2021-02-03T06:00 --steps 2" + here);
    const NetcdfReader whole(folder() / "whole.nc"), more(folder() / "more.nc"), rest(folder() / "rest.nc");
    EXPECT_EQ(more.values("lead_time"), (std::vector<double>{24, 30}));
    EXPECT_EQ(more.values("time"), whole.values("time"));
    EXPECT_EQ(rest.values("lead_time"), (std::vector<double>{36, 42}));
    EXPECT_EQ(rest.values("time"), (std::vector<double>{whole.values("time")[1]}));
    EXPECT_EQ(rest.values("valid_time")[1], whole.values("valid_time")[13]);
    for (const char* variable : {"t2m", "u10"}) {
      for (std::size_t lead = 0; lead < 2; ++lead) {
        for (std::size_t start = 0; start < 2; ++start)
          EXPECT_EQ(field(more, variable, start, lead), field(whole, variable, start, 3 + lead)) << variable;
        const std::vector<double> alone = field(rest, variable, 0, lead),
                                  together = field(whole, variable, 1, 5 + lead);
        // On a mesh that cuts samples another rank has it now, with the same pieces.
        EXPECT_EQ(alone, together) << variable << lead;
      }
    }
  }
}

/// What one mesh began another one goes on with, but for rounding.
TEST_F(PredictLong, GoesOnOnAnotherMesh) {
  const std::string from = "--start 2021-02-02 ";
  forecast(1, "whole.nc", from + "--steps 4");
  forecast(2, "begun.nc", from + "--steps 2" + on(kMeshes[1]));
  forecast(2, "rest.nc", "--continue " + (folder() / "begun.nc") + " --steps 2" + on(kMeshes[2]));
  const NetcdfReader whole(folder() / "whole.nc"), rest(folder() / "rest.nc");
  for (const char* variable : {"t2m", "u10"}) {
    const std::vector<double> one = field(whole, variable, 0, 3), other = field(rest, variable, 0, 1);
    double worst = 0;
    for (std::size_t i = 0; i < kPoints; ++i) worst = std::max(worst, std::abs(one[i] - other[i]));
    EXPECT_LE(worst, 3.1e-5) << variable;
  }
}

/// The file has the steps that were made by then, and can be gone on from.
TEST_F(PredictLong, EndsBehindTheStepInWorkOnASignal) {
  const std::string from = " --start 2021-02-02 2021-02-03", output = folder() / "stopped.nc";
  const struct { int ranks, number; } cases[] = {{1, SIGTERM}, {2, SIGUSR1}};
  for (const auto& [ranks, number] : cases) {
    SCOPED_TRACE(ranks);
    const std::string mesh = on(kMeshes[ranks == 1 ? 0 : 1]);
    for (const char* left : {"stopped.nc", "stopped.nc.restart"}) std::filesystem::remove(folder() / left);
    Running running(ranks, "predict --config " + (folder() / "config.json") + " --checkpoint " + trained() +
                               " --output " + output + " --quiet --steps 20000" + from + mesh);
    ASSERT_TRUE(running.until([&] { return is_under_way(output); }));
    running.signal(number);
    const Outcome stopped = running.collect();
    EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
    EXPECT_TRUE(stopped.errors().empty()) << stopped.err;
    EXPECT_EQ(stopped.out, "");
    EXPECT_FALSE(is_under_way(output));
    const NetcdfReader begun(output);
    const std::size_t steps = begun.extents("t2m")[1];
    ASSERT_GE(steps, 1U);
    const std::vector<std::string> said = stopped.said();
    ASSERT_FALSE(said.empty()) << stopped.err;
    EXPECT_NE(said.back().find("warning: stopped early behind step " + std::to_string(steps) + " of 20000: " +
                               output + " is incomplete and holds 2 of 2 forecasts; the rest"),
              std::string::npos)
        << said.back();
    EXPECT_NE(said.back().find("--continue " + output + " --steps " + std::to_string(20000 - steps)),
              std::string::npos)
        << said.back();
    EXPECT_NE(begun.text("", "comment").find("stopped early, behind step " + std::to_string(steps)),
              std::string::npos)
        << begun.text("", "comment");
    EXPECT_EQ(begun.values("lead_time").back(), 6.0 * static_cast<double>(steps));
    forecast(ranks, "rest.nc", "--continue " + output + " --steps 2" + mesh);
    forecast(ranks, "whole.nc", "--steps " + std::to_string(steps + 2) + from + mesh);
    const NetcdfReader whole(folder() / "whole.nc"), rest(folder() / "rest.nc");
    for (const char* variable : {"t2m", "u10"}) {
      for (std::size_t start = 0; start < 2; ++start) {
        EXPECT_EQ(field(begun, variable, start, steps - 1), field(whole, variable, start, steps - 1));
        EXPECT_EQ(field(rest, variable, start, 1), field(whole, variable, start, steps + 1));
      }
    }
  }
}

/// Twice the same command: what is there stays, whatever it is of, but for what a signal cut short.
TEST_F(PredictLong, LeavesWhatIsThereAlone) {
  const std::string towns = folder() / "places.csv";
  folder().write("places.csv", "name,latitude,longitude\nA,47.4,8.6\nB,-12.1,-77\n");
  for (const auto& [output, more] : {std::pair<std::string, std::string>{"skip_{start}.nc", ""},
                                     {"skip.nc", ""},
                                     {"skip_{start}.csv", " --points " + towns}}) {
    SCOPED_TRACE(output);
    std::string path = folder() / output;
    if (const std::size_t at = path.find("{start}"); at != std::string::npos)
      path.replace(at, 7, "2021-02-28T1800");
    const std::string options = "--start latest --steps 3 --skip-existing" + more;
    const int ranks = output == "skip.nc" ? 2 : 1;
    const Outcome first = predict(ranks, output, options);
    ASSERT_EQ(first.exit_code, 0) << first.err;
    const auto written = std::filesystem::last_write_time(path);
    const Outcome again = predict(ranks, output, options);
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_NE(again.out.find(path + " is there and is left alone"), std::string::npos) << again.out;
    EXPECT_EQ(again.out.find("wrote"), std::string::npos) << again.out;
    EXPECT_EQ(std::filesystem::last_write_time(path), written);
    EXPECT_FALSE(is_under_way(path));
  }
  const std::string output = folder() / "cut.nc", command = " --start 2021-02-02 --skip-existing --steps ";
  Running running(1, "predict --config " + (folder() / "config.json") + " --checkpoint " + trained() +
                         " --output " + output + command + "20000");
  ASSERT_TRUE(running.until([&] { return is_under_way(output); }));
  running.signal(SIGTERM);
  ASSERT_EQ(running.collect().exit_code, 75);
  ASSERT_TRUE(std::filesystem::exists(output));
  const Outcome anew = predict(1, "cut.nc", command + "3");
  ASSERT_EQ(anew.exit_code, 0) << anew.err;
  EXPECT_NE(anew.out.find("wrote 1 forecast of 3 steps"), std::string::npos) << anew.out;
  forecast(1, "whole.nc", "--start 2021-02-02 --steps 3");
  EXPECT_EQ(values("cut.nc", "t2m"), values("whole.nc", "t2m"));
  folder().write("cut.nc", "mine");
  refused(predict(1, "cut.nc", command + "3"), 2, "no forecast that --skip-existing could leave alone");
  EXPECT_EQ(read(output), "mine");
}

/// Which would else say nothing for as long as the variable does not come.
TEST_F(PredictLong, SaysWhatTheNewestTimeLacksAlsoWhereTheForecastIsThere) {
  const std::string options =
      "--start latest --skip-existing --set 'data.variables=[\"t2m\",{\"name\":\"u10\","
      "\"files\":[\"" +
      data() + "/sample_2021-01.nc\"]}]'";
  for (const bool there : {false, true}) {
    const Outcome outcome = predict(1, "late_{start}.nc", options);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out.find("is left alone") != std::string::npos, there) << outcome.out;
    ASSERT_FALSE(outcome.said().empty());
    EXPECT_NE(outcome.said()[0].find("--start latest is 2021-01-31T18:00, for "), std::string::npos)
        << outcome.err;
    EXPECT_NE(outcome.said()[0].find("u10"), std::string::npos) << outcome.err;
  }
}

/// A state is kept of several steps from a start that is named, unless it is said otherwise.
TEST_F(PredictLong, KeepsAStateWhereItIsOfUse) {
  const std::string start = "--start 2021-02-02 ";
  const struct {
    const char* options;
    bool kept;
  } cases[] = {
      {"--steps 2 --start 2021-02-02", true}, {"--steps 2 --start 2021-02-02 --restart never", false},
      {"--start 2021-02-02", false},          {"--start 2021-02-02 --restart always", true},
      {"--steps 2 --period valid", false},    {"--steps 2 --period valid --restart always", true}};
  for (const auto& [options, kept] : cases) {
    SCOPED_TRACE(options);
    // What stands there from before is of other forecasts.
    forecast(1, "kept.nc", options);
    EXPECT_EQ(std::filesystem::exists(folder() / "kept.nc.restart"), kept);
    EXPECT_FALSE(is_under_way(folder() / "kept.nc.restart"));
  }
  forecast(1, "kept.nc", start + "--restart always");
  forecast(1, "rest.nc", "--continue " + (folder() / "kept.nc"));
  forecast(1, "whole.nc", start + "--steps 2");
  EXPECT_EQ(field(NetcdfReader(folder() / "rest.nc"), "t2m", 0, 0),
            field(NetcdfReader(folder() / "whole.nc"), "t2m", 0, 1));
}

TEST_F(PredictLong, SaysWhatCannotGoOn) {
  forecast(1, "begun.nc", "--start 2021-02-02 2021-02-03 --steps 2");
  const std::string go_on = "--continue " + (folder() / "begun.nc") + " ";
  refused(predict(1, "no.nc", "--continue " + (folder() / "nowhere.nc")), 2, "nowhere.nc.restart");
  refused(predict(2, "no.nc", go_on + "--average never"), 4, "made with other weights");
  refused(predict(1, "no.nc", go_on + "--start 2021-02-04"), 2, "holds no forecast from 2021-02-04");
  refused(predict(1, "no.nc", go_on + "--period valid"), 2, "--period");
  refused(predict(1, "no.nc", go_on + "--steps 1 --every 4"), 2, "leave nothing that could be written");
  refused(predict(1, "begun.nc", go_on + "--overwrite"), 2, "is read, and is not replaced");
  ASSERT_EQ(run(1, "sample-data --seed 77 --output " + (folder() / "other")).exit_code, 0);
  for (const MeshCase& mesh : {kMeshes[0], kMeshes[1]}) {
    refused(predict(mesh.ranks, "no.nc", go_on + "--input " + (folder() / "other/*.nc") + on(mesh)), 4,
            "that from 2021-02-02T00:00 began with another state");
  }
  folder().write("torn.nc.restart", read(folder() / "begun.nc.restart").substr(0, 2000));
  refused(predict(1, "no.nc", "--continue " + (folder() / "torn.nc")), 3, "torn.nc.restart");
  EXPECT_FALSE(std::filesystem::exists(folder() / "no.nc"));
}

/// Of as many rows.
TEST_F(PredictLong, GoesOnAtTheSamePlaceAlone) {
  Json south = config();
  south["data"]["region"] = {{"latitude", {-90, 0}}};
  write_config("south.json", south);
  const std::string model = folder() / "south", with = "--config " + (folder() / "south.json");
  ASSERT_EQ(run(1, with + " --set output=" + model).exit_code, 0);
  const std::string here = "predict " + with + " --checkpoint " + model + " --steps 2 --output ";
  ASSERT_EQ(run(1, here + (folder() / "south.nc") + " --start 2021-02-02").exit_code, 0);
  const std::string go_on = here + (folder() / "north.nc") + " --continue " + (folder() / "south.nc");
  refused(run(1, go_on + R"( --set 'data.region={"latitude":[0,90]}')"), 4,
          "they are on a grid with rows from");
  EXPECT_EQ(run(1, go_on).exit_code, 0);
}

/// The state takes more of the disk than the forecasts.
TEST_F(PredictLong, AStateThatDoesNotFitIsNoLossOfTheForecasts) {
  const std::string options = "--start 2021-02-02 2021-02-03 2021-02-04 --steps 2 --every 2 --variables u10 ";
  forecast(1, "fits.nc", options);
  const auto output = std::filesystem::file_size(folder() / "fits.nc"),
             state = std::filesystem::file_size(folder() / "fits.nc.restart");
  ASSERT_GT(state, output + output / 2);
  // A rank without a launcher shares a table of some megabytes with itself, unless told otherwise.
  ASSERT_EQ(setenv("PMIX_MCA_gds", "hash", 1), 0);
  for (const char* restart : {"auto", "always"}) {
    SCOPED_TRACE(restart);
    forecast(1, "full.nc", options);
    const bool error = restart == std::string("always");
    const testing::SmallDisk small(static_cast<rlim_t>((output + state) / 2));
    const Outcome outcome =
        predict(1, "full.nc", "--overwrite --restart " + std::string(restart) + " " + options);
    EXPECT_EQ(outcome.exit_code, error ? 4 : 0) << outcome.err;
    EXPECT_EQ(outcome.errors().size(), error ? 1U : 0U) << outcome.err;
    EXPECT_NE(outcome.err.find("full.nc is written, but not the state to go on from"), std::string::npos)
        << outcome.err;
    EXPECT_EQ(values("full.nc", "u10"), values("fits.nc", "u10"));
    EXPECT_FALSE(is_under_way(folder() / "full.nc") || is_under_way(folder() / "full.nc.restart"));
    for (const char* gone : {"full.nc.restart"})
      EXPECT_FALSE(std::filesystem::exists(folder() / gone)) << gone;
  }
}

TEST_F(PredictLong, SaysWhatIsNoDataAndWhatIsNoName) {
  refused(predict(1, "forecast.nc.restart", "--start 2021-02-02 --steps 2"), 2, "named like the state");
  refused(predict(1, "forecast.zarr", "--start 2021-02-02"), 2, "is named like a Zarr store");
  EXPECT_FALSE(is_under_way(folder() / "forecast.zarr"));
  forecast(1, "begun.nc", "--start 2021-02-02 --steps 2");
  refused(predict(1, "no.nc", "--start 2021-02-02T12:00 --input " + (folder() / "begun.nc")), 3,
          "predict --continue goes on from such a file");
}

TEST_F(PredictLong, NamesTheFirstValueThatIsNotFinite) {
  const std::string checkpoint = not_finite_checkpoint();
  for (const MeshCase& mesh : {kMeshes[0], kMeshes[2]}) {
    const Outcome outcome =
        run(mesh.ranks, "predict --config " + (folder() / "config.json") + " --checkpoint " + checkpoint +
                            " --overwrite --output " + (folder() / "nan.nc") +
                            " --start 2021-02-02 2021-02-03 --steps 4 --every 2" + on(mesh));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const std::string count = std::to_string(2 * 2 * 2 * kPoints);
    EXPECT_NE(outcome.err.find(count + " values of the forecasts are not finite, the first of them of t2m "
                                       "12 h (step 2) from the start 2021-02-02"),
              std::string::npos)
        << outcome.err;
  }
}

}  // namespace predict_long_test
}  // namespace jigsaw::e2e
