// Forecasts of the executable: they have the errors that validation says, on any mesh; K steps are K times
// one step; files that netCDF, xarray and CDO read; one sentence where it cannot be done.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <regex>
#include <sstream>

#include "end_to_end/trained_forecasts.h"

namespace jigsaw::e2e {
namespace predict_test {

class Predict : public TrainedForecasts {};

TEST_F(Predict, HasTheErrorsThatValidationSays) {
  const Outcome outcome = predict(1, "valid.nc", "--steps 3 --period valid");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("averaged weights of step 40"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("steps a second"), std::string::npos) << outcome.out;
  const NetcdfReader file(folder() / "valid.nc");
  const std::vector<double> starts = file.values("time"), weights = row_weights(file.values("latitude"));
  // Twelve times of three days; the windows of validation are those that end in the period.
  ASSERT_EQ(starts.size(), 12U);
  constexpr std::size_t kWindows = 9, kPoints = std::size_t{kRows} * kColumns;
  const Json valid = metrics(trained(), "valid").back();
  for (const char* variable : {"t2m", "u10"}) {
    const Truth truth(data(), variable);
    const std::vector<double> forecast = file.values(variable);
    ASSERT_EQ(forecast.size(), 12 * 3 * kPoints);
    for (std::size_t lead = 0; lead < 3; ++lead) {
      double squares = 0;
      for (std::size_t start = 0; start < kWindows; ++start) {
        const auto hour = std::llround(starts[start]) + 6 * (static_cast<std::int64_t>(lead) + 1);
        const std::vector<double>& state = truth.at.at(hour);
        for (std::size_t i = 0; i < kPoints; ++i) {
          const double error = forecast[(start * 3 + lead) * kPoints + i] - state[i];
          squares += weights[i / kColumns] * error * error / static_cast<double>(kPoints * kWindows);
        }
      }
      const Json& score =
          lead == 0 ? valid.at("metrics") : valid.at("leads").at(std::to_string(6 * (lead + 1)));
      const double said = score.at(variable).at("rmse").get<double>();
      std::printf("%s at %zu h: RMSE %.6f by validation, %.6f of the file\n", variable, 6 * (lead + 1), said,
                  std::sqrt(squares));
      EXPECT_NEAR(std::sqrt(squares) / said, 1.0, 1e-5) << variable << lead;
      EXPECT_LT(said, score.at(variable).at("persistence_rmse").get<double>() * 3);
    }
  }
}

TEST_F(Predict, IsTheSameOnEveryMesh) {
  const std::string dates = "--steps 2 --start 2021-02-01 2021-02-02T06:00 2021-02-05T18:00 ";
  ASSERT_EQ(predict(1, "one.nc", dates).exit_code, 0);
  const std::vector<MeshCase> meshes = {{"{}", 1},
                                        {R"({"domain":[2,1]})", 2},
                                        {R"({"domain":[1,2]})", 2},
                                        {R"({"tensor":2})", 2},
                                        {R"({"data":2})", 2},
                                        {R"({"domain":[3,1]})", 3},
                                        {R"({"domain":[2,1],"tensor":2})", 4},
                                        {R"({"data":2,"domain":[1,2]})", 4}};
  for (const MeshCase& mesh : meshes) {
    const Outcome outcome =
        predict(mesh.ranks, "many.nc", dates + "--overwrite --set 'mesh=" + mesh.json + "'");
    ASSERT_EQ(outcome.exit_code, 0) << mesh.json << outcome.err;
    for (const char* variable : {"t2m", "u10"}) {
      const std::vector<double> one = values("one.nc", variable), many = values("many.nc", variable);
      ASSERT_EQ(one.size(), many.size());
      double worst = 0;
      for (std::size_t i = 0; i < one.size(); ++i) worst = std::max(worst, std::abs(one[i] - many[i]));
      std::printf("%-32s %d ranks: %s differs by %.1e\n", mesh.json, mesh.ranks, variable, worst);
      // The last bit of float32 at 300.
      EXPECT_LE(worst, 3.1e-5) << mesh.json << variable;
    }
  }
}

/// What is read for a lead does not depend on how many follow.
TEST_F(Predict, LongForecastsBeginAsShortOnes) {
  constexpr std::size_t kShort = 2, kLong = 12, kPoints = std::size_t{kRows} * kColumns;
  const std::string from = " --start 2021-02-02 2021-02-02T06:00 2021-02-03 --set mesh.domain=[2,1]";
  ASSERT_EQ(predict(2, "short.nc", "--steps " + std::to_string(kShort) + from).exit_code, 0);
  ASSERT_EQ(predict(2, "long.nc", "--steps " + std::to_string(kLong) + from).exit_code, 0);
  for (const char* variable : {"t2m", "u10"}) {
    const std::vector<double> few = values("short.nc", variable), many = values("long.nc", variable);
    ASSERT_EQ(few.size(), 3 * kShort * kPoints);
    ASSERT_EQ(many.size(), 3 * kLong * kPoints);
    for (std::size_t start = 0; start < 3; ++start) {
      const auto begin = few.begin() + static_cast<std::ptrdiff_t>(start * kShort * kPoints);
      EXPECT_TRUE(std::equal(begin, begin + static_cast<std::ptrdiff_t>(kShort * kPoints),
                             many.begin() + static_cast<std::ptrdiff_t>(start * kLong * kPoints)))
          << variable << " of start " << start;
    }
  }
}

/// A file in the shape of the input with the first lead of forecasts, for the next step to go on from.
void write_states(const std::string& from, const std::string& to) {
  const NetcdfReader forecast(from);
  int file = 0, time = 0, lat = 0, lon = 0, times = 0, lats = 0, lons = 0;
  ASSERT_EQ(nc_create(to.c_str(), NC_CLOBBER | NC_NETCDF4, &file), NC_NOERR);
  const std::vector<double> hours = forecast.values("valid_time");
  nc_def_dim(file, "time", hours.size(), &time);
  nc_def_dim(file, "latitude", 37, &lat);
  nc_def_dim(file, "longitude", 72, &lon);
  nc_def_var(file, "time", NC_DOUBLE, 1, &time, &times);
  nc_def_var(file, "latitude", NC_FLOAT, 1, &lat, &lats);
  nc_def_var(file, "longitude", NC_FLOAT, 1, &lon, &lons);
  const auto add_units = [&](int variable, const std::string& units) {
    nc_put_att_text(file, variable, "units", units.size(), units.c_str());
  };
  add_units(times, "hours since 1970-01-01");
  add_units(lats, "degrees_north");
  add_units(lons, "degrees_east");
  nc_put_var_double(file, times, hours.data());
  nc_put_var_double(file, lats, forecast.values("latitude").data());
  nc_put_var_double(file, lons, forecast.values("longitude").data());
  for (const char* name : {"t2m", "u10"}) {
    int variable = 0;
    const int dimensions[] = {time, lat, lon};
    nc_def_var(file, name, NC_FLOAT, 3, dimensions, &variable);
    add_units(variable, forecast.text(name, "units"));
    nc_put_var_double(file, variable, forecast.values(name).data());
  }
  ASSERT_EQ(nc_close(file), NC_NOERR);
}

TEST_F(Predict, TwoStepsAreOneStepTwice) {
  Json json = config();
  json["data"]["input_hours"] = {0};
  write_config("memoryless.json", json);
  const std::string common = " --config " + (folder() / "memoryless.json") + " ",
                    trained_there = folder() / "memoryless";
  ASSERT_EQ(run(1, common + "--set output=" + trained_there).exit_code, 0);
  const auto forecast = [&](const std::string& output, const std::string& more) {
    const Outcome outcome = run(
        1, "predict" + common + "--checkpoint " + trained_there + " --output " + (folder() / output) + more);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  };
  forecast("both.nc", " --steps 2 --start 2021-02-02");
  forecast("first.nc", " --start 2021-02-02");
  write_states(folder() / "first.nc", folder() / "states.nc");
  // A file that holds no time of the training period will do.
  forecast("second.nc",
           " --start 2021-02-02T06:00 --set 'data.files=[\"" + (folder() / "states.nc") + "\"]'");
  for (const char* variable : {"t2m", "u10"}) {
    const std::vector<double> both = values("both.nc", variable), second = values("second.nc", variable);
    ASSERT_EQ(both.size(), 2 * second.size());
    double worst = 0, change = 0;
    for (std::size_t i = 0; i < second.size(); ++i) {
      worst = std::max(worst, std::abs(both[second.size() + i] - second[i]));
      change = std::max(change, std::abs(both[second.size() + i] - both[i]));
    }
    std::printf(
        "%s: the second step differs by %.1e from a step of the first one's result; it changes it by "
        "up to %.1f\n",
        variable, worst, change);
    EXPECT_LE(worst, 2e-4) << variable;
    EXPECT_GT(change, 0.1) << variable;
  }
}

TEST_F(Predict, RestoresWhatIsMissing) {
  namespace fs = std::filesystem;
  fs::create_directory(folder() / "holes");
  for (const auto& entry : fs::directory_iterator(data())) {
    const std::string copy = folder() / ("holes/" + entry.path().filename().string());
    fs::copy_file(entry.path(), copy);
    int file = 0, variable = 0;
    ASSERT_EQ(nc_open(copy.c_str(), NC_WRITE, &file), NC_NOERR);
    ASSERT_EQ(nc_inq_varid(file, "t2m", &variable), NC_NOERR);
    std::size_t times = 0;
    ASSERT_EQ(nc_inq_dimlen(file, 2, &times), NC_NOERR);
    const short fill = -32767;
    for (std::size_t t = 0; t < times; ++t) {
      for (const std::size_t column : {std::size_t{3}, std::size_t{40}}) {
        const std::size_t at[] = {t, 20, column};
        ASSERT_EQ(nc_put_var1_short(file, variable, at, &fill), NC_NOERR);
      }
    }
    ASSERT_EQ(nc_close(file), NC_NOERR);
  }
  const Outcome outcome =
      predict(2, "holes.nc",
              "--steps 2 --start 2021-02-02 --set mesh.domain=[1,2] --set 'data.files=[\"" +
                  (folder() / "holes/*.nc") + "\"]'");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<double> t2m = values("holes.nc", "t2m"), u10 = values("holes.nc", "u10");
  for (std::size_t i = 0; i < t2m.size(); ++i) {
    const std::size_t point = i % (std::size_t{kRows} * kColumns);
    const bool missing = point == 20 * kColumns + 3 || point == 20 * kColumns + 40;
    ASSERT_EQ(t2m[i] == NC_FILL_FLOAT, missing) << i;
    ASSERT_TRUE(missing || (t2m[i] > 100 && t2m[i] < 400)) << t2m[i];
    ASSERT_NE(u10[i], NC_FILL_FLOAT);
  }
}

/// A state of which much more is missing than was in training is told, by all ranks' points together.
TEST_F(Predict, StatesThatLackMoreThanInTrainingAreTold) {
  const std::string copy = folder() / "half.nc";
  std::filesystem::copy_file(data() + "/sample_2021-02.nc", copy);
  int file = 0, variable = 0;
  ASSERT_EQ(nc_open(copy.c_str(), NC_WRITE, &file), NC_NOERR);
  ASSERT_EQ(nc_inq_varid(file, "t2m", &variable), NC_NOERR);
  constexpr std::size_t kMissingRows = 18, kStart = 4;  // 2 February, in steps of 6 h
  const std::size_t from[] = {kStart, 0, 0}, count[] = {1, kMissingRows, std::size_t{kColumns}};
  const std::vector<short> fill(kMissingRows * kColumns, -32767);
  ASSERT_EQ(nc_put_vara_short(file, variable, from, count, fill.data()), NC_NOERR);
  ASSERT_EQ(nc_close(file), NC_NOERR);
  for (const int ranks : {1, 2}) {
    const Outcome outcome =
        predict(ranks, "half_out.nc", "--overwrite --start 2021-02-02 2021-02-03 --input " + copy);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    ASSERT_EQ(outcome.said().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.said()[0].find(
                  "t2m is missing at 48.6 % of the points at 2021-02-02T00:00, and was at 0 % in "
                  "training; the model was given its mean there"),
              std::string::npos)
        << outcome.err;
  }
}

/// A grid that has moved is told; longitudes that count from another zero are the same.
TEST_F(Predict, PlacesOtherThanThoseOfTrainingAreTold) {
  namespace fs = std::filesystem;
  const auto moved = [](const std::string& name, const char* coordinate, double by) {
    const std::string copy = folder() / name;
    fs::copy_file(data() + "/sample_2021-02.nc", copy);
    int file = 0, variable = 0;
    EXPECT_EQ(nc_open(copy.c_str(), NC_WRITE, &file), NC_NOERR);
    EXPECT_EQ(nc_inq_varid(file, coordinate, &variable), NC_NOERR);
    std::vector<double> degrees = NetcdfReader(copy).values(coordinate);
    for (double& degree : degrees) degree += by;
    EXPECT_EQ(nc_put_var_double(file, variable, degrees.data()), NC_NOERR);
    EXPECT_EQ(nc_close(file), NC_NOERR);
    return predict(1, "moved.nc", "--overwrite --start 2021-02-02 --input " + copy);
  };
  const Outcome columns = moved("east.nc", "longitude", 2.5);
  EXPECT_EQ(columns.exit_code, 0) << columns.err;
  EXPECT_NE(columns.err.find("warning: the longitudes of the data, 2.5 to 357.5 degrees, are not those that"),
            std::string::npos)
      << columns.err;
  EXPECT_NE(columns.err.find("was trained with, 0 to 355; data.forcings' longitude counts from the middle"),
            std::string::npos)
      << columns.err;
  EXPECT_EQ(columns.err.find("the latitudes"), std::string::npos) << columns.err;
  const Outcome same = moved("round.nc", "longitude", -360);
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_TRUE(same.said().empty()) << same.err;
}

TEST_F(Predict, WritesWhatIsAskedFor) {
  ASSERT_EQ(predict(1, "u10.nc", "--variables u10 --start 2021-02-02").exit_code, 0);
  const NetcdfReader file(folder() / "u10.nc");
  EXPECT_FALSE(file.has("t2m"));
  EXPECT_EQ(file.extents("u10"), (std::vector<std::size_t>{1, 1, kRows, kColumns}));
  EXPECT_EQ(file.text("u10", "units"), "m s**-1");
  EXPECT_EQ(file.text("u10", "standard_name"), "eastward_wind");
  // Weights of the last step are others than their average.
  ASSERT_EQ(predict(1, "last.nc", "--variables u10 --start 2021-02-02 --average never").exit_code, 0);
  EXPECT_NE(values("last.nc", "u10"), values("u10.nc", "u10"));
}

TEST_F(Predict, ExportSaysWhichWeightsItWrote) {
  const std::string to =
      "export --checkpoint " + trained() + " --output " + (folder() / "weights.safetensors");
  EXPECT_NE(run(1, to).out.find(", the weights of its last step; --average writes their moving average"),
            std::string::npos);
  EXPECT_NE(run(1, to + " --average").out.find("weights.safetensors, their moving average\n"),
            std::string::npos);
}

/// As CF has it, and so that the checkpoint is known again.
TEST_F(Predict, FilesSayWhoMadeThem) {
  const auto texts = [](const std::string& output, const std::string& more) {
    const Outcome outcome = predict(1, output, "--start 2021-02-02 " + more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const NetcdfReader file(folder() / output);
    return std::pair{file.text("", "source"), file.text("", "history")};
  };
  const auto [source, history] = texts("said.nc", "");
  EXPECT_TRUE(std::regex_match(
      history,
      std::regex(R"(2\d\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ: .*jigsaw-train predict .* \(jigsaw-train \d.*\))")))
      << history;
  const std::string step = trained() + "/checkpoints/step_00000040";
  EXPECT_EQ(source.rfind("jigsaw-train, averaged weights of step 40 of " + step + " (digest ", 0), 0U)
      << source;
  EXPECT_TRUE(std::regex_search(source, std::regex(R"( \(digest [0-9a-f]{16}\)$)"))) << source;
  EXPECT_EQ(texts("again.nc", "--set train.batch_size=1").first, source);
  const std::string other = texts("others.nc", "--average never").first;
  const auto digest = [](const std::string& of) { return of.substr(of.find(" (digest")); };
  EXPECT_NE(digest(other), digest(source));
  // The same training once more makes the same weights, though its files were written at another time.
  const std::string repeated = folder() / "repeated";
  ASSERT_EQ(run(1, "--config " + (folder() / "config.json") + " --set output=" + repeated).exit_code, 0);
  ASSERT_EQ(run(1, "predict --config " + (folder() / "config.json") + " --checkpoint " + repeated +
                       " --output " + (folder() / "repeated.nc") + " --start 2021-02-02")
                .exit_code,
            0);
  EXPECT_EQ(digest(NetcdfReader(folder() / "repeated.nc").text("", "source")), digest(source));
}

TEST_F(Predict, StartsFromTheNewestTimeAndIsNamedByIt) {
  for (const int ranks : {1, 2}) {
    const Outcome outcome = predict(ranks, "fc_{start}.nc", "--start latest --steps 2 --overwrite");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("fc_2021-02-28T1800.nc"), std::string::npos) << outcome.out;
    EXPECT_EQ(values("fc_2021-02-28T1800.nc", "time").size(), 1U);
    std::filesystem::remove(folder() / "fc_2021-02-28T1800.nc");
  }
  // The newest time of other files is that of these.
  ASSERT_EQ(
      predict(1, "january_{start}.nc", "--start latest --input " + data() + "/sample_2021-01.nc").exit_code,
      0);
  EXPECT_TRUE(std::filesystem::exists(folder() / "january_2021-01-31T1800.nc"));
  std::filesystem::create_directory(folder() / "2021-02-20T0000");
  ASSERT_EQ(predict(1, "{start}/fc_{start}.nc", "--start 2021-02-20").exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder() / "2021-02-20T0000/fc_2021-02-20T0000.nc"));
  const Outcome unknown = predict(2, "fc_{valid}.nc", "--start latest");
  EXPECT_EQ(unknown.exit_code, 2);
  ASSERT_EQ(unknown.errors().size(), 1U) << unknown.err;
  EXPECT_NE(unknown.errors()[0].find("{valid} is no placeholder; there is {start}"), std::string::npos)
      << unknown.err;
  const Outcome several = predict(1, "several_{start}.nc", "--start 2021-02-20 2021-02-21");
  EXPECT_EQ(several.exit_code, 2);
  EXPECT_NE(several.err.find("names one start, and there are 2"), std::string::npos) << several.err;
}

TEST_F(Predict, WarnsOfPlacesOfOneName) {
  folder().write("alike.csv", "name,lat,lon\nA,47,8\nB,40,8\nA,-12,-77\n");
  for (const int ranks : {1, 2}) {
    const Outcome outcome =
        predict(ranks, "alike.nc", "--overwrite --start 2021-02-02 --points " + (folder() / "alike.csv"));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    ASSERT_EQ(outcome.said().size(), 1U) << outcome.err;
    EXPECT_NE(
        outcome.said()[0].find("alike.csv has several places that are called A, at 47, 8 and at -12, -77"),
        std::string::npos)
        << outcome.err;
    EXPECT_EQ(NetcdfReader(folder() / "alike.nc").extents("t2m").back(), 3U);
  }
}

TEST_F(Predict, IsReadByXarrayAndCdo) {
  ASSERT_EQ(predict(1, "tools.nc", "--steps 4 --start 2021-02-02 2021-02-03T12:00").exit_code, 0);
  const std::string path = folder() / "tools.nc";
  const std::string check =
      "import numpy, xarray; d = xarray.open_dataset('" + path +
      "'); assert d.t2m.dims == ('time', 'lead_time', 'latitude', 'longitude'), d.t2m.dims; "
      "assert d.time.values[1] == numpy.datetime64('2021-02-03T12:00'); "
      "assert d.lead_time.values[3] == numpy.timedelta64(24, 'h'); "
      "assert 'valid_time' in d.t2m.coords and 'valid_time' not in d.data_vars, d; "
      "assert d.valid_time.values[1, 3] == numpy.datetime64('2021-02-04T12:00'); "
      "assert 150 < float(d.t2m.min()) < float(d.t2m.max()) < 400; assert d.t2m.units == 'K'";
  int tools = 0;
  if (std::system("/usr/bin/python3 -c 'import xarray, netCDF4' > /dev/null 2>&1") == 0) {
    EXPECT_EQ(std::system(("/usr/bin/python3 -c " + quoted(check)).c_str()), 0);
    ++tools;
  }
  if (std::system("cdo --version > /dev/null 2>&1") == 0) {
    const std::string said = folder() / "sinfo.txt";
    EXPECT_EQ(std::system(("cdo sinfon " + quoted(path) + " > " + quoted(said) + " 2>&1").c_str()), 0);
    const std::string info = read(said);
    for (const char* part :
         {"t2m", "u10", "72x37", "2021-02-02 00:00:00", "2021-02-03 12:00:00", "lead_time"})
      EXPECT_NE(info.find(part), std::string::npos) << part << " is not in\n" << info;
    // As a coordinate along two times CF has what CDO has no place for; it goes on without.
    std::istringstream lines(info);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_TRUE(line.find("arning") == std::string::npos ||
                  line.find("variable valid_time can't be assigned") != std::string::npos)
          << info;
    }
    ++tools;
  }
  if (tools < 2)
    GTEST_SKIP() << "of xarray and CDO (scripts/setup.sh --readers) only " << tools << " are here";
}

struct WrongInput {
  const char* name;
  const char* arguments;
  int exit_code;
  const char* says;
};
void PrintTo(const WrongInput& wrong, std::ostream* out) {
  *out << wrong.name;
}
const WrongInput kWrong[] = {
    {"date_that_is_none", "--start 2021-02-31T25:00", 2, "--start 2021-02-31T25:00 is no date"},
    {"date_that_is_none_before_a_checkpoint", "--start 2021-02-31T25:00 --checkpoint nowhere", 2,
     "--start 2021-02-31T25:00 is no date"},
    {"time_between_those_of_the_files", "--start 2021-02-02T05", 3,
     "not at 2021-02-01T23:00 (the nearest time is 2021-02-02T00:00)"},
    {"no_deviations", "--start 2021-02-02 --stop-outside 0", 2, "--stop-outside"},
    {"day_that_the_calendar_lacks", "--start 2021-02-30", 2, "--start 2021-02-30"},
    {"date_without_data", "--start 2022-01-01", 3, "needs t2m at 2021-12-31T18:00"},
    {"first_date_without_its_inputs", "--start 2021-01-01", 3, "needs t2m at 2020-12-31T18:00"},
    {"variable_that_is_not_predicted", "--start 2021-02-02 --variables u11", 2, "did you mean \"u10\""},
    {"level_that_is_not_predicted", "--start 2021-02-02 --levels 500", 2, "--levels names 500"},
    {"empty_name_of_an_input", "--start 2021-02-02 --input ''", 2, "--input must hold names or patterns"},
    {"no_steps", "--start 2021-02-02 --steps 0", 2, "--steps"},
    {"steps_of_which_none_is_written", "--start 2021-02-02 --steps 3 --every 4", 2,
     "a lead of the file ends with step 4"},
    {"mean_over_more_than_there_are", "--start 2021-02-02 --steps 3 --mean 4", 2,
     "--mean 4 and --steps 3 leave nothing"},
    {"steps_and_means", "--start 2021-02-02 --steps 4 --mean 2 --every 2", 2, "--every"},
    {"dates_and_a_period", "--start 2021-02-02 --period valid", 2, "--period"},
    {"other_lead", "--start 2021-02-02 --set data.lead_hours=12", 4, "data.lead_hours differs"},
    {"other_depth", "--start 2021-02-02 --set model.depth=2", 4, "model.depth differs"},
    {"other_variables", "--start 2021-02-02 --set 'data.variables=[\"u10\",\"t2m\"]'", 4, "data.variables"},
    {"other_grid", "--start 2021-02-02 --set data.every=2", 4,
     "is of a grid of [37,72] points, and the data have [19,36]; data.every differs"},
    {"other_region", "--start 2021-02-02 --set data.region.latitude=[-45,45]", 4,
     "data.region.latitude differs"},
    {"period_without_data", "--set 'data.valid=[\"1999-01-01\",\"1999-01-02\"]'", 3, "data.valid"},
    {"no_checkpoint", "--start 2021-02-02 --checkpoint nowhere", 4, "nowhere"},
};

class PredictWrongInput : public Predict, public ::testing::WithParamInterface<WrongInput> {};

TEST_P(PredictWrongInput, IsOneSentenceAndTheDocumentedExitCode) {
  const WrongInput& wrong = GetParam();
  const std::string given = wrong.arguments;
  const std::string checkpoint =
      given.find("--checkpoint") == std::string::npos ? "--checkpoint " + trained() : "";
  // Ranks that agree on an error do so alike whichever it is.
  static int cases = 0;
  const int most = cases++ % 4 == 0 ? 2 : 1;
  for (int ranks = 1; ranks <= most; ++ranks) {
    const Outcome outcome = run(ranks, "predict --config " + (folder() / "config.json") + " --output " +
                                           (folder() / "wrong.nc") + " " + checkpoint + " " + given);
    EXPECT_EQ(outcome.exit_code, wrong.exit_code) << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(wrong.says), std::string::npos) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(folder() / "wrong.nc"));
    EXPECT_FALSE(is_under_way(folder() / "wrong.nc"));
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, PredictWrongInput, ::testing::ValuesIn(kWrong));

/// The model with statistics that say its values ended so many deviations above their mean.
std::string checkpoint_with_ends(const std::string& trained, const TemporaryFolder& folder, double ends,
                                 Json* fields = nullptr) {
  const std::string file = folder / "ends.safetensors", checkpoint = folder / "ends";
  EXPECT_EQ(run(1, "export --checkpoint " + trained + " --output " + file).exit_code, 0);
  const std::string bytes = read(file);
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof size);
  Json header = Json::parse(bytes.substr(sizeof size, size));
  Json& text = header.at("__metadata__").at("jigsaw.statistics");
  Json statistics = Json::parse(text.get<std::string>());
  for (Json& field : statistics.at("fields")) {
    EXPECT_LT(field.at("least").get<double>(), field.at("mean").get<double>());
    EXPECT_GT(field.at("largest").get<double>(), field.at("mean").get<double>());
    field["least"] = field["largest"] =
        field.at("mean").get<double>() + ends * field.at("deviation").get<double>();
  }
  if (fields != nullptr) *fields = statistics.at("fields");
  text = statistics.dump();
  std::string changed = header.dump();
  changed.resize((changed.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = changed.size();
  folder.write("ends.safetensors", std::string(reinterpret_cast<const char*>(&length), sizeof length) +
                                       changed + bytes.substr(sizeof size + size));
  std::filesystem::remove_all(checkpoint);
  EXPECT_EQ(run(1, "import --input " + file + " --output " + checkpoint).exit_code, 0);
  return checkpoint;
}

std::string all_said(const Outcome& outcome) {
  std::string said;
  for (const std::string& line : outcome.said()) said += line + "\n";
  return said;
}

constexpr const char* kLeave = " leave what the model was trained on by far, first at step ";

/// Steps that are not written count, too.
TEST_F(Predict, SaysWhereStatesLeaveWhatWasTrainedOn) {
  const std::string checkpoint = checkpoint_with_ends(trained(), folder(), 100);
  const Outcome outcome =
      run(1, "predict --config " + (folder() / "config.json") + " --checkpoint " + checkpoint + " --output " +
                 (folder() / "far.nc") + " --start 2021-02-02 --steps 4 --every 4");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* variable : {"t2m", "u10"}) {
    const std::string sentence = "forecasts of " + std::string(variable) + kLeave +
                                 "1 (2021-02-02T06:00) of that from 2021-02-02T00:00: below ";
    const std::size_t at = all_said(outcome).find(sentence);
    ASSERT_NE(at, std::string::npos) << outcome.err;
    EXPECT_EQ(all_said(outcome).find(sentence, at + 1), std::string::npos) << "once\n" << outcome.err;
  }
  EXPECT_EQ(values("far.nc", "lead_time"), std::vector<double>{24});
  const Outcome scored = run(
      1, "evaluate --config " + (folder() / "config.json") + " --checkpoint " + checkpoint + " --leads 2");
  EXPECT_NE(all_said(scored).find("forecasts of t2m" + std::string(kLeave) + "1 ("), std::string::npos)
      << scored.err;
  const Outcome usual = predict(1, "usual.nc", "--start 2021-02-02 --steps 4");
  EXPECT_EQ(all_said(usual), "");
}

/// At the step that numbers of a whole forecast say.
TEST_F(Predict, MayEndWhereStatesLeaveWhatWasTrainedOn) {
  constexpr int kSteps = 40;
  Json fields;
  const std::string checkpoint = checkpoint_with_ends(trained(), folder(), 0, &fields);
  ASSERT_EQ(predict(1, "whole.nc", "--start 2021-02-02 --steps 40 --average never").exit_code, 0);
  std::vector<double> largest(kSteps);  // of each step, in deviations from the mean
  for (const char* variable : {"t2m", "u10"}) {
    const std::vector<double> states = values("whole.nc", variable);
    const double mean = fields.at(variable).at("mean"), deviation = fields.at(variable).at("deviation");
    for (std::size_t i = 0; i < states.size(); ++i) {
      double& here = largest[i / (states.size() / kSteps)];
      here = std::max(here, std::abs(states[i] - mean) / deviation);
    }
  }
  int step = 2;  // the first that lies further away than all before it
  double before = largest[0];
  while (step < kSteps && largest[static_cast<std::size_t>(step - 1)] < before + 1e-4)
    before = std::max(before, largest[static_cast<std::size_t>(step++ - 1)]);
  ASSERT_LT(step, kSteps);
  const double limit = (before + largest[static_cast<std::size_t>(step - 1)]) / 2;
  for (const int ranks : {1, 2}) {
    const Outcome ended =
        run(ranks, "predict --config " + (folder() / "config.json") + " --checkpoint " + checkpoint +
                       " --output " + (folder() / "ended.nc") + " --overwrite --start 2021-02-02 --steps 40" +
                       " --stop-outside " + Json(limit).dump());
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_NE(all_said(ended).find(kLeave + std::to_string(step) + " ("), std::string::npos) << ended.err;
    EXPECT_EQ(std::ssize(values("ended.nc", "lead_time")), step - 1);
    EXPECT_FALSE(std::filesystem::exists(folder() / "ended.nc.restart"));
    char comment[256] = {};
    const NetcdfReader file(folder() / "ended.nc");
    ASSERT_EQ(nc_get_att_text(file.id(), NC_GLOBAL, "comment", comment), NC_NOERR);
    EXPECT_NE(std::string(comment).find("--stop-outside"), std::string::npos) << comment;
  }
  const Outcome at_once =
      run(1, "predict --config " + (folder() / "config.json") + " --checkpoint " + checkpoint + " --output " +
                 (folder() / "none.nc") + " --start 2021-02-02 --steps 40 --stop-outside 0.01");
  EXPECT_EQ(at_once.exit_code, 0) << at_once.err;
  EXPECT_FALSE(std::filesystem::exists(folder() / "none.nc"));
}

/// What is killed leaves no file of the output's name, and nothing that the next one minds.
TEST_F(Predict, KilledInTheMiddleLeavesNothingUnderItsName) {
  const std::string output = folder() / "killed.nc";
  Running running(1, "predict --config " + (folder() / "config.json") + " --checkpoint " + trained() +
                         " --output " + output + " --steps 20000 --start 2021-02-02");
  ASSERT_TRUE(running.until([&] { return is_under_way(output); }));
  running.signal(SIGKILL);
  EXPECT_NE(running.collect().exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(output));
  EXPECT_EQ(predict(1, "killed.nc", "--start 2021-02-02").exit_code, 0);
  EXPECT_FALSE(is_under_way(output));
}

TEST_F(Predict, WhatIsDamagedIsOneSentence) {
  const std::string start = " --start 2021-02-02";
  const auto check = [&](const std::string& arguments, int code, const std::string& says) {
    const Outcome outcome = run(1, "predict --config " + (folder() / "config.json") + start + arguments);
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(says), std::string::npos) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(folder() / "out.nc"));
  };
  const std::string out = " --output " + (folder() / "out.nc"), of = " --checkpoint " + trained();
  check(of + " --output /dev/full", 2, "--output /dev/full is no regular file");
  check(of + " --output " + (folder() / "no/such/out.nc"), 2, "cannot be written");
  std::filesystem::copy(trained(), folder() / "damaged", std::filesystem::copy_options::recursive);
  const std::string checkpoint = folder() / "damaged/checkpoints/step_00000040";
  for (const char* file : {"rank_0000.h5", "manifest.json"}) {
    const std::string text = read(checkpoint + "/" + file);
    folder().write("damaged/checkpoints/step_00000040/" + std::string(file), text.substr(0, text.size() / 2));
    check(out + " --checkpoint " + checkpoint, 4, file);
    std::filesystem::remove(checkpoint + "/" + file);
    ASSERT_EQ(::mkfifo((checkpoint + "/" + file).c_str(), 0600), 0);
    check(out + " --checkpoint " + checkpoint, 4, file);
    folder().write("whole", text);
    std::filesystem::remove(checkpoint + "/" + file);
    std::filesystem::rename(folder() / "whole", checkpoint + "/" + file);
  }
  const std::string february = read(folder() / "data/sample_2021-02.nc");
  std::filesystem::create_directories(folder() / "cut");
  folder().write("cut/sample_2021-01.nc", read(folder() / "data/sample_2021-01.nc"));
  folder().write("cut/sample_2021-02.nc", february.substr(0, february.size() / 2));
  check(of + out + " --set 'data.files=[\"" + (folder() / "cut/*.nc") + "\"]'", 3, "sample_2021-02.nc");
}

TEST_F(Predict, DoesNotReplaceWhatIsThere) {
  folder().write("there.nc", "mine");
  const Outcome outcome = predict(2, "there.nc", "--start 2021-02-02");
  EXPECT_EQ(outcome.exit_code, 2);
  ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
  EXPECT_NE(outcome.errors()[0].find("--overwrite"), std::string::npos) << outcome.err;
  EXPECT_EQ(read(folder() / "there.nc"), "mine");
}

}  // namespace predict_test
}  // namespace jigsaw::e2e
