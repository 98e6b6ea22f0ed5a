// Rollouts from the file to the update and to the scores against PyTorch's numbers, on one rank and on
// meshes: levels, diagnostics, statics, forcings, missing values, weights of leads and of variables, both
// kinds of `predict`.
#include <gtest/gtest.h>

#include <mutex>

#include "config/config.h"
#include "optim/optimizer.h"
#include "support/golden_file.h"
#include "support/parameters.h"
#include "support/temporary_folder.h"
#include "support/test_ranks.h"
#include "train/forecast_file.h"
#include "train/one_step.h"
#include "train/training_batches.h"
#include "train/training_step.h"
#include "train/validation.h"

namespace jigsaw {
namespace rollout_golden_test {

using testing::CutStep;
using testing::GoldenFile;
using testing::Tensors;

const std::vector<std::string> kTargets = {"t2m", "z_850", "z_500", "tp"};

/// What PyTorch found for one kind of prediction and number of leads.
struct Golden {
  Tensors parameters, gradients;
  std::vector<double> lead_weights;
  double loss = 0, norm = 0, valid_loss = 0;
  Tensors scores;  ///< each [leads, 4]
  std::int64_t windows = 0;
};

Tensors read_group(const GoldenFile& file, const std::string& path) {
  Tensors tensors;
  for (const std::string& name : file.names(path)) tensors[name] = file.values(concat(path, "/", name));
  return tensors;
}

Golden read_golden(const GoldenFile& file, const std::string& predict, int leads) {
  const std::string inner = concat(predict, "/leads_", leads);
  return {
      read_group(file, predict + "/parameters"), read_group(file, inner + "/gradients"),
      file.values(inner + "/lead_weights"),      file.values(inner + "/loss")[0],
      file.values(inner + "/gradient_norm")[0],  file.values(inner + "/valid_loss")[0],
      read_group(file, inner + "/scores"),       static_cast<std::int64_t>(file.number(inner, "windows"))};
}

/// The fields that PyTorch had, as a file; z has its levels in another order than the configuration.
void write_fields(const GoldenFile& file, const std::string& predict, const std::string& path) {
  const auto field = [&](const std::string& name) { return file.read(predict + "/fields/" + name); };
  const GoldenFile::Tensor high = field("z_500"), low = field("z_850");
  const auto times = static_cast<std::size_t>(high.shape[0]);
  const std::size_t plane = high.values.size() / times;
  std::vector<double> z, hours;
  for (std::size_t t = 0; t < times; ++t) {
    hours.push_back(6.0 * static_cast<double>(t));
    for (const GoldenFile::Tensor* level : {&high, &low}) {
      const auto first = level->values.begin() + static_cast<std::ptrdiff_t>(t * plane);
      z.insert(z.end(), first, first + static_cast<std::ptrdiff_t>(plane));
    }
  }
  testing::write_forecast_file(
      path, {hours, file.values(predict + "/latitude"), file.values(predict + "/longitude")},
      {{"t2m", field("t2m").values},
       {"z", z, {500, 850}},
       {"tp", field("tp").values},
       {"lsm", field("lsm").values, {}, false}});
}

Configuration configuration_of(const Golden& golden, const std::string& predict, const CutStep& cut) {
  const auto convolution = [](int features) {
    return Json{{"type", "conv"}, {"features", features}, {"kernel", 3}, {"padding", 1}};
  };
  Json json = {
      {"data",
       {{"files", {"fields.nc"}},
        {"variables", {"t2m", {{"name", "z"}, {"levels", {850, 500}}}}},
        {"diagnostic", {"tp"}},
        {"static", {"lsm"}},
        {"forcings", {"latitude", "longitude", "time_of_day", "day_of_year"}},
        {"input_hours", {-6, 0}},
        {"predict", predict},
        {"train", {"2019-12-30", "2020-01-02"}},
        {"valid", {"2020-01-03", "2020-01-05"}}}},
      {"model", {{"type", "sequential"}, {"layers", {convolution(6), {{"type", "tanh"}}, convolution(4)}}}},
      {"loss", {{"variable_weights", {{"t2m", 2.0}, {"tp", 0.5}}}}}};
  testing::take_gradient_away(json, cut, golden.windows,
                              static_cast<std::int64_t>(golden.lead_weights.size()));
  if (golden.lead_weights.front() != golden.lead_weights.back())
    json["train"]["rollout_weights"] = golden.lead_weights;
  return parse<Configuration>(json);
}

void expect_scores(const ValidationResult& found, const Golden& golden) {
  EXPECT_NEAR(found.loss / golden.valid_loss, 1, 1e-11);
  ASSERT_EQ(found.leads.size(), golden.lead_weights.size());
  for (std::size_t lead = 0; lead < found.leads.size(); ++lead) {
    for (const auto& [score, values] : golden.scores) {
      for (std::size_t c = 0; c < kTargets.size(); ++c) {
        const double expected = values[lead * kTargets.size() + c];
        const double value = found.metrics(lead).at(kTargets[c]).at(score).get<double>();
        EXPECT_NEAR(value, expected, 1e-10 * std::abs(expected))
            << kTargets[c] << " " << score << " " << lead;
      }
    }
  }
}

/// One rank's validation, and its step over all windows at once: the parameters that it takes away.
Tensors run_rank(Communicator& world, const Configuration& config, const std::string& folder,
                 const Golden& golden) {
  OpenedRun run(config, folder, world);
  PlacedModel& placed = run.placed();
  const std::vector<ParameterBlock*> blocks = placed.model().parameters();
  const Context& context = placed.rank().context;
  for (ParameterBlock* block : blocks) testing::load(context, *block, golden.parameters);
  Optimizer optimizer(placed.rank(), blocks, config.optimizer);
  expect_scores(Validation(run).run([] { return false; }).value(), golden);

  TrainingBatches batches(config, run.objective(), placed);
  Prefetch parts([&](std::int64_t part) { return batches.read(part, context.host()); }, 0,
                 config.train.accumulate);
  const StepResult result = TrainingStep(run, optimizer, 1).run(1, parts);
  EXPECT_NEAR(result.loss / golden.loss, 1, 1e-12);
  EXPECT_NEAR(result.norm / golden.norm, 1, 1e-11);
  Tensors after;
  for (ParameterBlock* block : blocks) {
    for (auto& group : block->groups()) testing::collect(group->owned_segments(), group->owned(), after);
  }
  return after;
}

class RolloutGolden : public ::testing::TestWithParam<std::string> {
 protected:
  void expect_equal(int leads, const std::vector<CutStep>& cuts) {
    const testing::TemporaryFolder folder;
    std::unique_ptr<Golden> golden;
    {
      // Read before ranks start: HDF5 is not for several threads.
      const GoldenFile file("rollouts.h5");
      write_fields(file, GetParam(), folder.path() + "/fields.nc");
      golden = std::make_unique<Golden>(read_golden(file, GetParam(), leads));
    }
    for (const CutStep& cut : cuts) {
      SCOPED_TRACE(concat(GetParam(), ", ", leads, " leads, ", cut.to_string()));
      const Configuration config = configuration_of(*golden, GetParam(), cut);
      Tensors after;
      std::mutex mutex;
      testing::run_test_ranks(cut.ranks(), [&](Communicator& world) {
        const Tensors mine = run_rank(world, config, folder.path(), *golden);
        const std::lock_guard lock(mutex);
        testing::merge(after, mine);
      });
      for (const auto& [name, gradient] : golden->gradients) {
        std::vector<double> taken = golden->parameters.at(name);
        for (std::size_t i = 0; i < taken.size(); ++i) taken[i] -= after.at(name)[i];
        EXPECT_LE(testing::relative_difference(taken, gradient), 1e-11) << name;
      }
    }
  }
};

TEST_P(RolloutGolden, TwoLeads) {
  expect_equal(2, {{}, {2}, {1, {2, 1}}, {1, {1, 3}}, {1, {1, 1}, 2}});
}

TEST_P(RolloutGolden, ThreeLeadsOfDifferentWeights) {
  expect_equal(3, {{}, {1, {1, 1}, 1, 3}, {2, {1, 1}, 1, 2}, {1, {2, 1}, 2, 1, "block"}});
}

INSTANTIATE_TEST_SUITE_P(Predict, RolloutGolden, ::testing::Values("increment", "state"),
                         [](const auto& tested) { return tested.param; });

}  // namespace rollout_golden_test
}  // namespace jigsaw
