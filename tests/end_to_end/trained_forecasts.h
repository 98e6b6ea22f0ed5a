#pragma once
// A small model that was trained on sample data, for tests of what is done with models.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <numbers>

#include "end_to_end/command.h"
#include "support/netcdf_reader.h"

namespace jigsaw::e2e {

using testing::NetcdfReader;

struct MeshCase {
  const char* json;
  int ranks;
};

/// The states of one variable of sample data by hour since 1970.
struct Truth {
  std::map<std::int64_t, std::vector<double>> at;

  Truth(const std::string& folder, const std::string& variable) {
    constexpr std::int64_t k1970 = 613608;  // hours from 1900-01-01
    for (const char* name : {"sample_2021-01.nc", "sample_2021-02.nc"}) {
      const NetcdfReader file(folder + "/" + name);
      const std::vector<double> times = file.values("time"), values = file.unpacked(variable);
      const auto points = static_cast<std::ptrdiff_t>(values.size() / times.size());
      for (std::size_t t = 0; t < times.size(); ++t) {
        const auto first = values.begin() + static_cast<std::ptrdiff_t>(t) * points;
        at[std::llround(times[t]) - k1970] = {first, first + points};
      }
    }
  }
};

/// The configuration of a WeatherMixer of one block, with patches of 4 × 4 points.
inline Json small_mixer(int embed_dim) {
  return {{"type", "weathermixer"}, {"patch", {4, 4}},    {"embed_dim", embed_dim}, {"depth", 1},
          {"positions", true},      {"final_norm", true}, {"output_map", false}};
}

/// One with patches of 5 × 7 points, which do not divide the grid of sample data, and dropout.
inline Json mixer_with_dropout(int embed_dim) {
  Json model = small_mixer(embed_dim);
  model["patch"] = {5, 7};
  model["dropout"] = 0.1;
  return model;
}

/// Whether some process has a temporary file that is to become this one.
inline bool is_under_way(const std::string& output) {
  const std::filesystem::path path = output;
  for (const auto& entry : std::filesystem::directory_iterator(path.parent_path())) {
    if (entry.path().filename().string().starts_with(path.filename().string() + ".tmp-")) return true;
  }
  return false;
}

/// A model trained for a few steps on sample data, and what it says in validation.
class TrainedForecasts : public ::testing::Test {
 protected:
  static constexpr int kRows = 37, kColumns = 72;

  static void SetUpTestSuite() {
    shared_ = std::make_unique<Shared>();
    ASSERT_EQ(run(1, "sample-data --output " + data()).exit_code, 0);
    write_config("config.json", config());
    const Outcome outcome = run(1, "--config " + (folder() / "config.json") + " --set output=" + trained());
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  static void TearDownTestSuite() { shared_.reset(); }

  static const TemporaryFolder& folder() { return shared_->folder; }
  static std::string data() { return folder() / "data"; }
  static std::string trained() { return folder() / "run"; }
  static void write_config(const std::string& name, const Json& json) { folder().write(name, json.dump()); }

  static Json config() {
    return {{"data",
             {{"files", {data() + "/*.nc"}},
              {"variables", {"t2m", "u10"}},
              {"forcings", {"latitude", "longitude", "time_of_day"}},
              {"input_hours", {-6, 0}},
              {"lead_hours", 6},
              {"train", {"2021-01-02", "2021-01-12"}},
              {"valid", {"2021-02-01", "2021-02-03"}}}},
            {"model", mixer_with_dropout(16)},
            {"optimizer", {{"learning_rate", 2e-3}, {"ema_decay", 0.9}}},
            {"schedule", {{"warmup_steps", 5}}},
            {"train", {{"steps", 40}, {"batch_size", 4}, {"precision", "fp64"}}},
            {"validation", {{"every", 40}, {"rollout", 3}, {"climatology", true}}},
            {"checkpoint", {{"every", 40}}}};
  }

  static Outcome predict(int ranks, const std::string& output, const std::string& more) {
    return run(ranks, "predict --config " + (folder() / "config.json") + " --checkpoint " + trained() +
                          " --output " + (folder() / output) + " " + more);
  }
  /// A checkpoint of nothing but NaN, by way of the format of others.
  static std::string not_finite_checkpoint() {
    const std::string file = folder() / "nan.safetensors", checkpoint = folder() / "nan";
    EXPECT_EQ(run(1, "export --checkpoint " + trained() + " --output " + file).exit_code, 0);
    std::string bytes = read(file);
    std::uint64_t header = 0;
    std::memcpy(&header, bytes.data(), sizeof header);
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(sizeof header + header), bytes.end(), '\xff');
    folder().write("nan.safetensors", bytes);
    EXPECT_EQ(run(1, "import --input " + file + " --output " + checkpoint).exit_code, 0);
    return checkpoint;
  }
  static std::vector<double> values(const std::string& output, const std::string& variable) {
    return NetcdfReader(folder() / output).values(variable);
  }

 private:
  struct Shared {
    TemporaryFolder folder;
  };
  inline static std::unique_ptr<Shared> shared_;
};

/// Weights of rows at 5°: sin of the upper less sin of the lower limit, mean 1.
inline std::vector<double> row_weights(const std::vector<double>& latitudes) {
  std::vector<double> weights;
  double sum = 0;
  for (const double latitude : latitudes) {
    const double upper = std::min(90.0, latitude + 2.5), lower = std::max(-90.0, latitude - 2.5);
    weights.push_back(std::sin(upper * std::numbers::pi / 180) - std::sin(lower * std::numbers::pi / 180));
    sum += weights.back() / static_cast<double>(latitudes.size());
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

}  // namespace jigsaw::e2e
