// Whole training runs on a simulated device, whose memory the host cannot read and whose work runs late:
// steps, clipping, averages, validations, checkpoints and going on from them give, bit for bit, what the same
// runs give on the host. With CUDA's kernels they give the same but for rounding, and go on bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>

#include "array/device_times.h"
#include "config/config.h"
#include "support/on_device.h"
#include "support/temporary_folder.h"
#include "support/test_ranks.h"
#include "train/forecast_file.h"
#include "train/trainer.h"

namespace jigsaw {
namespace trainer_on_device_test {

using testing::make_context;
using testing::Where;

constexpr int kSteps = 4, kSaved = 2;

/// Two fields, missing here and there, of five days every six hours on 8 × 12 points.
void write_fields(const std::string& path) {
  constexpr std::size_t kTimes = 20, kRows = 8, kColumns = 12;
  const testing::FileAxes axes = {testing::coordinates(kTimes, 0, 6), testing::coordinates(kRows, 60, -1),
                                  testing::coordinates(kColumns, 0, 1)};
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

/// As if they had been measured, for on a fake GPU that takes long.
constexpr const char* kMachine =
    R"(machine={"flops_per_second": 1e12, "memory_bytes_per_second": 1e11,
                "links": [{"bytes_per_second": 1e10, "latency_seconds": 1e-6}]})";

std::vector<Case> cases() {
  const Json mixer = {{"type", "weathermixer"}, {"patch", {2, 2}},   {"embed_dim", 8},    {"depth", 2},
                      {"dropout", 0.1},         {"positions", true}, {"final_norm", true}},
             vit = {{"type", "vit"}, {"patch", {2, 2}}, {"embed_dim", 8}, {"depth", 1}, {"heads", 2}},
             unet = {{"type", "unet"}, {"widths", {4, 6}}, {"norm_groups", 2}},
             sfno = {{"type", "sfno"}, {"embed_dim", 6}, {"depth", 2}, {"scale", 2}};
  return {
      {"mixer", 1, mixer, {"train.accumulate=2"}},
      {"mixer_on_domain", 2, mixer, {R"(mesh={"domain": [2, 1]})", "train.recompute=block"}},
      {"vit_on_tensor", 2, vit, {R"(mesh={"tensor": 2})", "train.precision=bf16"}},
      {"unet", 1, unet, {"train.rollout=2"}},
      {"unet_on_data", 2, unet, {R"(mesh={"data": 2})", "zero=parameters"}},
      {"members_on_data",
       2,
       mixer,
       {R"(mesh={"data": 2})", R"(ensemble={"members": 3, "local_noise": 1, "global_noise": 2})",
        "loss.type=crps", "train.batch_size=1", "train.rollout=2"}},
      {"sfno_on_domain", 2, sfno, {R"(mesh={"domain": [2, 1]})", "train.recompute=block"}},
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

/// What summary.json says of a rank.
Json summary_of_rank(const std::string& output, int rank) {
  const Json summary = Json::parse(testing::text_of(output + "/summary.json"));
  return summary.at("ranks").at(static_cast<std::size_t>(rank));
}

/// Trains in the run directory `output`; from a checkpoint if one is named.
/// @return  what it prints.
std::string train(const Case& one, Where where, const std::string& folder, const std::string& output,
                  const std::string& from = "never", const TraceOptions& trace = {}) {
  ::testing::internal::CaptureStdout();
  try {
    run_ranks(
        one.ranks, {}, [&](int) { return make_context(where); },
        [&](Communicator& world) {
          ASSERT_EQ(world.size(), one.ranks);
          Log log(world.rank() == 0);
          RunOptions options;
          options.config_folder = folder;
          options.resume = from;
          options.trace = trace;
          Trainer trainer(configuration_of(one, output), options, world, log);
          EXPECT_EQ(trainer.run(), ExitCode::kDone);
          if (where == Where::kHost) return;
          world.barrier();  // the summary stands
          EXPECT_EQ(summary_of_rank(output, world.rank()).at("peak_memory_bytes"),
                    world.context().arena().peak_bytes());
        });
  } catch (const std::exception& error) {
    ADD_FAILURE() << one.name << ": " << error.what() << "\n" << ::testing::internal::GetCapturedStdout();
    return "";
  }
  return ::testing::internal::GetCapturedStdout();
}

/// What metrics.jsonl says of steps after `step`, but for seconds.
std::vector<Json> metrics(const std::string& output, int step = 0) {
  std::vector<Json> lines;
  std::istringstream text(testing::text_of(output + "/metrics.jsonl"));
  for (std::string line; std::getline(text, line);) {
    Json json = Json::parse(line);
    for (const char* time : {"step_seconds", "data_wait_seconds", "communication_seconds", "device_seconds",
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

class TrainerOnDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
    write_fields(folder_.path() + "/fields.nc");
  }

  testing::TemporaryFolder folder_;
};

TEST_F(TrainerOnDevice, RunsEqualTheHostsBitForBit) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.name);
    const auto output = [&](const char* run) { return folder_.path() + "/" + one.name + run; };
    train(one, Where::kHost, folder_.path(), output("_host"));
    train(one, Where::kSimulated, folder_.path(), output("_device"));
    train(one, Where::kSimulated, folder_.path(), output("_resumed"),
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

/// Of each step, operations as the thread put them into the stream, and as the device ran them.
void expect_device_times(Where where, const std::string& folder) {
  const Case one = cases()[1];
  const std::string file = folder + "/trace.json";
  const std::string said =
      train(one, where, folder, folder + "/traced", "never", {.file = file, .profile = true, .steps = "2-3"});
  EXPECT_NE(said.find("profile of 2 steps on rank 0 of 2"), std::string::npos) << said;
  const Json trace = Json::parse(testing::text_of(file));
  std::map<std::pair<int, int>, std::string> lanes;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("name") == "thread_name")
      lanes[{event.at("pid"), event.at("tid")}] = event.at("args").at("name").get<std::string>();
  }
  struct Operations {
    std::map<std::string, int> calls;
    double begin = INFINITY, seconds = 0, flops = 0;
  };
  std::map<std::pair<int, std::string>, Operations> found;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.value("cat", "") != "operation") continue;
    Operations& operations = found[{event.at("pid"), lanes.at({event.at("pid"), event.at("tid")})}];
    ++operations.calls[event.at("name").get<std::string>()];
    operations.begin = std::min(operations.begin, event.at("ts").get<double>());
    EXPECT_GE(event.at("dur").get<double>(), 0) << event;
    operations.seconds += 1e-6 * event.at("dur").get<double>();
    operations.flops += event.contains("args") ? event.at("args").value("flops", 0.0) : 0;
  }
  EXPECT_EQ(found.size(), 4U);  // two lanes of each rank
  for (const int rank : {0, 1}) {
    const Operations &put = found[{rank, "training"}], &ran = found[{rank, kDeviceLane}];
    EXPECT_GT(put.calls.size(), 10U);
    EXPECT_EQ(ran.calls, put.calls);
    EXPECT_GT(ran.flops, 0);
    EXPECT_EQ(ran.flops, put.flops);
    EXPECT_GE(ran.begin, put.begin);  // nothing runs before it is put in
    EXPECT_GT(ran.seconds, 0);
  }
}

TEST_F(TrainerOnDevice, ATraceHasTheTimesOfTheDevice) {
  expect_device_times(Where::kSimulated, folder_.path());
}

TEST_F(TrainerOnDevice, ATraceOnCudaHasTheTimesOfTheDevice) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU here";
  expect_device_times(Where::kCuda, folder_.path());
}

/// Ranks that are threads share a GPU, and the transport goes by the host.
TEST_F(TrainerOnDevice, RunsOnCudaAreTheHostsButForRoundingAndGoOnBitForBit) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU here";
  const std::map<std::string, double> tolerances = {
      {"mixer", 1e-3}, {"vit_on_tensor", 3e-2}, {"unet_on_data", 1e-3}};
  std::size_t tried = 0;
  for (Case one : cases()) {
    if (!tolerances.contains(one.name)) continue;
    SCOPED_TRACE(one.name);
    ++tried;
    one.changes.emplace_back(kMachine);
    const double tolerance = tolerances.at(one.name);
    const auto output = [&](const char* run) { return folder_.path() + "/" + one.name + run; };
    train(one, Where::kHost, folder_.path(), output("_host"));
    train(one, Where::kCuda, folder_.path(), output("_cuda"));
    train(one, Where::kCuda, folder_.path(), output("_resumed"),
          output("_cuda") + "/checkpoints/step_00000002");
    if (HasFailure()) return;
    EXPECT_NE(testing::text_of(output("_cuda") + "/metrics.jsonl").find("\"peak_share\":"), std::string::npos)
        << "the key machine does nothing";
    EXPECT_EQ(testing::text_of(output("_host") + "/metrics.jsonl").find("\"device_seconds\":"),
              std::string::npos);
    EXPECT_NE(testing::text_of(output("_cuda") + "/metrics.jsonl").find("\"device_seconds\":"),
              std::string::npos);
    const std::vector<Json> expected = metrics(output("_host")), found = metrics(output("_cuda"));
    ASSERT_EQ(std::ssize(expected), kSteps + kSteps / kSaved);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      for (const char* key : {"loss", "grad_norm"}) {
        if (!expected[i].contains(key)) continue;  // validations have no gradient
        const double wanted = expected[i].at(key);
        EXPECT_NEAR(found[i].at(key), wanted, tolerance * std::abs(wanted)) << key << " of " << expected[i];
      }
    }
    EXPECT_EQ(metrics(output("_resumed"), kSaved), metrics(output("_cuda"), kSaved));
    EXPECT_EQ(std::ssize(arrays_of(output("_cuda"), kSteps)), one.ranks);
    EXPECT_TRUE(arrays_of(output("_resumed"), kSteps) == arrays_of(output("_cuda"), kSteps));
  }
  EXPECT_EQ(tried, tolerances.size());
}

}  // namespace trainer_on_device_test
}  // namespace jigsaw
