// A run that is killed or stopped goes on from its last checkpoint as if nothing had happened, on the same
// mesh or another.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <regex>
#include <set>

#include "end_to_end/saved_runs.h"
#include "files/digest.h"

namespace jigsaw::e2e {
namespace {

namespace fs = std::filesystem;

using ResumeTest = SavedRuns;

double relative(double a, double b) {
  return std::abs(a - b) / std::abs(b);
}

/// A text with one bit of a byte changed.
std::string flipped(const std::string& text, std::size_t at) {
  return text.substr(0, at) + static_cast<char>(text.at(at) ^ 1) + text.substr(at + 1);
}

/// Batches of 4 do not divide the windows, and checkpoints come every 7 steps: in the middle of an epoch.
struct Way {
  const char* name;
  int ranks;
  const char* arguments;
};
void PrintTo(const Way& way, std::ostream* out) {
  *out << way.name;
}
class SameMesh : public ResumeTest, public ::testing::WithParamInterface<Way> {};

/// The fourth save, of step 28, never ends: training goes on beyond it, and then all are killed.
TEST_P(SameMesh, AfterKillTheMetricsAreByteForByteThoseOfAnUninterruptedRun) {
  const auto& [name, ranks, more] = GetParam();
  ASSERT_EQ(run(ranks, arguments("whole") + more).exit_code, 0);
  {
    const std::string mark = folder_ / "mark";
    ASSERT_EQ(setenv("JIGSAW_CRASH_MARK", mark.c_str(), 1), 0);
    ASSERT_EQ(setenv("JIGSAW_CRASH", "1:0:4:stop", 1), 0);
    Running running(ranks, arguments("killed") + more, JIGSAW_TRAIN_CRASHING);
    unsetenv("JIGSAW_CRASH");
    ASSERT_TRUE(running.until([&] {
      return fs::exists(mark) && std::ranges::count(read(folder_ / "killed/metrics.jsonl"), '\n') > 30;
    }));
    running.kill_all();
    EXPECT_NE(running.collect().exit_code, 0);
  }
  const Outcome resumed = run(ranks, arguments("killed") + more);
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.out.find("step_00000021 at step 21\n"), std::string::npos) << resumed.out;
  const std::string whole = timeless(folder_ / "whole");
  EXPECT_EQ(std::ranges::count(whole, '\n'), 63);
  EXPECT_EQ(timeless(folder_ / "killed"), whole);
  const Outcome done = run(ranks, arguments("killed") + more);
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_NE(done.out.find("nothing is left to do"), std::string::npos) << done.out;
}
INSTANTIATE_TEST_SUITE_P(
    Ways, SameMesh,
    ::testing::Values(Way{"one rank", 1, ""}, Way{"two ranks", 2, ""},
                      Way{"accumulation and rollouts of one or two steps", 1,
                          "--set train.accumulate=2 --set 'train.rollout={\"min\":1,\"max\":2}'"},
                      Way{"ZeRO", 2, "--set zero=parameters --set 'mesh={\"data\":2}'"},
                      Way{"bf16 on domain and tensor", 4,
                          "--set train.precision=bf16 --set 'mesh={\"domain\":[2,1],\"tensor\":2}'"}));

/// Somebody cleaned up: what the run wrote is neither lost nor joined with what another one writes.
TEST_F(ResumeTest, ARunWhoseCheckpointsAreGoneKeepsItsLines) {
  const std::string steps = "--set train.steps=30 ";
  ASSERT_EQ(run(1, arguments("gone") + steps).exit_code, 0);
  const std::string lines = read(folder_ / "gone/metrics.jsonl");
  for (const auto& entry : fs::directory_iterator(folder_ / "gone/checkpoints"))
    if (entry.is_directory()) fs::remove_all(entry.path());
  const Outcome refused = run(2, arguments("gone") + steps);
  EXPECT_EQ(refused.exit_code, 4) << refused.err;
  EXPECT_NE(refused.err.find("latest names a checkpoint, and none is there"), std::string::npos)
      << refused.err;
  EXPECT_EQ(read(folder_ / "gone/metrics.jsonl"), lines);
  fs::remove_all(folder_ / "gone/checkpoints");
  const Outcome anew = run(2, arguments("gone") + steps);
  EXPECT_EQ(anew.exit_code, 0) << anew.err;
  EXPECT_NE(anew.err.find("the run begins anew, at step 1; lines of metrics.jsonl"), std::string::npos)
      << anew.err;
  EXPECT_EQ(read(folder_ / "gone/metrics.old-1.jsonl"), lines);
  EXPECT_EQ(metrics(folder_ / "gone", "train").size(), 30U);
  // Nor with those of a run that it goes on from.
  ASSERT_EQ(run(1, arguments("other") + "--set train.steps=7 --set optimizer.learning_rate=1e-5").exit_code,
            0);
  const Outcome other =
      run(1, arguments("other") + steps + "--resume " + quoted(folder_ / "gone/checkpoints/step_00000028"));
  EXPECT_EQ(other.exit_code, 0) << other.err;
  EXPECT_EQ(metrics(folder_ / "other", "train").size(), 2U) << "steps 29 and 30";
  EXPECT_TRUE(fs::exists(folder_ / "other/metrics.old-1.jsonl"));
  EXPECT_NE(other.out.find("from here on other than before: "), std::string::npos) << other.out;
}

TEST_F(ResumeTest, ARunThatWasKilledBehindItsLastCheckpointIsFinished) {
  ASSERT_EQ(run(1, arguments("killed") + "--set train.steps=10").exit_code, 0);
  const Json whole = Json::parse(read(folder_ / "killed/summary.json"));
  fs::remove(folder_ / "killed/summary.json");
  const Outcome done = run(2, arguments("killed") + "--set train.steps=10");
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const Json summary = Json::parse(read(folder_ / "killed/summary.json"));
  for (const char* key : {"steps", "final_loss"}) EXPECT_EQ(summary.at(key), whole.at(key)) << key;
  EXPECT_EQ(summary.value("validation", Json()), whole.value("validation", Json()));
  EXPECT_EQ(summary.at("ranks").size(), 2U);
}

/// A run hops over meshes, with a longer train.steps each time, and stays the run that never stopped.
TEST_F(ResumeTest, OnAnyMeshARunGoesOnAsOnOneRank) {
  const std::string ways =
      "--set train.precision=fp64 --set schedule.type=constant --set 'train.rollout={\"min\":1,\"max\":2}' "
      "--set train.accumulate=2 ";
  ASSERT_EQ(run(1, arguments("whole") + ways + "--set train.steps=50").exit_code, 0);
  const struct {
    const char* mesh;
    int ranks;
    const char* zero = "none";  // of what `data` ranks hold
  } hops[] = {{"{}", 1},
              {R"({"domain":[2,1]})", 2},
              {R"({"domain":[2,1],"tensor":2})", 4},
              {R"({"data":2})", 2, "parameters"},
              {R"({"domain":[3,1]})", 3},
              {R"({"domain":[2,2],"tensor":2})", 8},
              {R"({"data":2,"tensor":2})", 4, "optimizer"},
              {R"({"data":2,"domain":[2,1]})", 4, "parameters"},
              {R"({"data":2})", 2},
              {R"({"tensor":2})", 2}};
  int steps = 0;
  for (const auto& [mesh, ranks, zero] : hops) {
    steps += 5;
    const Outcome hop =
        run(ranks, arguments("hopping") + ways + "--set 'mesh=" + mesh + "' --set zero=" + zero +
                       " --set train.steps=" + std::to_string(steps));
    ASSERT_EQ(hop.exit_code, 0) << mesh << hop.err;
    EXPECT_EQ(hop.out.find("resumed from ") != std::string::npos, steps > 5) << mesh << hop.out;
  }
  const auto whole = metrics(folder_ / "whole", "train"), hopping = metrics(folder_ / "hopping", "train");
  ASSERT_EQ(whole.size(), 50U);
  ASSERT_EQ(hopping.size(), 50U);
  double worst = 0;
  for (const char* key : {"loss", "grad_norm", "learning_rate"}) {
    const auto a = series(hopping, key), b = series(whole, key);
    for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, relative(a[i], b[i]));
  }
  const Json valid = metrics(folder_ / "hopping", "valid").back(),
             right = metrics(folder_ / "whole", "valid").back();
  worst = std::max(worst, relative(valid.at("loss"), right.at("loss")));
  std::printf("10 meshes, one after the other, and one rank, fp64: worst relative difference %.1e\n", worst);
  EXPECT_LE(worst, 1e-9);
}

TEST_F(ResumeTest, ALongerCosineGoesOnWithTheRatesOfTheNewLength) {
  ASSERT_EQ(run(1, arguments("whole") + "--set train.steps=60").exit_code, 0);
  ASSERT_EQ(run(1, arguments("longer") + "--set train.steps=30").exit_code, 0);
  const Outcome longer_run = run(1, arguments("longer") + "--set train.steps=60");
  ASSERT_EQ(longer_run.exit_code, 0) << longer_run.err;
  // Seconds are those of this start, and so are told with its steps.
  EXPECT_NE(longer_run.out.find("done: 60 steps, 30 of them in "), std::string::npos) << longer_run.out;
  EXPECT_EQ(Json::parse(read(folder_ / "longer/summary.json")).at("first_step"), 31);
  EXPECT_EQ(Json::parse(read(folder_ / "whole/summary.json")).at("first_step"), 1);
  const auto whole = series(metrics(folder_ / "whole", "train"), "learning_rate");
  const auto longer = series(metrics(folder_ / "longer", "train"), "learning_rate");
  ASSERT_EQ(longer.size(), 60U);
  for (std::size_t i = 30; i < 60; ++i) EXPECT_EQ(longer[i], whole[i]) << i;
  EXPECT_NE(longer[20], whole[20]);
  EXPECT_NE(longer_run.err.find(
                "the schedule is another one from here on, of 60 steps in place of 30: the learning "
                "rate of step 30 was "),
            std::string::npos)
      << longer_run.err;
}

/// The save of a step stands before its validation begins, and a validation that was cut short is made up
/// for.
TEST_F(ResumeTest, AValidationThatIsMissingIsMadeUpFor) {
  config_["checkpoint"] = {{"every", 20}, {"keep", 9}};
  write();
  ASSERT_EQ(run(1, arguments("whole")).exit_code, 0);
  const std::string whole = timeless(folder_ / "whole");
  fs::copy(folder_ / "whole", folder_ / "cut", fs::copy_options::recursive);
  const auto cut = [&](int step) {  // what a run leaves that ends in the validation of this step
    fs::remove(folder_ / "cut/summary.json");
    for (int later = step + 20; later <= 60; later += 20)
      fs::remove_all(folder_ / ("cut/checkpoints/step_000000" + std::to_string(later)));
    folder_.write("cut/checkpoints/latest", "step_000000" + std::to_string(step));
    std::string lines = read(folder_ / "cut/metrics.jsonl");
    lines.resize(lines.find("{\"kind\":\"valid\",\"step\":" + std::to_string(step) + ","));
    folder_.write("cut/metrics.jsonl", lines);
  };
  cut(60);
  ASSERT_EQ(run(2, arguments("cut")).exit_code, 0);
  EXPECT_EQ(metrics(folder_ / "cut", "valid").size(), 3U);
  EXPECT_TRUE(fs::exists(folder_ / "cut/summary.json"));
  cut(40);
  ASSERT_EQ(run(1, arguments("cut")).exit_code, 0);
  EXPECT_EQ(timeless(folder_ / "cut"), whole);
}

TEST_F(ResumeTest, AChangedKeyThatDecidesTheResultIsRefused) {
  ASSERT_EQ(run(1, arguments("changed") + "--set train.steps=10").exit_code, 0);
  expect_one_error(run(1, arguments("changed") + "--set optimizer.weight_decay=0.5"), 2,
                   "optimizer.weight_decay");
  expect_one_error(run(1, arguments("changed") + "--set model.embed_dim=48"), 2, "model.embed_dim");
  expect_one_error(run(2, arguments("changed") + "--set model.embed_dim=48 --allow-change"), 4,
                   "holds \"parameters/encoder.weight\" of shape [24, ");
  const Outcome changed = run(1, arguments("changed") + "--set optimizer.weight_decay=0.5 --allow-change");
  EXPECT_EQ(changed.exit_code, 0);
  EXPECT_NE(changed.err.find("from here on other than before: optimizer.weight_decay"), std::string::npos)
      << changed.err;
}

TEST_F(ResumeTest, KeysThatMayChangeNeedNoPermission) {
  ASSERT_EQ(run(1, arguments("tuned") + "--set train.steps=10").exit_code, 0);
  const Json valid = config_["data"]["valid"];
  config_["data"]["valid"] = {valid[0], valid[0]};
  write();
  const Outcome tuned = run(2, arguments("tuned") +
                                   "--set train.steps=12 --set optimizer.learning_rate=0.0125 "
                                   "--set optimizer.clip_norm=2 --set schedule.type=constant");
  EXPECT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_NE(tuned.out.find("resumed from"), std::string::npos);
  EXPECT_EQ(metrics(folder_ / "tuned", "train").back()["learning_rate"], 0.0125);
}

/// With another batch size samples go on where they were, and epochs count them.
TEST_F(ResumeTest, AnotherBatchSizeGoesOnBehindTheSamplesSeen) {
  const auto sampler = [&] {
    return Json::parse(read(newest("b") + "/manifest.json")).at("extra").at("sampler");
  };
  config_["checkpoint"]["every"] = 100;
  write();
  ASSERT_EQ(run(1, arguments("b") + "--set train.steps=3").exit_code, 0);
  const std::int64_t batch = config_["train"]["batch_size"], smaller = batch / 2;
  ASSERT_EQ(sampler().at("samples"), 3 * batch);
  const Outcome changed =
      run(2, arguments("b") + "--set train.steps=7 --set train.batch_size=" + std::to_string(smaller) +
                 " --allow-change");
  ASSERT_EQ(changed.exit_code, 0) << changed.err;
  EXPECT_EQ(sampler().at("samples"), 3 * batch + 4 * smaller);
  // And from there once more, with the batch size that it had last.
  ASSERT_EQ(run(1, arguments("b") + "--set train.steps=9 --set train.batch_size=" + std::to_string(smaller))
                .exit_code,
            0);
  EXPECT_EQ(sampler().at("samples"), 3 * batch + 6 * smaller);
  EXPECT_EQ(sampler().at("before"), (Json{{"steps", 3}, {"samples", 3 * batch}}));
  // Two epochs are so many samples, whatever batches they came in.
  const Outcome epochs =
      run(1, arguments("b") + "--set train.steps=null --set train.epochs=2 --set train.batch_size=" +
                 std::to_string(batch) + " --allow-change");
  ASSERT_EQ(epochs.exit_code, 0) << epochs.err;
  const auto number = [after = sampler()](const char* key) { return after.at(key).get<double>(); };
  ASSERT_GE(number("epoch"), 1);
  const double windows = (number("samples") - number("position")) / number("epoch");
  EXPECT_GE(number("samples"), 2 * windows);
  EXPECT_LT(number("samples"), 2 * windows + static_cast<double>(batch));
}

TEST_F(ResumeTest, AnAverageMayBeginLater) {
  ASSERT_EQ(run(1, arguments("a") + "--set train.steps=10 --set optimizer.ema_decay=0").exit_code, 0);
  EXPECT_EQ(run(1, arguments("a") + "--set train.steps=12 --allow-change").exit_code, 0);
  EXPECT_TRUE(fs::exists(newest("a") + "/average.h5"));
}

TEST_F(ResumeTest, DataMayMoveAndOtherDataAreRefused) {
  for (const char* seed : {"1", "2"}) {
    ASSERT_EQ(run(1, "sample-data --seed " + std::string(seed) + " --output " +
                         (folder_ / ("seed" + std::string(seed))))
                  .exit_code,
              0);
  }
  fs::copy(folder_ / "seed1", folder_ / "moved");
  const auto with = [&](const std::string& files, int steps) {
    return arguments("data") + "--set 'data.files=[\"" + (folder_ / files) +
           "/*.nc\"]' --set train.steps=" + std::to_string(steps);
  };
  config_["data"]["train"] = {"2021-01-02", "2021-01-12"};
  config_["data"]["valid"] = {"2021-02-01", "2021-02-02"};
  config_["model"]["patch"] = {5, 7};
  write();
  ASSERT_EQ(run(1, with("seed1", 10)).exit_code, 0);
  EXPECT_EQ(run(1, with("moved", 12)).exit_code, 0);
  const Outcome others = run(1, with("seed2", 14));
  expect_one_error(others, 2, "data.files: the statistics of the training data differ");
  EXPECT_NE(others.err.find("(t2m: mean "), std::string::npos) << others.err;
  // Of the same files with the statistics of others it is not the files that differ.
  const std::string statistics = folder_ / "statistics.json";
  ASSERT_EQ(run(1, "stats --config " + (folder_ / "config.json") + " --set 'data.files=[\"" +
                       (folder_ / "seed2") + "/*.nc\"]' --output " + statistics)
                .exit_code,
            0);
  expect_one_error(run(1, with("moved", 14) + " --set data.normalization=" + statistics), 2,
                   "data.normalization: the statistics differ");
  EXPECT_EQ(run(1, with("seed2", 14) + " --allow-change").exit_code, 0);
}

/// Files of the same names and times in place of those that were validated on: scores do not compare.
TEST_F(ResumeTest, ReplacedValidationFilesAreWarnedOf) {
  for (const char* seed : {"1", "2"}) {
    ASSERT_EQ(run(1, "sample-data --seed " + std::string(seed) + " --output " +
                         (folder_ / ("seed" + std::string(seed))))
                  .exit_code,
              0);
  }
  config_["data"]["files"] = {folder_ / "seed1/*.nc"};
  config_["data"]["train"] = {"2021-01-02", "2021-01-12"};
  config_["data"]["valid"] = {"2021-02-01", "2021-02-02"};
  config_["model"]["patch"] = {5, 7};
  config_["checkpoint"] = {{"every", 5}, {"best", "t2m.rmse"}};
  config_["validation"] = {{"every", 5}};
  write();
  const std::string says = "validations are of others than before: t2m.persistence_rmse is ";
  ASSERT_EQ(run(1, arguments("valid") + "--set train.steps=5").exit_code, 0);
  const Outcome same = run(2, arguments("valid") + "--set train.steps=10");
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_EQ(same.err.find(says), std::string::npos) << same.err;
  fs::copy_file(folder_ / "seed2/sample_2021-02.nc", folder_ / "seed1/sample_2021-02.nc",
                fs::copy_options::overwrite_existing);
  const Outcome other = run(2, arguments("valid") + "--set train.steps=20");
  EXPECT_EQ(other.exit_code, 0) << other.err;
  const std::size_t first = other.err.find(says);
  EXPECT_NE(first, std::string::npos) << other.err;
  EXPECT_EQ(other.err.find(says, first + 1), std::string::npos) << "once is enough: " << other.err;
}

TEST_F(ResumeTest, WhatIsNoWholeCheckpointIsExitCode4AndAutoFallsBackLoudly) {
  ASSERT_EQ(run(2, arguments("run") + "--set train.steps=21").exit_code, 0);
  const std::string longer = "--set train.steps=23 ";
  expect_one_error(run(2, arguments("run") + "--resume " + (folder_ / "nowhere")), 4,
                   "there is no checkpoint");
  expect_one_error(run(2, arguments("run") + "--resume " + folder_.path().string()), 4,
                   "it has no manifest.json");
  const std::string step = folder_ / "run/checkpoints/step_00000021";
  fs::copy(folder_ / "run", folder_ / "kept", fs::copy_options::recursive);
  const struct {
    const char* file;
    std::function<std::string(std::string)> damage;
    const char* says;
  } cases[] = {{"rank_0001.h5", [](const std::string& text) { return flipped(text, text.size() / 2); },
                "is damaged: its digest does not fit"},
               {"parameters.h5", [](const std::string& text) { return flipped(text, 100); },
                "is damaged: its digest does not fit"},
               {"rank_0000.h5", nullptr, "cannot be read"},
               {"manifest.json", [](const std::string& text) { return text.substr(0, text.size() / 2); },
                "is not a whole manifest"},
               {"manifest.json",
                [](const std::string& text) {
                  return std::regex_replace(text, std::regex("\"format_version\":\\d+"),
                                            "\"format_version\":99");
                },
                "is of format version 99"}};
  for (const auto& [file, damage, says] : cases) {
    fs::remove_all(folder_ / "run");
    fs::copy(folder_ / "kept", folder_ / "run", fs::copy_options::recursive);
    const std::string path = step + "/" + file;
    const std::string text = read(path);
    fs::remove(path);
    if (damage) std::ofstream(path, std::ios::binary) << damage(text);
    expect_one_error(run(2, arguments("run") + longer + "--resume " + step), 4, says);
    const Outcome fallen = run(2, arguments("run") + longer);
    EXPECT_EQ(fallen.exit_code, 0) << fallen.err;
    EXPECT_NE(fallen.err.find(says), std::string::npos) << fallen.err;
    EXPECT_NE(fallen.out.find("step_00000014 at step 14"), std::string::npos) << fallen.out;
    EXPECT_TRUE(fs::exists(folder_ / "run/checkpoints.old-1/step_00000021"));
  }
  fs::remove_all(folder_ / "run");
  fs::copy(folder_ / "kept", folder_ / "run", fs::copy_options::recursive);
  const std::string bytes = flipped(read(step + "/parameters.h5"), 100);
  std::ofstream(step + "/parameters.h5", std::ios::binary) << bytes;
  EXPECT_EQ(run(2, arguments("run") + longer + "--no-verify --resume " + step).exit_code, 0);
  fs::remove_all(folder_ / "run");
  fs::copy(folder_ / "kept", folder_ / "run", fs::copy_options::recursive);
  const Outcome of_run = run(2, arguments("other") + longer + "--resume " + (folder_ / "run"));
  EXPECT_NE(of_run.out.find("step_00000021 at step 21"), std::string::npos) << of_run.err;
  // With nothing whole left nothing is overwritten.
  for (const char* name : {"21", "14"})
    fs::remove(folder_ / "run/checkpoints/step_000000" + name + "/rank_0000.h5");
  const std::string before = read(folder_ / "run/metrics.jsonl");
  expect_one_error(run(2, arguments("run") + longer), 4, "is whole; --resume never starts anew");
  EXPECT_EQ(read(folder_ / "run/metrics.jsonl"), before);
  EXPECT_EQ(run(2, arguments("run") + longer + "--resume never").exit_code, 0);
  EXPECT_TRUE(fs::exists(folder_ / "run/checkpoints.old-1/step_00000021"));
}

/// Numbers that no run can have written, in a manifest whose digest is right.
TEST_F(ResumeTest, AManifestOfNumbersThatCannotBeIsRefused) {
  ASSERT_EQ(run(1, arguments("run") + "--set train.steps=7 --set train.batch_size=1").exit_code, 0);
  const std::string path = newest("run") + "/manifest.json", text = read(path);
  const auto resumed_with = [&](const char* pointer, const Json& value) {
    Json json = Json::parse(text);
    json.erase("xxh64");
    json.at(Json::json_pointer(pointer)) = value;
    json["xxh64"] = digest_of_text(json.dump());
    folder_.write("run/checkpoints/step_00000007/manifest.json", json.dump());
    return run(1,
               arguments("run") + "--set train.steps=8 --set train.batch_size=1 --resume " + newest("run"));
  };
  EXPECT_EQ(resumed_with("/extra/optimizer/steps", 6).exit_code, 0);
  fs::remove_all(folder_ / "run");
  ASSERT_EQ(run(1, arguments("run") + "--set train.steps=7 --set train.batch_size=1").exit_code, 0);
  const std::pair<const char*, Json> wrong[] = {
      {"/extra/optimizer/steps", -1},  {"/extra/optimizer/steps", 1e308}, {"/extra/optimizer/steps", 8},
      {"/extra/optimizer/steps", "7"}, {"/extra/optimizer", 7},           {"/extra/skipped", -1},
      {"/extra/skipped", 1e308},       {"/extra/sampler/samples", 1e308}, {"/step", std::int64_t{1} << 62},
      {"/extra", Json::array()}};
  for (const auto& [pointer, value] : wrong) {
    SCOPED_TRACE(std::string(pointer) + " " + value.dump());
    expect_one_error(resumed_with(pointer, value), 4, "step_00000007");
  }
}

TEST_F(ResumeTest, ASaveThatFailsIsTriedAgainWhileTrainingGoesOn) {
  Running running(2, arguments("run") + "--set train.steps=100000 --set checkpoint.every=300");
  const fs::path folder = folder_ / "run/checkpoints", away = folder_ / "run/away";
  const auto says = [&](const std::string& text) {
    return read(folder_ / "run/log.txt").find(text) != std::string::npos;
  };
  ASSERT_TRUE(running.until([&] { return !read(folder / "latest").empty(); }));
  fs::rename(folder, away);
  std::ofstream(folder) << "a file where the folder was\n";
  EXPECT_TRUE(running.until([&] { return says("cannot be saved"); }));
  fs::remove(folder);
  fs::rename(away, folder);
  const std::string kept = read(folder / "latest");
  EXPECT_TRUE(fs::exists(folder / kept));
  EXPECT_TRUE(running.until([&] { return read(folder / "latest") != kept; }));
  running.signal(SIGTERM);
  const Outcome outcome = running.collect();
  EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
  EXPECT_EQ(outcome.errors().size(), 0U) << outcome.err;
  const std::size_t steps = metrics(folder_ / "run", "train").size();
  EXPECT_NE(newest("run").find(std::to_string(steps)), std::string::npos) << newest("run") << steps;
}

TEST_F(ResumeTest, ARunThatIsTakenBackOrStartedAnewForgetsWhatCameAfter) {
  ASSERT_EQ(run(1, arguments("run") + "--set train.steps=21").exit_code, 0);
  const std::string back = folder_ / "run/checkpoints/step_00000014";
  const Outcome stopped =
      run(1, arguments("run") + "--resume " + back + " --set checkpoint.every=0 --set train.steps=15");
  ASSERT_EQ(stopped.exit_code, 0) << stopped.err;
  EXPECT_NE(run(1, arguments("run") + "--set train.steps=21").out.find("step_00000014 at step 14"),
            std::string::npos);
  ASSERT_EQ(
      run(1, arguments("run") + "--resume never --set checkpoint.every=0 --set train.steps=5").exit_code, 0);
  const Outcome anew = run(1, arguments("run") + "--set train.steps=21");
  EXPECT_EQ(anew.out.find("resumed from"), std::string::npos) << anew.out;
  EXPECT_EQ(metrics(folder_ / "run", "train").size(), 21U);
  EXPECT_TRUE(fs::exists(folder_ / "run/checkpoints.old-2/step_00000021"));
}

/// One that ends before it has saved anything of its own is not lost: "auto" goes on from where it began.
TEST_F(ResumeTest, AnotherRunsCheckpointIsSavedAtOnce) {
  ASSERT_EQ(run(1, arguments("run") + "--set train.steps=14").exit_code, 0);
  ASSERT_EQ(run(2, arguments("other") + "--set train.steps=7").exit_code, 0);
  const Outcome taken = run(2, arguments("other") + "--set train.steps=14 --resume " + (folder_ / "run"));
  EXPECT_EQ(taken.exit_code, 0) << taken.err;
  EXPECT_TRUE(fs::exists(folder_ / "other/checkpoints/step_00000014"));
  const Outcome on = run(2, arguments("other") + "--set train.steps=15");
  EXPECT_NE(on.out.find("step_00000014 at step 14"), std::string::npos) << on.out << on.err;
  EXPECT_EQ(metrics(folder_ / "other", "train").back().at("step"), 15);
}

/// What stderr said of the end stands in log.txt, too.
TEST_F(ResumeTest, TheLogHasTheErrorThatEndsARun) {
  ASSERT_EQ(run(1, arguments("run") + "--set train.steps=7").exit_code, 0);
  for (const int ranks : {1, 2}) {
    const Outcome changed = run(ranks, arguments("run") + "--set train.steps=7 --set seed=99");
    EXPECT_EQ(changed.exit_code, 2) << changed.err;
    EXPECT_NE(read(folder_ / "run/log.txt").find("error: "), std::string::npos) << ranks;
    fs::remove(folder_ / "run/log.txt");
  }
}

TEST_F(ResumeTest, ASecondRunInOneRunDirectoryIsRefused) {
  Running running(1, arguments("run") + "--set train.steps=100000");
  ASSERT_TRUE(running.until([&] { return !read(folder_ / "run/metrics.jsonl").empty(); }));
  expect_one_error(run(2, arguments("run")), 2, "is in use by another run");
  running.signal(SIGSTOP);  // as Ctrl-Z
  expect_one_error(run(1, arguments("run")), 2,
                   "which is suspended (Ctrl-Z); let it go on by fg in its terminal or kill -CONT " +
                       std::to_string(running.ranks().front()));
  running.signal(SIGCONT);
  running.signal(SIGTERM);
  EXPECT_EQ(running.collect().exit_code, 75);
}

TEST_F(ResumeTest, TheBestByValidationAndEveryKthAreKept) {
  config_["checkpoint"] = {{"every", 10}, {"keep", 1}, {"keep_every", 30}, {"best", "t2m.rmse"}};
  config_["validation"] = {{"every", 4}};
  config_["train"]["steps"] = 40;
  config_["optimizer"]["learning_rate"] = 0.02;  // so that validation goes up and down
  write();
  ASSERT_EQ(run(1, arguments("run")).exit_code, 0);
  std::pair<double, int> best = {1e300, 0};
  for (const Json& line : metrics(folder_ / "run", "valid")) {
    best = std::min(
        best, std::pair(line.at("metrics").at("t2m").at("rmse").get<double>(), line.at("step").get<int>()));
  }
  const auto name = [](int step) {
    const std::string digits = std::to_string(step);
    return "step_" + std::string(8 - digits.size(), '0') + digits;
  };
  std::set<std::string> expected = {"best", "latest", name(30), name(40), name(best.second)}, found;
  for (const auto& entry : fs::directory_iterator(folder_ / "run/checkpoints"))
    found.insert(entry.path().filename().string());
  EXPECT_EQ(found, expected) << best.second;
  const Outcome forecast = run(1, "predict --config " + quoted(folder_ / "config.json") + " --checkpoint " +
                                      quoted(folder_ / "run/checkpoints/best") + " --output " +
                                      quoted(folder_ / "best.nc") + " --period valid");
  EXPECT_EQ(forecast.exit_code, 0) << forecast.err;
  EXPECT_NE(forecast.out.find("/" + name(best.second)), std::string::npos) << forecast.out;
  expect_one_error(run(1, arguments("other") + "--set checkpoint.best=t2m.rmsee"), 2,
                   "checkpoint.best: validation gives no \"t2m.rmsee\" (did you mean \"t2m.rmse\"?)");
  expect_one_error(run(1, arguments("other") + "--set validation.every=0"), 2, "checkpoint.best");
  EXPECT_FALSE(fs::exists(folder_ / "other"));
}

/// With a rate of 0 nothing improves on the first validation: two behind it the training ends, also where it
/// was interrupted on the way.
TEST_F(ResumeTest, ATrainingEndsWhenItsPatienceIsOver) {
  config_["checkpoint"] = {{"every", 10}, {"best", "t2m.rmse"}};
  config_["validation"] = {{"every", 4}, {"patience", 2}};
  config_["train"]["steps"] = 400;
  config_["optimizer"] = {{"learning_rate", 0.0}};
  config_["schedule"] = {{"type", "constant"}};  // which does not know how many steps there are
  config_["log_every"] = 5;
  write();
  const std::string why = "2 validations in a row did not improve t2m.rmse (validation.patience)";
  ASSERT_EQ(run(1, arguments("parts") + "--set train.steps=8").exit_code, 0);
  for (const char* name : {"run", "parts"}) {
    const Outcome whole = run(1, arguments(name));
    ASSERT_EQ(whole.exit_code, 0) << whole.err;
    EXPECT_NE(whole.out.find("the training ends at step 12 of 400: " + why), std::string::npos) << whole.out;
    std::vector<Json> counts;
    for (const Json& line : metrics(folder_ / name, "valid"))
      counts.push_back(line.at("validations_since_best"));
    EXPECT_EQ(counts, (std::vector<Json>{{{"t2m.rmse", 0}}, {{"t2m.rmse", 1}}, {{"t2m.rmse", 2}}})) << name;
    EXPECT_EQ(metrics(folder_ / name, "train").back().at("step"), 12) << name;
    const Json summary = Json::parse(read(folder_ / (std::string(name) + "/summary.json")));
    EXPECT_EQ(summary.at("steps"), 12);
    EXPECT_EQ(summary.at("ended_by"), "validation.patience");
    EXPECT_EQ(read(folder_ / (std::string(name) + "/checkpoints/best")), "step_00000004");
  }
  const Outcome again = run(2, arguments("run"));
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.out.find("nothing is left to do: its checkpoint is of step 12, " + why), std::string::npos)
      << again.out;
  // With more patience it goes on, and for another number it begins to count.
  for (const char* more : {"--set validation.patience=9 --set train.steps=13",
                           "--set checkpoint.best=loss --set train.steps=14"}) {
    const Outcome on = run(1, arguments("run") + more);
    EXPECT_EQ(on.exit_code, 0) << on.err;
    EXPECT_EQ(on.err.find("validations are others than before"), std::string::npos) << on.err;
    EXPECT_NE(on.out.find("done: "), std::string::npos) << on.out;
  }
  EXPECT_EQ(Json::parse(read(folder_ / "run/summary.json")).at("steps"), 14);
}

TEST_F(ResumeTest, ParametersOfAnotherRunAreABeginning) {
  const Outcome first = run(2, arguments("first") + "--set train.steps=10 --set 'init.skip=[\"head.*\"]'");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.err.find("warning: init.skip has no effect"), std::string::npos) << first.err;
  const std::string from = "--init-from " + newest("first") + " --set train.steps=10 ";
  const Outcome second = run(1, arguments("second") + from + "--set seed=5 --set optimizer.weight_decay=0.3");
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_NE(second.out.find("initialised 31 of 31 parameters from "), std::string::npos) << second.out;
  EXPECT_EQ(second.err.find("trained on other channels"), std::string::npos) << second.err;
  EXPECT_LT(metrics(folder_ / "second", "train")[0].at("loss").get<double>(),
            metrics(folder_ / "first", "train")[0].at("loss").get<double>());
  const Outcome other = run(2, arguments("other") + from +
                                   "--set 'data.forcings=[\"latitude\",\"longitude\",\"local_solar_time\"]'");
  ASSERT_EQ(other.exit_code, 0) << other.err;
  EXPECT_TRUE(std::regex_search(
      other.err,
      std::regex(
          "warning: the parameters of .* were trained on other channels and are taken as they are: input "
          "channel [0-9]+ was \"sin_time_of_day\" there and is \"sin_local_time\" here, input channel "
          "[0-9]+ was \"cos_time_of_day\" there and is \"cos_local_time\" here, input channel [0-9]+ was "
          "\"sin_time_of_day\" there and is \"sin_local_time\" here, and 1 more\n")))
      << other.err;
  expect_one_error(run(2, arguments("third") + from + "--set model.patch=[3,5]"), 4,
                   "the parameter \"encoder.weight\" has the shape ");
  const Outcome third =
      run(2, arguments("third") + from + "--set model.embed_dim=48 --set 'init.skip=[\"*\"]'");
  expect_one_error(third, 2, "init.skip leaves none of the model's parameters to begin with");
  const Outcome deeper = run(1, arguments("deeper") + from + "--set model.depth=3");
  EXPECT_EQ(deeper.exit_code, 0) << deeper.err;
  EXPECT_NE(deeper.out.find("initialised 31 of 43 parameters from "), std::string::npos) << deeper.out;
  EXPECT_NE(deeper.out.find("12 not there (blocks.2."), std::string::npos) << deeper.out;
  const Outcome again = run(1, arguments("deeper") + from + "--set model.depth=3 --set train.steps=12");
  EXPECT_NE(again.out.find("--init-from is not used"), std::string::npos) << again.out;
}

}  // namespace
}  // namespace jigsaw::e2e
