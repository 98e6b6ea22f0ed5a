// A run that is asked to stop while it validates, or has no time to; what it does by the clock.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "base/text.h"
#include "config/config.h"
#include "support/temporary_folder.h"
#include "support/test_ranks.h"
#include "train/forecast_file.h"
#include "train/trainer.h"

namespace jigsaw {
namespace trainer_stop_test {

constexpr int kRanks = 2;

/// Four days every six hours; the last two are for validation, of seven batches.
void write_field(const std::string& path) {
  constexpr std::size_t kTimes = 16, kRows = 4, kColumns = 6;
  std::vector<double> values;
  for (std::size_t i = 0; i < kTimes * kRows * kColumns; ++i)
    values.push_back(2 + std::sin(0.7 * static_cast<double>(i)));
  testing::write_forecast_file(path,
                               {testing::coordinates(kTimes, 0, 6), testing::coordinates(kRows, 50, -1),
                                testing::coordinates(kColumns, 0, 1)},
                               {{"x", values}});
}

Configuration configuration_in(const std::string& folder, const Json& changes) {
  Json json = {{"data",
                {{"files", {"fields.nc"}},
                 {"variables", {"x"}},
                 {"predict", "state"},
                 {"train", {"2019-12-30", "2019-12-31"}},
                 {"valid", {"2020-01-01", "2020-01-02"}}}},
               {"model", {{"type", "sequential"}, {"layers", {{{"type", "linear"}, {"features", 1}}}}}},
               {"mesh", {{"domain", {kRanks, 1}}}},
               {"train", {{"steps", 4}, {"batch_size", 1}}},
               {"validation", {{"every", 2}}},
               {"checkpoint", {{"every", 2}}},
               {"machine",  // as if measured, which takes a while
                {{"flops_per_second", 1e12},
                 {"memory_bytes_per_second", 1e11},
                 {"links", {{{"bytes_per_second", 1e10}, {"latency_seconds", 1e-6}}}}}},
               {"output", folder + "/run"}};
  json.merge_patch(changes);
  return parse<Configuration>(json);
}

/// What ranks that are threads share.
struct Surroundings {
  double limit_minutes = 0;
  bool stops_at_prediction = false;  ///< the stop is asked for at the first of a validation
  Json changes = Json::object();     ///< of the configuration
  std::atomic<int> stop = 0;         ///< a signal
  std::atomic<double> seconds = 0;   ///< each prediction of a validation takes a minute
};

/// Counts what it sees.
class Onlooker : public RunObserver {
 public:
  Onlooker(Surroundings& around, bool first) : around_(around), first_(first) {}
  void begin(OpenedRun&, const RunDirectory&, std::int64_t) override {}
  bool needs_origin() const override { return false; }
  void metrics(const Json&) override {}
  void predicted(std::int64_t, int, const ShardedTensor&, const Batch&) override {
    ++predictions;
    if (around_.stops_at_prediction) around_.stop = SIGUSR1;
    if (first_) around_.seconds += 60;
  }
  void validated(std::int64_t step, ValidationResult&) override { validations.push_back(step); }
  void end() override {}

  int predictions = 0;
  std::vector<std::int64_t> validations;

 private:
  Surroundings& around_;
  bool first_;
};

/// A run on two ranks, and what each saw; `look` on each.
template <typename F>
void train(const std::string& folder, Surroundings&& around, const F& look) {
  run_ranks(
      kRanks, {}, [](int) { return Context::make_host(Backend::kCpu, 1); },
      [&](Communicator& world) {
        ASSERT_EQ(world.size(), kRanks);
        Log log(world.rank() == 0);  // which writes the lines that a run goes on from
        Onlooker onlooker(around, world.rank() == 0);
        RunOptions options;
        options.config_folder = folder;
        options.stop = &around.stop;
        options.max_minutes = around.limit_minutes;
        options.clock = [&around] { return around.seconds.load(); };
        options.observers = {&onlooker};
        Trainer trainer(configuration_in(folder, around.changes), options, world, log);
        look(trainer.run(), onlooker);
      });
}

TEST(TrainerStop, EndsAValidationAtItsNextBatchAndTheNextRunMakesUpForIt) {
  const testing::TemporaryFolder folder;
  write_field(folder.path() + "/fields.nc");
  train(folder.path(), {.stops_at_prediction = true}, [](ExitCode code, const Onlooker& onlooker) {
    EXPECT_EQ(code, ExitCode::kStopped);
    EXPECT_EQ(onlooker.predictions, 1);
    EXPECT_EQ(onlooker.validations, std::vector<std::int64_t>());
  });
  EXPECT_EQ(testing::text_of(folder.path() + "/run/checkpoints/latest"), "step_00000002");
  train(folder.path(), {}, [](ExitCode code, const Onlooker& onlooker) {
    EXPECT_EQ(code, ExitCode::kDone);
    EXPECT_EQ(onlooker.predictions, 14);
    EXPECT_EQ(onlooker.validations, (std::vector<std::int64_t>{2, 4}));
  });
}

/// The first validation takes seven of eleven minutes, the steps no time. Steps go on, for they need none;
/// the second validation is not begun.
TEST(TrainerStop, BeginsNoValidationThatTheTimeLimitWouldCutShort) {
  const testing::TemporaryFolder folder;
  write_field(folder.path() + "/fields.nc");
  train(folder.path(), {.limit_minutes = 11}, [](ExitCode code, const Onlooker& onlooker) {
    EXPECT_EQ(code, ExitCode::kStopped);
    EXPECT_EQ(onlooker.predictions, 7);
    EXPECT_EQ(onlooker.validations, std::vector<std::int64_t>{2});
  });
  EXPECT_EQ(testing::text_of(folder.path() + "/run/checkpoints/latest"), "step_00000004");
  train(folder.path(), {.limit_minutes = 11}, [](ExitCode code, const Onlooker& onlooker) {
    EXPECT_EQ(code, ExitCode::kDone);
    EXPECT_EQ(onlooker.predictions, 7);
    EXPECT_EQ(onlooker.validations, std::vector<std::int64_t>{4});
  });
}

/// Validations of seven minutes each behind every second step, and steps that take no time: each step behind
/// a validation finds that more than six minutes have passed, and the last is saved anyway.
TEST(TrainerStop, SavesByTheClockToo) {
  for (const double minutes : {6.0, 7.5, 0.0}) {
    const testing::TemporaryFolder folder;
    write_field(folder.path() + "/fields.nc");
    const Json changes = {{"train", {{"steps", 6}}},
                          {"checkpoint", {{"every", 100}, {"keep", 9}, {"minutes", minutes}}}};
    train(folder.path(), {.changes = changes},
          [](ExitCode code, const Onlooker&) { EXPECT_EQ(code, ExitCode::kDone); });
    std::set<std::string> saved;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path() + "/run/checkpoints"))
      saved.insert(entry.path().filename().string());
    std::set<std::string> expected = {"latest", "step_00000006"};
    if (minutes == 6.0) expected.insert({"step_00000003", "step_00000005"});
    if (minutes == 7.5) expected.insert("step_00000005");
    EXPECT_EQ(saved, expected) << minutes;
  }
}

/// Nothing changes with a learning rate of 0: the first validation is the best, and the second behind it the
/// last, also where a run goes on between these two.
TEST(TrainerStop, EndsWhenValidationsDoNotImprove) {
  for (const int first : {20, 4}) {
    const testing::TemporaryFolder folder;
    write_field(folder.path() + "/fields.nc");
    Json changes = {{"optimizer", {{"learning_rate", 0.0}}},
                    {"validation", {{"patience", 2}}},
                    {"checkpoint", {{"best", "x.rmse"}}},
                    {"train", {{"steps", first}}}};
    std::vector<std::int64_t> validations;
    for (const int steps : {first, 20}) {
      changes["train"]["steps"] = steps;
      std::mutex lock;
      train(folder.path(), {.changes = changes}, [&](ExitCode code, const Onlooker& onlooker) {
        EXPECT_EQ(code, ExitCode::kDone);
        const std::lock_guard guard(lock);
        if (!onlooker.validations.empty() &&
            (validations.empty() || validations.back() < onlooker.validations[0]))
          validations.insert(validations.end(), onlooker.validations.begin(), onlooker.validations.end());
      });
    }
    EXPECT_EQ(validations, (std::vector<std::int64_t>{2, 4, 6})) << first;
    const Json summary = Json::parse(testing::text_of(folder.path() + "/run/summary.json"));
    EXPECT_EQ(summary.at("steps"), 6);
    EXPECT_EQ(summary.at("ended_by"), "validation.patience");
    EXPECT_EQ(testing::text_of(folder.path() + "/run/checkpoints/best"), "step_00000002");
    EXPECT_EQ(testing::text_of(folder.path() + "/run/checkpoints/latest"), "step_00000006");
  }
}

/// Of a later lead as of the first one; the checkpoint's score is that lead's in metrics.jsonl.
TEST(TrainerStop, TheBestMayBeOfALaterLead) {
  const testing::TemporaryFolder folder;
  write_field(folder.path() + "/fields.nc");
  train(folder.path(),
        {.changes = {{"validation", {{"rollout", 2}}}, {"checkpoint", {{"best", "leads.12.x.rmse"}}}}},
        [](ExitCode code, const Onlooker&) { EXPECT_EQ(code, ExitCode::kDone); });
  std::map<std::int64_t, double> scores;
  std::pair<double, std::int64_t> best = {1e30, 0};
  for (const std::string& text : split(testing::text_of(folder.path() + "/run/metrics.jsonl"), '\n')) {
    const Json line = Json::parse(text, nullptr, false);
    if (!line.is_object() || line.at("kind") != "valid") continue;
    const auto step = line.at("step").get<std::int64_t>();
    scores[step] = line.at("leads").at("12").at("x").at("rmse").get<double>();
    EXPECT_NE(scores[step], line.at("metrics").at("x").at("rmse").get<double>());
    best = std::min(best, std::pair(scores[step], step));
  }
  ASSERT_EQ(scores.size(), 2U);
  const std::string named = testing::text_of(folder.path() + "/run/checkpoints/best");
  EXPECT_EQ(named, concat("step_0000000", best.second));
  const Json manifest =
      Json::parse(testing::text_of(folder.path() + "/run/checkpoints/" + named + "/manifest.json"));
  EXPECT_EQ(manifest.at("score").at("metric"), "leads.12.x.rmse");
  EXPECT_EQ(manifest.at("score").at("value").get<double>(), best.first);
}

}  // namespace trainer_stop_test
}  // namespace jigsaw
