// Steps that a device replays from CUDA graphs give what the same steps give that the host puts in, to the
// last bit: on one device, and on two with NCCL between them (recorded_steps_nccl_test).
#include "train/recorded_steps.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <mutex>
#include <numeric>

#include "array/host_view.h"
#include "array/recorded_position.h"
#include "array/transfer.h"
#include "config/config.h"
#include "kernels/pointwise.h"
#include "support/parameters.h"
#include "support/temporary_folder.h"
#include "support/test_ranks.h"
#include "train/forecast_file.h"
#include "train/training_batches.h"
#include "train/training_step.h"

namespace jigsaw {
namespace {

constexpr int kSteps = 9, kManySteps = 16;
/// Steps of a kind that run unrecorded, at most, before they are recorded.
constexpr int kPlain = 3;

void write_fields(const std::string& path) {
  constexpr std::size_t kTimes = 24, kRows = 8, kColumns = 12;
  const testing::FileAxes axes = {testing::coordinates(kTimes, 0, 6), testing::coordinates(kRows, 60, -1),
                                  testing::coordinates(kColumns, 0, 1)};
  std::vector<double> warm;
  for (std::size_t i = 0; i < kTimes * kRows * kColumns; ++i)
    warm.push_back(i % 67 == 0 ? NAN : 280 + 9 * std::sin(0.37 * static_cast<double>(i)));
  testing::write_forecast_file(path, axes, {{"t2m", warm}});
}

const Json kMixer = {{"type", "weathermixer"}, {"patch", {2, 2}},  {"embed_dim", 8}, {"depth", 1},
                     {"dropout", 0.1},         {"positions", true}},
           kVit = {{"type", "vit"}, {"patch", {2, 2}}, {"embed_dim", 8},          {"depth", 1},
                   {"heads", 2},    {"dropout", 0.1},  {"attention_dropout", 0.1}},
           // Heads that cuDNN takes, which is not so of the former's.
    kPlainVit = {{"type", "vit"}, {"patch", {2, 2}}, {"embed_dim", 32}, {"depth", 1}, {"heads", 2}},
           kUnet = {{"type", "unet"}, {"widths", {4, 6}}, {"norm_groups", 2}},
           kSfno = {{"type", "sfno"}, {"embed_dim", 6}, {"depth", 1}, {"scale", 2}},
           kBatchNorm = {{"type", "sequential"},
                         {"layers",
                          {{{"type", "linear"}, {"features", 3}},
                           {{"type", "batch_norm"}},
                           {{"type", "linear"}, {"features", 1}}}}};

struct Case {
  const char* name;
  int ranks;
  Json model;
  std::vector<std::string> changes;
  int steps = kSteps;
};

Configuration configuration_of(const Case& one, bool graphs) {
  Json json = {{"data",
                {{"files", {"fields.nc"}},
                 {"variables", {"t2m"}},
                 {"forcings", {"latitude", "time_of_day"}},
                 {"train", {"2019-12-30", "2020-01-04"}}}},
               {"model", one.model},
               {"optimizer", {{"learning_rate", 1e-2}, {"clip_norm", 0.05}, {"ema_decay", 0.9}}},
               {"schedule", {{"type", "cosine"}, {"warmup_steps", 2}}},
               {"train", {{"steps", one.steps}, {"batch_size", 4}, {"graphs", graphs}}}};
  for (const std::string& change : one.changes) apply_override(json, change);
  return parse<Configuration>(json);
}

/// What a run found, and how many of its steps a device recorded_steps.
struct Made {
  std::vector<double> losses, norms;
  std::vector<bool> finite;
  std::int64_t updates = 0;
  testing::Tensors arrays;
  int recorded_steps = 0;
  bool records = false;
  std::int64_t era = 0;
  std::string remark;
};

/// What happens to the batches of a run, by their number, and between its steps.
struct Happens {
  std::function<void(std::int64_t part, Batch&)> to_batch = [](std::int64_t, Batch&) {};
  std::function<void(std::int64_t step, Communicator& world)> behind = [](std::int64_t, Communicator&) {};
};

Made train(const Case& one, bool graphs, const std::string& folder, const Happens& happens = {}) {
  Made made;
  std::mutex mutex;
  testing::run_test_ranks(one.ranks, {.time_limit_seconds = 600}, Backend::kCpu, [&](Communicator& world) {
    ASSERT_EQ(world.size(), one.ranks);
    const Configuration config = configuration_of(one, graphs);
    OpenedRun run(config, folder, world);
    PlacedModel& placed = run.placed();
    Context& context = placed.rank().context;
    Optimizer optimizer(placed.rank(), placed.model().parameters(), config.optimizer);
    TrainingBatches batches(config, run.objective(), placed);
    Prefetch parts(
        [&](std::int64_t part) {
          Batch batch = batches.read(part, context.host());
          happens.to_batch(part, batch);
          return batch;
        },
        0, one.steps * config.train.accumulate);
    TrainingStep steps(run, optimizer, one.steps);
    std::vector<StepResult> results;
    for (int step = 1; step <= one.steps; ++step) {
      // A step later, as the trainer does.
      steps.begin(step, parts);
      if (step > 1) results.push_back(steps.finish());
      happens.behind(step, world);
    }
    results.push_back(steps.finish());
    const std::lock_guard lock(mutex);
    made.remark = steps.take_remark();
    made.records = context.backend() == Backend::kCuda && world.records();
    made.era = context.state<RecordedPosition>().era;
    made.updates = optimizer.steps_done();
    for (const Optimizer::State& state : optimizer.state(Optimizer::Share::kSaved)) {
      testing::Tensors tensors;
      testing::collect({state.segment}, state.array, tensors);
      for (auto& [name, values] : tensors) testing::merge(made.arrays, {{state.kind + "/" + name, values}});
    }
    if (world.rank() > 0) return;
    for (const StepResult& result : results) {
      // No number is equal to NaN.
      made.losses.push_back(std::isnan(result.loss) ? -1 : result.loss);
      made.norms.push_back(std::isnan(result.norm) ? -1 : result.norm);
      made.finite.push_back(result.finite);
      made.recorded_steps += result.recorded ? 1 : 0;
    }
  });
  return made;
}

class RecordedStepsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
    write_fields(folder_.path() + "/fields.nc");
  }

  /// Two runs, of which the second one records.
  Made expect_the_same(const Case& one, const Happens& happens = {}) {
    SCOPED_TRACE(one.name);
    const Made plain = train(one, false, folder_.path(), happens);
    Made recorded = train(one, true, folder_.path(), happens);
    EXPECT_EQ(plain.recorded_steps, 0);
    EXPECT_EQ(std::ssize(plain.losses), one.steps);
    EXPECT_EQ(recorded.losses, plain.losses);
    EXPECT_EQ(recorded.norms, plain.norms);
    EXPECT_EQ(recorded.finite, plain.finite);
    EXPECT_EQ(recorded.updates, plain.updates);
    EXPECT_GT(plain.arrays.size(), 6U);
    EXPECT_TRUE(recorded.arrays == plain.arrays);
    return recorded;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(RecordedStepsTest, OneDeviceGivesTheSameBits) {
  for (const Case& one :
       {Case{"mixer", 1, kMixer, {"train.accumulate=2"}}, Case{"vit", 1, kVit, {"train.precision=bf16"}},
        Case{"plain vit", 1, kPlainVit, {"train.precision=bf16"}},
        Case{"unet", 1, kUnet, {"optimizer.type=sgd", "train.recompute=block"}},
        Case{"unet in bf16", 1, kUnet, {"train.precision=bf16"}},
        Case{"sfno in bf16", 1, kSfno, {"train.precision=bf16"}}, Case{"batch_norm", 1, kBatchNorm, {}},
        // A replayed step draws noise of its own.
        Case{"members",
             1,
             kMixer,
             {R"(ensemble={"members": 3, "local_noise": 1, "global_noise": 2})", "loss.type=crps",
              "train.rollout=2"}}}) {
    const Made recorded = expect_the_same(one);
    // The first puts tables up, the second shows that nothing is left, the third is recorded.
    if (recorded.records) {
      EXPECT_GE(recorded.recorded_steps, kSteps - 3) << one.name;
    }
    if (!recorded.records) {
      EXPECT_EQ(recorded.recorded_steps, 0) << one.name;
    }
  }
}

/// Each length of a rollout is a recording of its own.
TEST_F(RecordedStepsTest, OneDeviceGivesTheSameBitsOfRollouts) {
  std::vector<Array> others;  // which take what a step let go
  const Made recorded = expect_the_same(
      {"rollouts", 1, kUnet, {R"(train.rollout={"min": 1, "max": 2})"}, kManySteps},
      {.behind = [&](std::int64_t step, const Communicator& world) {
        for (int i = 0; i < 3; ++i)
          others.emplace_back(world.context(), Shape{4, 8, 12, 1}, DType::kFloat32, Purpose::kWorkspace);
        if (step == kManySteps) others.clear();
      }});
  if (recorded.records) {
    EXPECT_GE(recorded.recorded_steps, kManySteps / 2);
  }
}

/// What the device decides is decided anew in each replay.
TEST_F(RecordedStepsTest, OneDeviceSkipsStepsThatAreNotFinite) {
  constexpr std::int64_t kBad = 6;
  const Made recorded =
      expect_the_same({"skipped", 1, kUnet, {}}, {.to_batch = [](std::int64_t part, Batch& batch) {
                        if (part + 1 != kBad) return;
                        HostView<float> values(batch.input);
                        for (float& value : values) value = std::numeric_limits<float>::infinity();
                      }});
  for (std::int64_t step = 1; step <= kSteps; ++step)
    EXPECT_EQ(recorded.finite.at(static_cast<std::size_t>(step - 1)), step != kBad) << step;
  EXPECT_EQ(recorded.updates, kSteps - 1);
  if (recorded.records) {
    EXPECT_GE(recorded.recorded_steps, kSteps - 3);
  }
}

/// As small as the smallest of the models; more than are free without what recorded steps have set aside.
void take_memory(const Context& context, std::vector<Array>& taken) {
  const std::int64_t held = context.arena().held_bytes();
  while (context.arena().held_bytes() == held && taken.size() < 100'000)
    taken.emplace_back(context, Shape{30}, DType::kFloat64, Purpose::kWorkspace);
}

/// Arrays that others hold in memory of recorded steps: those run unrecorded, and are recorded anew.
TEST_F(RecordedStepsTest, OneDeviceGivesMemoryToOthers) {
  std::vector<Array> others;
  const auto take = [&](std::int64_t step, const Communicator& world) {
    if (step == 5) take_memory(world.context(), others);
    if (step == kSteps) others.clear();
  };
  const Made recorded = expect_the_same({"others", 1, kUnet, {}}, {.behind = take});
  if (recorded.records) {
    EXPECT_GE(recorded.recorded_steps, 4);
    EXPECT_LE(recorded.recorded_steps, kSteps - 3);
    EXPECT_EQ(recorded.era, RecordedPosition().era + 1);  // tables of the first recording may go
  }
  EXPECT_EQ(recorded.remark, "");
}

/// Where that happens again and again, steps are no longer recorded, and it is said.
TEST_F(RecordedStepsTest, OneDeviceGivesUpWhereOthersNeedItsMemory) {
  std::vector<std::vector<Array>> others;
  const auto take = [&](std::int64_t step, const Communicator& world) {
    others.resize(2);
    others[step % 2].clear();
    take_memory(world.context(), others[step % 2]);
    if (step == kManySteps) others.clear();
  };
  const Made recorded = expect_the_same({"needed", 1, kUnet, {}, kManySteps}, {.behind = take});
  if (recorded.records) {
    EXPECT_EQ(recorded.remark, "steps are not recorded as CUDA graphs: others need the memory that they use");
  }
}

/// Captures of a device of the fake CUDA runtime that fail (support/fake_cuda/fake_cuda.h).
class Spoilt {
 public:
  explicit Spoilt(const char* what) { ::setenv("JIGSAW_FAKE_CUDA_SPOILS", what, 1); }
  ~Spoilt() { ::unsetenv("JIGSAW_FAKE_CUDA_SPOILS"); }
  Spoilt(const Spoilt&) = delete;
  Spoilt& operator=(const Spoilt&) = delete;
};

void expect_nothing_recorded(const Made& made) {
  EXPECT_EQ(made.recorded_steps, 0);
  if (made.records) {
    EXPECT_EQ(made.remark.rfind("steps are not recorded as CUDA graphs: CUDA ", 0), 0U) << made.remark;
  }
}

/// Where a step cannot be recorded it runs unrecorded, and so do all others: in its middle, and when all of
/// it was put in.
TEST_F(RecordedStepsTest, SpoiltOneDeviceGoesOnWithoutGraphs) {
  for (const char* const what : {"0:60", "0:0", "0:upload"}) {
    SCOPED_TRACE(what);
    const Spoilt spoilt(what);
    expect_nothing_recorded(expect_the_same({"mixer", 1, kMixer, {"train.accumulate=2"}}));
  }
}

/// If just on one of the ranks; in the first of these while transfers of the pass are under way.
TEST_F(RecordedStepsTest, RanksOnNcclGoOnWithoutGraphs) {
  for (const char* const what : {"1:30", "1:40", "1:60", "1:0", "1:upload"}) {
    SCOPED_TRACE(what);
    const Spoilt spoilt(what);
    expect_nothing_recorded(expect_the_same(
        {"vit", 2, kVit, {R"(mesh={"domain": [1, 2]})", "zero=parameters", "train.precision=bf16"}}));
  }
}

constexpr const char* kNoDevice = "no step is recorded on the host";

/// What a device says of twenty steps without a model.
std::string remark_of(const std::function<Shape(int step)>& shape,
                      const std::function<void(Context&, const Batch&)>& work) {
  std::string remark;
  testing::run_test_ranks(1, {.time_limit_seconds = 600}, Backend::kCpu, [&](Communicator& world) {
    Context& context = world.context();
    RecordedSteps steps(context, world, true);
    for (int step = 1; step <= 20; ++step) {
      Batch batch;
      batch.input = Array(context, shape(step), DType::kFloat32, Purpose::kInput);
      steps.begin(step, batch, false);
      steps.first_piece(
          "all of it", [&] { work(context, batch); }, [] {});
      steps.end();
      remark += steps.take_remark();
    }
    if (context.backend() != Backend::kCuda) remark = kNoDevice;
  });
  return remark;
}

TEST_F(RecordedStepsTest, OneDeviceGivesUpWhereShapesVary) {
  const std::string said =
      remark_of([](int step) { return Shape{step}; },
                [](Context& context, const Batch& batch) { add(context, batch.input, batch.input); });
  EXPECT_TRUE(said == kNoDevice ||
              said ==
                  "steps are not recorded as CUDA graphs: batches are of more than 16 shapes and lengths of "
                  "rollouts")
      << said;
}

TEST_F(RecordedStepsTest, OneDeviceGivesUpWhereTheHostTakesPart) {
  const std::string said = remark_of([](int) { return Shape{2}; },
                                     [](Context& context, const Batch& batch) {
                                       write_values(context, batch.input, std::array{1.0, 2.0});
                                     });
  EXPECT_TRUE(said == kNoDevice ||
              said == "steps are not recorded as CUDA graphs: the host takes part in each")
      << said;
}

/// Where one rank cannot replay a step all run it unrecorded, and then record it together.
TEST_F(RecordedStepsTest, RanksOnNcclAgree) {
  std::vector<Array> others;
  const auto take = [&](std::int64_t step, const Communicator& world) {
    if (world.rank() != 1) return;
    if (step == 5) take_memory(world.context(), others);
    if (step == kSteps) others.clear();
  };
  const Made recorded =
      expect_the_same({"memory_of_one", 2, kUnet, {R"(mesh={"domain": [1, 2]})"}}, {.behind = take});
  if (recorded.records) {
    EXPECT_GE(recorded.recorded_steps, 4);
    EXPECT_LE(recorded.recorded_steps, kSteps - 3);
  }
}

/// Makes steps of one piece, of which enough are recorded.
void make_steps(
    Communicator& world, int count, const std::function<void(const Array& input)>& sums,
    const std::function<void()>& behind = [] {}) {
  Context& context = world.context();
  RecordedSteps steps(context, world, true);
  Batch batch;
  batch.input = filled(context, {2}, DType::kFloat32, 1.0, Purpose::kInput);
  int recorded = 0;
  for (int step = 1; step <= count; ++step) {
    steps.begin(step, batch, false);
    const Array& input = steps.input(batch).input;
    steps.first_piece(
        "sums", [&] { sums(input); }, [] {});
    steps.end();
    recorded += steps.recorded() ? 1 : 0;
    behind();
  }
  if (context.backend() == Backend::kCuda && world.records()) {
    EXPECT_GE(recorded, count - kPlain);
  }
}

/// A call of NCCL that is not recorded leaves no communicator to go on with: the run ends, and the switch is
/// named.
TEST_F(RecordedStepsTest, RanksOnNcclEndWhereNcclRecordsNothing) {
  const Spoilt spoilt("1:nccl");
  bool records = false;
  std::string said;
  testing::run_test_ranks(2, {.time_limit_seconds = 600}, Backend::kCpu, [&](Communicator& world) {
    const bool tells = world.rank() == 1;
    if (tells) records = world.context().backend() == Backend::kCuda && world.records();
    try {
      make_steps(world, 6, [&](const Array& input) { world.all_reduce(input); });
    } catch (const CommError& error) {
      if (tells) said = error.what();
    }
  });
  const std::string wanted =
      "in work that is recorded as a CUDA graph (\"train\": {\"graphs\": false} trains without): ";
  EXPECT_EQ(said.substr(0, wanted.size()), records ? wanted : "");
}

/// Calls of replays stand in the log as if they had been made anew.
TEST_F(RecordedStepsTest, RanksOnNcclLogCallsOfReplays) {
  constexpr int kMade = 6, kReplayed = kMade - kPlain, kEach = 2;
  testing::run_test_ranks(2, {.time_limit_seconds = 600}, Backend::kCpu, [&](Communicator& world) {
    const auto pair = world.split("pair", [](int rank) { return std::make_pair(0, rank); });
    make_steps(world, kMade, [&](const Array& input) {
      for (int i = 0; i < kEach; ++i) pair->all_reduce(input);
    });
    std::vector<std::int64_t> sequences, wanted(kReplayed * kEach);
    for (const CallLog::Entry& call : world.log()->last()) {
      if (call.group == "pair" && call.kind == Collective::kAllReduce) sequences.push_back(call.sequence);
    }
    std::iota(wanted.begin(), wanted.end(), (kMade - kReplayed) * kEach);
    ASSERT_GE(sequences.size(), wanted.size());
    sequences.erase(sequences.begin(), sequences.end() - std::ssize(wanted));
    EXPECT_EQ(sequences, wanted);
  });
}

/// In some groups nothing travels, where pieces are empty: those calls count as on ranks whose groups have
/// some.
TEST_F(RecordedStepsTest, RanksOnNcclCountCallsInWhichNothingTravels) {
  std::array<std::vector<double>, 4> fingerprints;
  std::array<std::vector<std::int64_t>, 4> ordinals;
  testing::run_test_ranks(4, {.time_limit_seconds = 600}, Backend::kCpu, [&](Communicator& world) {
    const auto pair = world.split("pair", [](int rank) { return std::make_pair(rank / 2, rank); });
    const Array piece =
        filled(world.context(), {world.rank() < 2 ? 3 : 0}, DType::kFloat32, 1.0, Purpose::kActivations);
    const auto sums = [&](const Array& input) {
      pair->all_reduce(piece);
      world.all_reduce(input);
      pair->all_reduce(piece);
    };
    make_steps(world, 6, sums, [&] {
      const auto rank = static_cast<std::size_t>(world.rank());
      fingerprints[rank].push_back(world.log()->fingerprint());
      ordinals[rank].push_back(world.log()->last().back().ordinal);
    });
  });
  for (std::size_t rank = 1; rank < fingerprints.size(); ++rank) {
    EXPECT_EQ(fingerprints[rank], fingerprints[0]) << rank;
    EXPECT_EQ(ordinals[rank], ordinals[0]) << rank;
  }
}

TEST_F(RecordedStepsTest, RanksOnNcclGiveTheSameBits) {
  for (const Case& one :
       {Case{"mixer_on_domain", 2, kMixer, {R"(mesh={"domain": [2, 1]})", "train.accumulate=2"}},
        Case{"vit_on_tensor", 2, kVit, {R"(mesh={"tensor": 2})", "train.precision=bf16"}},
        Case{"unet_on_data", 2, kUnet, {R"(mesh={"data": 2})", "zero=optimizer", "train.precision=bf16"}},
        Case{"unet_on_domain", 2, kUnet, {R"(mesh={"domain": [1, 2]})", "zero=parameters"}}}) {
    const Made recorded = expect_the_same(one);
    if (recorded.records) {
      EXPECT_GE(recorded.recorded_steps, kSteps - 3) << one.name;
    }
  }
}

}  // namespace
}  // namespace jigsaw
