// What a step makes of a batch that cannot be learned from.
#include "train/training_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "array/transfer.h"
#include "config/config.h"
#include "support/parameters.h"
#include "support/source_dir.h"
#include "support/temporary_folder.h"
#include "support/test_ranks.h"
#include "train/forecast_file.h"
#include "train/nan_search.h"
#include "train/training_batches.h"

namespace jigsaw {
namespace training_step_test {

constexpr std::size_t kTimes = 8, kRows = 4, kColumns = 6;

/// A field "x" of order 1 on a region; `missing` says where, by time, row and column.
void write_field(const std::string& folder, const std::function<bool(std::size_t, std::size_t)>& missing) {
  std::vector<double> hours, values;
  for (std::size_t t = 0; t < kTimes; ++t) {
    hours.push_back(6.0 * static_cast<double>(t));
    for (std::size_t i = 0; i < kRows * kColumns; ++i)
      values.push_back(missing(t, i) ? NAN : 2 + std::sin(0.7 * static_cast<double>(t * 29 + i)));
  }
  testing::write_forecast_file(folder + "/fields.nc", {hours, {50, 49, 48, 47}, {0, 1, 2, 3, 4, 5}},
                               {{"x", values}});
}

Configuration configuration_with(const std::vector<std::string>& changes) {
  Json json = {{"data",
                {{"files", {"fields.nc"}},
                 {"variables", {"x"}},
                 {"predict", "state"},
                 {"train", {"2019-12-30", "2019-12-31"}}}},
               {"model", {{"type", "sequential"}, {"layers", {{{"type", "linear"}, {"features", 1}}}}}},
               {"schedule", {{"type", "constant"}}},
               {"train", {{"steps", 1}, {"batch_size", kTimes - 1}}}};
  for (const std::string& change : changes) apply_override(json, change);
  return parse<Configuration>(json);
}

/// The first step, and the model's parameters and steps done behind it.
struct Made {
  StepResult result;
  testing::Tensors parameters;
  std::int64_t steps = 0;
};
const testing::Tensors kLinear = {{"layers.0.weight", {0.5}}, {"layers.0.bias", {0.25}}};
Made first_step(Communicator& world, const Configuration& config, const std::string& folder,
                const testing::Tensors& start = kLinear) {
  OpenedRun run(config, folder, world);
  PlacedModel& placed = run.placed();
  const std::vector<ParameterBlock*> blocks = placed.model().parameters();
  const Context& context = placed.rank().context;
  for (ParameterBlock* block : blocks) testing::load(context, *block, start);
  Optimizer optimizer(placed.rank(), blocks, config.optimizer);
  TrainingBatches batches(config, run.objective(), placed);
  Prefetch parts([&](std::int64_t part) { return batches.read(part, context.host()); }, 0,
                 config.train.accumulate);
  Made made;
  made.result = TrainingStep(run, optimizer, 1).run(1, parts);
  made.steps = optimizer.steps_done();
  for (ParameterBlock* block : blocks) {
    for (auto& group : block->groups())
      testing::collect(group->owned_segments(), group->owned(), made.parameters);
  }
  return made;
}

/// One rank with the kernels that train in float32.
Made first_step(const Configuration& config, const std::string& folder,
                const testing::Tensors& start = kLinear) {
  Made made;
  run_ranks(
      1, {}, [](int) { return testing::test_context(Backend::kCpu, 1); },
      [&](Communicator& world) { made = first_step(world, config, folder, start); });
  return made;
}

TEST(TrainingStep, CountsTargetsWithoutAValidPoint) {
  const testing::TemporaryFolder folder;
  // Wholly missing at time 3, and at time 5 but for one point.
  write_field(folder.path(), [](std::size_t t, std::size_t i) { return t == 3 || (t == 5 && i > 0); });
  const Made one = first_step(configuration_with({}), folder.path());
  EXPECT_EQ(one.result.empty_targets, 1);
  EXPECT_FALSE(one.result.empty);
  EXPECT_TRUE(one.result.finite);
  // The first lead of one window, the second of another.
  const Made two = first_step(
      configuration_with({"train.rollout=2", "train.batch_size=6", "train.accumulate=3"}), folder.path());
  EXPECT_EQ(two.result.empty_targets, 2);
  for (const char* mesh : {"mesh={\"data\": 2}", "mesh={\"domain\": [2, 1]}"}) {
    const Configuration config = configuration_with({mesh});
    testing::run_test_ranks(2, [&](Communicator& world) {
      EXPECT_EQ(first_step(world, config, folder.path()).result.empty_targets, 1) << mesh;
    });
  }
}

TEST(TrainingStep, IsSkippedWhenTheGradientIsNotFiniteThoughTheLossIs) {
  const testing::TemporaryFolder folder;
  write_field(folder.path(), [](std::size_t, std::size_t) { return false; });
  // Normalised, the field is of order 1e25: squares are finite in the float64 of the loss, and products with
  // the input are not in the float32 of the gradient.
  testing::put_text(folder.path() + "/tiny.json",
                    R"({"lead_hours": 6, "fields": {"x": {"units": "", "mean": 0, "deviation": 1e-25,
                        "increment_deviation": 1e-25}}})");
  const Made made = first_step(configuration_with({"data.normalization=tiny.json"}), folder.path());
  EXPECT_TRUE(std::isfinite(made.result.loss)) << made.result.loss;
  EXPECT_FALSE(std::isfinite(made.result.norm)) << made.result.norm;
  EXPECT_FALSE(made.result.finite);
  EXPECT_EQ(made.steps, 0);
  EXPECT_EQ(made.parameters.at("layers.0.weight"), std::vector<double>{0.5});
  EXPECT_EQ(made.parameters.at("layers.0.bias"), std::vector<double>{0.25});

  const Made good = first_step(configuration_with({}), folder.path());
  EXPECT_TRUE(good.result.finite);
  EXPECT_EQ(good.steps, 1);
  EXPECT_NE(good.parameters.at("layers.0.weight"), std::vector<double>{0.5});
}

/// Running statistics go their momentum of the mean way of the passes that gradients flow through, however
/// many parts and leads a step has. The model predicts the same number everywhere, which is the input of a
/// second lead.
TEST(TrainingStep, RunningStatisticsFollowTheMeanOfItsPasses) {
  const testing::TemporaryFolder folder;
  write_field(folder.path(), [](std::size_t, std::size_t) { return false; });
  testing::put_text(folder.path() + "/unit.json",
                    R"({"lead_hours": 6, "fields": {"x": {"units": "", "mean": 2, "deviation": 1,
                        "increment_deviation": 1}}})");
  constexpr double kMomentum = 0.25, kPrediction = 0.75;
  const testing::Tensors start = {{"layers.0.weight", {1}},       {"layers.0.bias", {0}},
                                  {"layers.0.running_mean", {0}}, {"layers.0.running_var", {1}},
                                  {"layers.1.weight", {0}},       {"layers.1.bias", {kPrediction}}};
  const auto mean_after = [&](std::vector<std::string> changes) {
    changes.insert(changes.end(),
                   {"data.normalization=unit.json",
                    R"(model={"type": "sequential", "layers": [{"type": "batch_norm", "momentum": 0.25},
                                                               {"type": "linear", "features": 1}]})"});
    const Made made = first_step(configuration_with(changes), folder.path(), start);
    EXPECT_TRUE(made.result.finite);
    return made.parameters.at("layers.0.running_mean").at(0);
  };
  // Of the fields as they are written, less the mean of their statistics.
  const auto mean_of = [](std::size_t times) {
    double sum = 0;
    for (std::size_t t = 0; t < times; ++t)
      for (std::size_t i = 0; i < kRows * kColumns; ++i)
        sum += std::sin(0.7 * static_cast<double>(t * 29 + i));
    return sum / static_cast<double>(times * kRows * kColumns);
  };
  const double one = kMomentum * mean_of(kTimes - 1);
  EXPECT_NEAR(mean_after({}), one, 1e-6);
  EXPECT_NEAR(mean_after({"train.accumulate=7"}), one, 1e-6);
  const double both = kMomentum * (mean_of(kTimes - 2) + kPrediction) / 2;
  EXPECT_NEAR(mean_after({"train.rollout=2", "train.batch_size=6"}), both, 1e-6);
  EXPECT_NEAR(mean_after({"train.rollout=2", "train.batch_size=6", "train.accumulate=3"}), both, 1e-6);
  EXPECT_NEAR(mean_after({"train.rollout=2", "train.batch_size=6", "train.accumulate=3",
                          "train.rollout_gradient=last"}),
              kMomentum * kPrediction, 1e-6);
}

/// Steps on a device, whose host is to wait once in each: for all that it decides by.
void expect_one_wait_a_step(const Configuration& config, const std::string& folder) {
  const auto on_device = [](int) { return testing::SimulatedDevice::make_context(Backend::kCpu, 1); };
  run_ranks(1, {}, on_device, [&](Communicator& world) {
    OpenedRun run(config, folder, world);
    PlacedModel& placed = run.placed();
    Context& context = placed.rank().context;
    const auto& device = static_cast<const testing::SimulatedDevice&>(*context.runtime());
    Optimizer optimizer(placed.rank(), placed.model().parameters(), config.optimizer);
    TrainingBatches batches(config, run.objective(), placed);
    TrainingStep step(run, optimizer, 2);
    for (std::int64_t s = 0; s < 2; ++s) {
      std::vector<Batch> parts;
      for (std::int64_t part = 0; part < config.train.accumulate; ++part)
        parts.push_back(batches.read(s * config.train.accumulate + part, context.host()));
      const std::int64_t waits = device.host_waits(), uploads = device.uploads();
      auto next = parts.begin();
      EXPECT_TRUE(step.run(s + 1, [&] { return *next++; }).finite);
      EXPECT_EQ(device.host_waits() - waits, 1) << config.loss.type() << ", step " << s + 1;
      // What does not change from step to step is there by now.
      const std::int64_t in_step = device.uploads() - uploads;
      for (const Batch& part : parts) upload(context, part);
      const std::int64_t of_batches = device.uploads() - uploads - in_step;
      if (s > 0) {
        EXPECT_EQ(in_step, of_batches + 1) << config.loss.type() << ": batches and the learning rate";
      }
    }
  });
}

TEST(TrainingStep, LetsTheHostWaitOnce) {
  const testing::TemporaryFolder folder;
  write_field(folder.path(), [](std::size_t t, std::size_t i) { return t == 3 && i > 4; });
  const std::vector<std::string> rollout = {"train.rollout=2", "train.rollout_weights=[1, 0.5]",
                                            "train.batch_size=6", "train.accumulate=2"};
  for (const char* loss :
       {R"(loss={"type": "mse"})",
        R"(loss={"type": "sum", "terms": [{"type": "l1"}, {"type": "huber", "weight": 2}]})"}) {
    std::vector<std::string> changes = rollout;
    changes.emplace_back(loss);
    expect_one_wait_a_step(configuration_with(changes), folder.path());
  }
  // Classes have no leads.
  const Json data = {{"task", "map"},
                     {"files", {testing::source_dir() + "/tests/io/fixtures/images/volume.h5"}},
                     {"dims", {"depth", "height", "width"}},
                     {"variables", {"scan/density"}},
                     {"targets", {"labels"}},
                     {"classes", 3},
                     {"ignore_index", 255},
                     {"crop", {2, 3, 2}},
                     {"train", {{"depth", {0, 7}}}}};
  const Json model = {{"type", "sequential"}, {"layers", {{{"type", "linear"}, {"features", 3}}}}};
  for (const char* loss : {"cross_entropy", "dice", "dice_cross_entropy"}) {
    expect_one_wait_a_step(
        parse<Configuration>(Json{{"data", data},
                                  {"model", model},
                                  {"loss", {{"type", loss}}},
                                  {"schedule", {{"type", "constant"}}},
                                  {"train", {{"steps", 2}, {"batch_size", 8}, {"accumulate", 2}}}}),
        folder.path());
  }
}

/// What --find-nan says of steps, with this weight; `change` may change the batch of a step.
std::string said_of(Communicator& world, const Configuration& config, const std::string& folder,
                    double weight, const std::function<void(std::int64_t, Batch&)>& change = nullptr) {
  OpenedRun run(config, folder, world);
  PlacedModel& placed = run.placed();
  const Context& context = placed.rank().context;
  for (ParameterBlock* block : placed.model().parameters())
    testing::load(context, *block, {{"layers.0.weight", {weight}}, {"layers.0.bias", {0.25}}});
  Optimizer optimizer(placed.rank(), placed.model().parameters(), config.optimizer);
  TrainingBatches batches(config, run.objective(), placed);
  constexpr std::int64_t kSteps = 7;
  Prefetch parts(
      [&](std::int64_t part) {
        Batch batch = batches.read(part, context.host());
        if (change) change(part, batch);
        return batch;
      },
      0, kSteps);
  TrainingStep step(run, optimizer, kSteps);
  Log log(world.rank() == 0);
  NanSearch search(run, step, log);
  if (world.rank() == 0) ::testing::internal::CaptureStderr();
  for (std::int64_t s = 1; s <= (change ? kSteps : 1); ++s) search.run(s, parts);
  return world.rank() == 0 ? ::testing::internal::GetCapturedStderr() : "";
}

TEST(TrainingStep, IsReplayedToFindWhatIsNotFinite) {
  const testing::TemporaryFolder folder;
  write_field(folder.path(), [](std::size_t, std::size_t) { return false; });
  testing::put_text(folder.path() + "/tiny.json",
                    R"({"lead_hours": 6, "fields": {"x": {"units": "", "mean": 0, "deviation": 1e-25,
                        "increment_deviation": 1e-25}}})");
  for (const char* mesh : {"mesh={\"data\": 2}", "mesh={\"domain\": [2, 1]}"}) {
    run_ranks(
        2, {}, [](int) { return testing::test_context(Backend::kCpu, 1); },
        [&](Communicator& world) {
          const std::string gradient =
              said_of(world, configuration_with({mesh, "data.normalization=tiny.json"}), folder.path(), 0.5);
          const std::string parameter = said_of(world, configuration_with({mesh}), folder.path(), INFINITY);
          const std::string nothing = said_of(world, configuration_with({mesh}), folder.path(), 0.5);
          const std::string leap = said_of(world, configuration_with({mesh}), folder.path(), 0.5,
                                           [&](std::int64_t part, Batch& batch) {
                                             if (part != 6) return;
                                             const Context host = Context::make_host(Backend::kReference, 1);
                                             std::vector<double> values = download_values(host, batch.input);
                                             for (double& value : values) value *= 100;
                                             write_values(host, batch.input, values);
                                           });
          if (world.rank() != 0) return;
          EXPECT_NE(gradient.find("not finite is the gradient of the parameter layers.0.weight"),
                    std::string::npos)
              << gradient;
          EXPECT_NE(gradient.find("input x reaches "), std::string::npos) << gradient;
          EXPECT_NE(gradient.find("e+25"), std::string::npos) << gradient;
          EXPECT_NE(parameter.find("is the result of operation 0 (contract"), std::string::npos) << parameter;
          EXPECT_NE(parameter.find("not finite is the parameter layers.0.weight"), std::string::npos)
              << parameter;
          EXPECT_EQ(nothing, "");
          EXPECT_NE(leap.find("step 7: loss "), std::string::npos) << leap;
          EXPECT_NE(
              leap.find("the first that is larger than of the batch before is the result of operation 0"),
              std::string::npos)
              << leap;
          EXPECT_EQ(std::count(leap.begin(), leap.end(), '\n'), 1) << leap;
        });
  }
}

}  // namespace training_step_test
}  // namespace jigsaw
