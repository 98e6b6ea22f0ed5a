// Whole training runs on a simulated device, whose memory the host cannot read and whose work runs late:
// steps, clipping, averages, validations, checkpoints and going on from them give, bit for bit, what the same
// runs give on the host.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "config/config.h"
#include "support/temporary_folder.h"
#include "support/test_ranks.h"
#include "train/forecast_file.h"
#include "train/trainer.h"

namespace jigsaw {
namespace {

constexpr int kSteps = 4, kSaved = 2;

/// Two fields, missing here and there, of five days every six hours on 8 × 12 points.
void write_fields(const std::string& path) {
  constexpr std::size_t kTimes = 20, kRows = 8, kColumns = 12;
  testing::FileAxes axes;
  for (std::size_t t = 0; t < kTimes; ++t) axes.hours.push_back(6.0 * static_cast<double>(t));
  for (std::size_t row = 0; row < kRows; ++row) axes.latitudes.push_back(60.0 - static_cast<double>(row));
  for (std::size_t column = 0; column < kColumns; ++column)
    axes.longitudes.push_back(static_cast<double>(column));
  std::vector<double> warm, windy;
  for (std::size_t i = 0; i < kTimes * kRows * kColumns; ++i) {
    warm.push_back(280 + 9 * std::sin(0.37 * static_cast<double>(i)));
    windy.push_back(i % 61 == 0 ? NAN : 4 * std::cos(0.21 * static_cast<double>(i)));
  }
  testing::write_forecast_file(path, axes, {{"t2m", warm}, {"u10", windy}});
}

/// A model on a mesh, and what else of the configuration differs from case to case.
struct Case {
  const char* name;
  int ranks;
  Json model;
  std::vector<std::string> changes;
};

std::vector<Case> cases() {
  const Json mixer = {{"type", "weathermixer"}, {"patch", {2, 2}},   {"embed_dim", 8},    {"depth", 2},
                      {"dropout", 0.1},         {"positions", true}, {"final_norm", true}},
             vit = {{"type", "vit"}, {"patch", {2, 2}}, {"embed_dim", 8}, {"depth", 1}, {"heads", 2}},
             unet = {{"type", "unet"}, {"widths", {4, 6}}, {"norm_groups", 2}};
  return {
      {"mixer", 1, mixer, {"train.accumulate=2"}},
      {"mixer_on_domain", 2, mixer, {R"(mesh={"domain": [2, 1]})", "train.recompute=block"}},
      {"vit_on_tensor", 2, vit, {R"(mesh={"tensor": 2})", "train.precision=bf16"}},
      {"unet", 1, unet, {"train.rollout=2"}},
      {"unet_on_data", 2, unet, {R"(mesh={"data": 2})", "zero=parameters"}},
      {"unet_on_domain", 2, unet, {R"(mesh={"domain": [1, 2]})", "optimizer.type=sgd"}},
  };
}

Configuration configuration_of(const Case& one, const std::string& output) {
  Json json = {{"data",
                {{"files", {"fields.nc"}},
                 {"variables", {"t2m", "u10"}},
                 {"forcings", {"latitude", "time_of_day"}},
                 {"predict", "increment"},
                 {"train", {"2019-12-30", "2020-01-01"}},
                 {"valid", {"2020-01-02", "2020-01-03"}}}},
               {"model", one.model},
               // The gradients of all these models are longer: each step is clipped.
               {"optimizer", {{"learning_rate", 1e-2}, {"clip_norm", 0.01}, {"ema_decay", 0.9}}},
               {"schedule", {{"type", "cosine"}, {"warmup_steps", 1}}},
               {"train", {{"steps", kSteps}, {"batch_size", 4}}},
               {"validation", {{"every", kSaved}}},
               {"checkpoint", {{"every", kSaved}, {"keep", 2}, {"best", "t2m.rmse"}}},
               {"output", output}};
  for (const std::string& change : one.changes) apply_override(json, change);
  return parse<Configuration>(json);
}

enum class Where { kHost, kDevice };

/// Trains in the run directory `output`; from a checkpoint if one is named.
void train(const Case& one, Where where, const std::string& folder, const std::string& output,
           const std::string& from = "never") {
  const auto make_context = [&](int) {
    return where == Where::kDevice ? testing::SimulatedDevice::make_context(Backend::kCpu, 1)
                                   : Context::make_host(Backend::kCpu, 1);
  };
  ::testing::internal::CaptureStdout();
  try {
    run_ranks(one.ranks, {}, make_context, [&](Communicator& world) {
      ASSERT_EQ(world.size(), one.ranks);
      Log log(world.rank() == 0);
      RunOptions options;
      options.config_folder = folder;
      options.resume = from;
      Trainer trainer(configuration_of(one, output), options, world, log);
      EXPECT_EQ(trainer.run(), ExitCode::kDone);
    });
  } catch (const std::exception& error) {
    ADD_FAILURE() << one.name << ": " << error.what() << "\n" << ::testing::internal::GetCapturedStdout();
    return;
  }
  ::testing::internal::GetCapturedStdout();
}

/// What metrics.jsonl says of steps after `step`, but for seconds.
std::vector<Json> metrics(const std::string& output, int step = 0) {
  std::vector<Json> lines;
  std::istringstream text(testing::text_of(output + "/metrics.jsonl"));
  for (std::string line; std::getline(text, line);) {
    Json json = Json::parse(line);
    for (const char* time : {"step_seconds", "data_wait_seconds", "communication_seconds",
                             "validation_seconds", "samples_per_second", "peak_share", "time"})
      json.erase(time);
    if (json.at("step") > step) lines.push_back(json);
  }
  return lines;
}

/// The pieces of all arrays of a checkpoint, with their digests, by rank.
std::vector<Json> arrays_of(const std::string& output, int step) {
  char name[32];
  std::snprintf(name, sizeof name, "step_%08d", step);
  const Json manifest = Json::parse(testing::text_of(output + "/checkpoints/" + name + "/manifest.json"));
  std::vector<Json> shards;
  for (const Json& shard : manifest.at("shards"))
    shards.push_back({{"tensors", manifest.at("tensors")}, {"pieces", shard.at("pieces")}});
  return shards;
}

TEST(TrainerOnDevice, RunsEqualTheHostsBitForBit) {
  const testing::TemporaryFolder folder;
  ::setenv("XDG_CACHE_HOME", folder.path().c_str(), 1);
  write_fields(folder.path() + "/fields.nc");
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.name);
    const auto output = [&](const char* run) { return folder.path() + "/" + one.name + run; };
    train(one, Where::kHost, folder.path(), output("_host"));
    train(one, Where::kDevice, folder.path(), output("_device"));
    train(one, Where::kDevice, folder.path(), output("_resumed"),
          output("_host") + "/checkpoints/step_00000002");
    if (HasFailure()) return;
    const std::vector<Json> expected = metrics(output("_host"));
    ASSERT_EQ(std::ssize(expected), kSteps + kSteps / kSaved);
    for (const Json& line : expected) {
      ASSERT_TRUE(line.at("loss").is_number()) << line;
      if (line.at("kind") == "train") {
        EXPECT_GT(line.at("grad_norm").get<double>(), 0.01);
      }
    }
    EXPECT_EQ(metrics(output("_device")), expected);
    // It makes up for the validation of step 2, which stands in the other run's folder.
    EXPECT_EQ(metrics(output("_resumed"), kSaved), metrics(output("_host"), kSaved));
    for (const int step : {kSaved, kSteps}) {
      const std::vector<Json> arrays = arrays_of(output("_host"), step);
      EXPECT_EQ(std::ssize(arrays), one.ranks);
      EXPECT_TRUE(arrays_of(output("_device"), step) == arrays) << "the arrays after step " << step;
    }
    EXPECT_TRUE(arrays_of(output("_resumed"), kSteps) == arrays_of(output("_host"), kSteps));
  }
}

}  // namespace
}  // namespace jigsaw
