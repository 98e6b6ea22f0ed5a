// Validations and warnings on a grid whose points have latitudes and longitudes of their own, and areas that
// data.cell_area names: beside float64 loops, on one rank and on meshes.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <mutex>

#include "base/error.h"
#include "base/text.h"
#include "comm/self/self.h"
#include "comm/thread/run_ranks.h"
#include "config/config.h"
#include "io/netcdf_writer.h"
#include "samples/dataset.h"
#include "support/temporary_folder.h"
#include "train/data_report.h"
#include "train/validation.h"

namespace jigsaw {
namespace cell_area_test {

using testing::NetcdfWriter;

constexpr std::size_t kRows = 12, kColumns = 10, kPoints = kRows * kColumns, kTimes = 16;

/// Of land, where t2m is missing, too, none; elsewhere of very unlike cells.
bool is_land(std::size_t point) {
  return point % 17 == 4;
}
double area(std::size_t point) {
  if (is_land(point)) return NAN;
  return 1e8 * (1 + static_cast<double>(point / kColumns)) * (1.2 + std::cos(static_cast<double>(point)));
}

double state(std::size_t time, std::size_t point) {
  if (is_land(point)) return NAN;
  const auto t = static_cast<double>(time), p = static_cast<double>(point);
  return 10 + std::sin(0.9 * t + p) * (1 + 0.3 * std::floor(p / static_cast<double>(kColumns)));
}

class CellArea : public ::testing::Test {
 protected:
  CellArea() {
    NetcdfWriter file(folder_.path() + "/ocean.nc");
    const int time = file.dimension("time", kTimes), y = file.dimension("y", kRows),
              x = file.dimension("x", kColumns);
    const int times = file.variable("time", NC_DOUBLE, {time}),
              north = file.variable("nav_lat", NC_DOUBLE, {y, x}),
              east = file.variable("nav_lon", NC_DOUBLE, {y, x}),
              tos = file.variable("tos", NC_DOUBLE, {time, y, x}),
              cells = file.variable("areacello", NC_DOUBLE, {y, x});
    file.text(times, "units", "hours since 2021-01-01");
    file.text(north, "units", "degrees_north");
    file.text(east, "units", "degrees_east");
    file.end();
    std::vector<double> hours, latitudes, longitudes, states, areas;
    for (std::size_t t = 0; t < kTimes; ++t) {
      hours.push_back(6 * static_cast<double>(t));
      for (std::size_t point = 0; point < kPoints; ++point) states.push_back(state(t, point));
    }
    for (std::size_t point = 0; point < kPoints; ++point) {
      const auto row = static_cast<double>(point / kColumns), column = static_cast<double>(point % kColumns);
      latitudes.push_back(40 + row + 0.05 * column);
      longitudes.push_back(5 + column - 0.04 * row);
      areas.push_back(area(point));
    }
    file.put(times, hours);
    file.put(north, latitudes);
    file.put(east, longitudes);
    file.put(tos, states);
    file.put(cells, areas);
  }

  /// Of a U-Net whose untrained forecast is persistence. Days 1 and 2 train, 3 and 4 validate.
  Json config(const std::string& cell_area) const {
    return {{"data",
             {{"files", {folder_.path() + "/ocean.nc"}},
              {"variables", {"tos"}},
              {"lead_hours", 6},
              {"cell_area", cell_area},
              {"train", {"2021-01-01", "2021-01-02"}},
              {"valid", {"2021-01-03", "2021-01-04"}}}},
            {"model",
             {{"type", "unet"}, {"base_width", 4}, {"levels", 1}, {"norm_groups", 2}, {"zero_head", true}}},
            {"train", {{"batch_size", 2}, {"precision", "fp64"}}}};
  }
  std::vector<std::string> warnings_of(const Json& json) const {
    const auto configuration = parse<Configuration>(json);
    Context context = Context::make_host(Backend::kReference, 1);
    const std::unique_ptr<Communicator> self = make_self_communicator(context);
    OpenedRun run(configuration, folder_.path(), *self);
    return report_data(run.configuration(), run.data()).warnings;
  }

  testing::TemporaryFolder folder_;
};

struct Found {
  double loss = 0, rmse = 0, bias = 0, persistence = 0;
};

Found validate(Communicator& world, const Json& json, const std::string& folder) {
  OpenedRun run(parse<Configuration>(json), folder, world);
  const auto result = Validation(run).run([] { return false; });
  const Json& scores = result->metrics(0).at("tos");
  return {result->loss, scores.at("rmse").get<double>(), scores.at("bias").get<double>(),
          scores.at("persistence_rmse").get<double>()};
}

/// The windows whose time 0 and target lie in days 3 and 4.
constexpr std::size_t kFirst = 8, kEnd = 15;

/// Of persistence, by loops; the loss in deviations of the increments.
Found by_loops(const std::function<double(std::size_t)>& weight, double deviation) {
  double squares = 0, errors = 0;
  for (std::size_t t = kFirst; t < kEnd; ++t) {
    double sum = 0, signed_sum = 0, weights = 0;
    for (std::size_t point = 0; point < kPoints; ++point) {
      if (is_land(point)) continue;
      const double error = state(t, point) - state(t + 1, point);
      sum += weight(point) * error * error;
      signed_sum += weight(point) * error;
      weights += weight(point);
    }
    squares += sum / weights;
    errors += signed_sum / weights;
  }
  const double count = static_cast<double>(kEnd - kFirst), rmse = std::sqrt(squares / count);
  return {squares / count / (deviation * deviation), rmse, errors / count, rmse};
}

TEST_F(CellArea, WeighsLossAndScoresOnEveryMesh) {
  for (const std::string cell_area : {"areacello", "auto", ""}) {
    SCOPED_TRACE(cell_area);
    Found one;
    double deviation = 0;
    run_ranks(1, [&](Communicator& world) {
      one = validate(world, config(cell_area), folder_.path());
      OpenedRun run(parse<Configuration>(config(cell_area)), folder_.path(), world);
      deviation = run.data().statistics().fields.at("tos").increment_deviation;
    });
    if (cell_area != "auto") {
      const Found wanted =
          by_loops([&](std::size_t point) { return cell_area.empty() ? 1.0 : area(point); }, deviation);
      EXPECT_NEAR(one.loss / wanted.loss, 1, 1e-12);
      EXPECT_NEAR(one.rmse / wanted.rmse, 1, 1e-12);
      EXPECT_NEAR(one.bias, wanted.bias, 1e-12);
      EXPECT_NEAR(one.persistence / wanted.persistence, 1, 1e-12);
    }
    for (const Json& mesh : {Json{{"domain", {2, 1}}},
                             {{"domain", {1, 2}}},
                             {{"data", 2}},
                             {{"domain", {2, 2}}},
                             {{"domain", {3, 1}}}}) {
      SCOPED_TRACE(mesh.dump());
      Json json = config(cell_area);
      json["mesh"] = mesh;
      const int ranks =
          mesh.contains("data") ? 2 : mesh["domain"][0].get<int>() * mesh["domain"][1].get<int>();
      std::mutex mutex;
      run_ranks(ranks, [&](Communicator& world) {
        const Found many = validate(world, json, folder_.path());
        const std::lock_guard lock(mutex);
        EXPECT_NEAR(many.loss / one.loss, 1, 1e-12);
        EXPECT_NEAR(many.rmse / one.rmse, 1, 1e-12);
        EXPECT_NEAR(many.bias, one.bias, 1e-12);
        EXPECT_NEAR(many.persistence / one.persistence, 1, 1e-12);
      });
    }
  }
}

TEST_F(CellArea, WeighsScoresWhereTheLossCountsAllCellsAlike) {
  Json json = config("areacello");
  json["loss"] = {{"type", "mse"}, {"area_weighted", false}};
  json["mesh"]["domain"] = {2, 1};
  run_ranks(2, [&](Communicator& world) {
    OpenedRun run(parse<Configuration>(json), folder_.path(), world);
    const double deviation = run.data().statistics().fields.at("tos").increment_deviation;
    const Found alike = by_loops([](std::size_t) { return 1.0; }, deviation),
                weighted = by_loops(area, deviation);
    const auto result = Validation(run).run([] { return false; });
    EXPECT_NEAR(result->loss / alike.loss, 1, 1e-12);
    EXPECT_NEAR(result->metrics(0).at("tos").at("rmse").get<double>() / weighted.rmse, 1, 1e-12);
  });
}

TEST_F(CellArea, IsAskedForWhereAreasAreToCount) {
  const std::string begin = "loss.area_weighted is true, but all cells of the data count alike";
  const auto asks = [&](const Json& json) {
    std::size_t found = 0;
    for (const std::string& warning : warnings_of(json)) found += warning.starts_with(begin) ? 1 : 0;
    return found;
  };
  EXPECT_EQ(asks(config("")), 1U);
  EXPECT_EQ(asks(config("auto")), 0U);
  EXPECT_EQ(asks(config("areacello")), 0U);
  Json alike = config("");
  alike["loss"] = {{"type", "l1"}, {"area_weighted", false}};
  EXPECT_EQ(asks(alike), 0U);
}

TEST_F(CellArea, SphericalHarmonicsAreRefusedOnSuchAGrid) {
  Json json = config("auto");
  json["model"] = {{"type", "sfno"}, {"latitudes", "pole_cell"}, {"embed_dim", 4}, {"depth", 1}};
  try {
    warnings_of(json);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("model works with spherical harmonics"), 0U) << error.what();
  }
}

TEST_F(CellArea, WhatGoesRoundIsWarnedOf) {
  Json json = config("auto");
  json["model"]["padding_mode"] = {"pole_cell", "circular"};
  const std::vector<std::string> warnings = warnings_of(json);
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_NE(warnings[0].find("so that rows do not end at poles"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[1].find("the last column of the data does not lie beside"), std::string::npos)
      << warnings[1];
}

}  // namespace cell_area_test
}  // namespace jigsaw
