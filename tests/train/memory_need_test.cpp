#include "task/memory_need.h"

#include <gtest/gtest.h>

#include "base/memory.h"
#include "base/text.h"
#include "comm/record/record.h"
#include "comm/self/self.h"
#include "comm/thread/run_ranks.h"
#include "task/placed_model.h"
#include "train/opening_summary.h"
#include "train/step_count.h"

namespace jigsaw {
namespace memory_need_test {

Configuration configuration_with(const Json& train, const Json& mesh = "auto",
                                 const std::string& zero = "none", int embed_dim = 8) {
  Json json = {
      {"data", {{"files", {"x.nc"}}, {"variables", {"t2m"}}, {"train", {"2020-01-01", "2020-01-02"}}}},
      {"model", {{"type", "weathermixer"}, {"patch", {2, 2}}, {"embed_dim", embed_dim}, {"depth", 3}}},
      {"mesh", mesh},
      {"zero", zero},
      {"train", train}};
  return parse<Configuration>(json);
}

std::string message_of(const MemoryNeed& need, const Configuration& configuration, const MemoryRoom& room) {
  try {
    check_memory(need, configuration, room);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::string error_of(const MemoryNeed& need, const Configuration& configuration, int ranks,
                     std::int64_t room) {
  return message_of(need, configuration, {room, ranks});
}

TEST(MemoryNeed, IsWhatAnyPlanHolds) {
  const Configuration configuration = configuration_with({{"batch_size", 5}});
  const auto model = build_model(configuration.model, {{8, 12}, 4, 4});
  double elements = 0;
  for (const ParameterBlock* block : model->parameters()) {
    for (const auto& parameter : block->parameters())
      elements += static_cast<double>(parameter->shape().count());
  }
  // The input of 4 channels, 6 halves of blocks and the encoder of 8 channels on 4 x 6 patches, and the
  // result.
  const double numbers = 8 * 12 * 4 + 7 * 4 * 6 * 8 + 8 * 12 * 4, field = 8 * 12 * 4;
  run_ranks(4, [&](Communicator& world) {
    const Mesh mesh(world, 2, {2, 1}, 1);
    const MemoryNeed need = least_memory(*model, mesh, configuration, types_of(Precision::kFloat32), 5);
    // AdamW keeps two numbers of each parameter.
    EXPECT_DOUBLE_EQ(need.state, elements / 2 * 4 * 4);
    EXPECT_DOUBLE_EQ(need.activations, 5 * (numbers + field) / 4 * 4);
    // A batch of a rollout also has what it goes on from, and each lead its target.
    const Configuration all = configuration_with({{"batch_size", 5}, {"rollout", 7}}),
                        last = configuration_with(
                            {{"batch_size", 5}, {"rollout", 7}, {"rollout_gradient", "last"}});
    EXPECT_DOUBLE_EQ(least_memory(*model, mesh, all, types_of(Precision::kFloat32), 5).activations,
                     5 * (7 * numbers + (1 + 7) * field) / 4 * 4);
    EXPECT_DOUBLE_EQ(least_memory(*model, mesh, last, types_of(Precision::kFloat32), 5).activations,
                     5 * (numbers + (1 + 7) * field) / 4 * 4);
    EXPECT_EQ(ranks_on_a_machine(world), 4);
  });
}

/// Of each sample the members stand between blocks, and the batch is held once. Forecasts keep neither
/// gradients nor what backward reads.
TEST(MemoryNeed, OfMembersAndOfForecasts) {
  Configuration configuration = configuration_with({{"batch_size", 5}, {"rollout", 7}});
  configuration.ensemble = {6, 1, 1};
  const auto model = build_model(configuration.model, {{8, 12}, 4 + 2, 4});
  const double field = 8 * 12 * 4, input = 8 * 12 * 6, numbers = input + 7 * 4 * 6 * 8 + field;
  run_ranks(1, [&](Communicator& world) {
    const Mesh mesh(world, 1, {1, 1}, 1);
    const PrecisionTypes types = types_of(Precision::kFloat32);
    EXPECT_DOUBLE_EQ(least_memory(*model, mesh, configuration, types, 5).activations,
                     4 * 5 * (6 * 7 * numbers + (1 + 7) * field));
    const MemoryNeed forecasts = least_memory(*model, mesh, configuration, types, 5, false);
    EXPECT_DOUBLE_EQ(forecasts.activations, 4 * 5 * 6 * input);
    EXPECT_DOUBLE_EQ(4 * forecasts.state, least_memory(*model, mesh, configuration, types, 5).state);
  });
  try {
    check_memory({400.0 * (1 << 20), 1200.0 * (1 << 20)}, configuration, {1000 << 20, 1}, false);
    ADD_FAILURE() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(
        error.what(),
        "a rank needs at least 400 MiB for parameters and 1.2 GiB for one forecast or image, and 1 rank "
        "has 1000 MiB here; fewer members (--members) or more ranks that cut the model (mesh.domain, "
        "mesh.tensor) might fit");
  }
}

/// What a step is then found to hold is no less, on any mesh.
TEST(MemoryNeed, IsNoMoreThanAStepHolds) {
  for (const char* mesh : {R"({"data": 4})", R"({"domain": [2, 2]})", R"({"data": 2, "tensor": 2})"}) {
    for (const char* zero : {"none", "optimizer", "parameters"}) {
      for (const Json& train : {Json{{"batch_size", 4}}, Json{{"batch_size", 4}, {"rollout", 3}},
                                Json{{"batch_size", 4}, {"rollout", 3}, {"rollout_gradient", "last"}},
                                Json{{"batch_size", 2}, {"rollout", 2}}}) {
        Configuration configuration = configuration_with(train, Json::parse(mesh), zero);
        if (configuration.train.batch_size == 2) configuration.ensemble = {2, 2, 1};
        const DataDescription data{{8, 12}, make_channels(configuration.data, false)};
        Context context = Context::make_meta();
        const auto world = make_record_communicator(context, 0, 4);
        OpenedRun run(configuration, described_objective(configuration, data), *world);
        const PlacedModel& placed = run.placed();
        const MemoryNeed need =
            least_memory(placed.model(), placed.mesh(), configuration, placed.types(), placed.samples());
        const StepCount count = count_step(configuration, data, 0, 4, {});
        const std::int64_t state = count.parameter_bytes + count.gradient_bytes + count.optimizer_bytes;
        EXPECT_LE(need.state, static_cast<double>(state)) << mesh << " " << zero;
        EXPECT_LE(need.activations, static_cast<double>(count.activation_bytes + count.input_bytes))
            << mesh << " " << zero << train;
        EXPECT_LE(static_cast<double>(state), 3 * need.state) << mesh << " " << zero;
      }
    }
  }
}

TEST(MemoryNeed, BeyondTheRoomNamesTheKeysAndWhatWouldFit) {
  const Configuration configuration = configuration_with({{"batch_size", 100}});
  const std::int64_t room = 1000 << 20;
  EXPECT_EQ(error_of({400.0 * (1 << 20), 600.0 * (1 << 20)}, configuration, 1, room), "");
  EXPECT_EQ(
      error_of({400.0 * (1 << 20), 1200.0 * (1 << 20)}, configuration, 1, room),
      "train.batch_size 100: a rank needs at least 400 MiB for parameters, gradients and optimizer and 1.2 "
      "GiB for activations, and 1 rank has 1000 MiB here; train.batch_size 50 might fit, or this one in "
      "more parts (train.accumulate), or a smaller model (model.embed_dim and model.depth)");
  EXPECT_NE(error_of({400.0 * (1 << 20), 600.0 * (1 << 20)}, configuration, 2, room), "");
  EXPECT_EQ(error_of({3000.0 * (1 << 20), 10}, configuration, 1, room),
            "model.embed_dim and model.depth: a rank needs at least 2.9 GiB for parameters, gradients and "
            "optimizer and 10 B for activations, and 1 rank has 1000 MiB here; a model that needs 4 times "
            "less might fit, or more ranks that cut it (mesh, zero)");
  EXPECT_NE(error_of({1e30, 1e40}, configuration, 1, room).find("more than 8000 PiB"), std::string::npos);
  const std::string of_device = message_of({3e9, 1e9}, configuration, {room, 2, true});
  EXPECT_NE(of_device.find("2 ranks share 1000 MiB on a GPU; "), std::string::npos) << of_device;
}

TEST(MemoryNeed, OfThePlanIsWarnedOf) {
  Configuration configuration = configuration_with({{"batch_size", 4}});
  constexpr double kMebi = 1 << 20;
  const MemoryRoom room{std::int64_t{1000} << 20, 2, false};
  EXPECT_EQ(memory_warning(500 * kMebi, configuration, room), "");
  EXPECT_EQ(
      memory_warning(501 * kMebi, configuration, room),
      "memory: as planned a rank holds up to 501 MiB in a step, and 2 ranks share 1000 MiB here; a "
      "smaller train.batch_size, more parts of it (train.accumulate), train.recompute \"block\", a "
      "smaller model (model.embed_dim and model.depth) or more ranks that cut it (mesh, zero) take less");
  const MemoryRoom of_gpu{std::int64_t{1000} << 20, 1, true, std::int64_t{300} << 20};
  EXPECT_EQ(memory_warning(700 * kMebi, configuration, of_gpu), "");
  EXPECT_NE(memory_warning(701 * kMebi, configuration, of_gpu)
                .find("1 rank has 1000 MiB on a GPU, of which NCCL takes some 300 MiB; a smaller"),
            std::string::npos);
  configuration.train.recompute = Recompute::kBlock;
  EXPECT_EQ(memory_warning(501 * kMebi, configuration, room).find("recompute"), std::string::npos);
  EXPECT_EQ(memory_warning(1e30, configuration, MemoryRoom()).find("memory: as planned"), 0U);
}

TEST(RanksPerNode, AreTheMostConsecutiveOnesOfWhichEachGroupIsOnOneMachine) {
  const auto of = [](const char* machines) {
    std::vector<std::string> names;
    for (const char* each = machines; *each != 0; ++each) names.emplace_back(1, *each);
    return ranks_per_node(names);
  };
  EXPECT_EQ(of("a"), 1);
  EXPECT_EQ(of("aaa"), 3);
  EXPECT_EQ(of("aaaabbbb"), 4);
  EXPECT_EQ(of("aabbbb"), 2);
  EXPECT_EQ(of("aaab"), 3);
  EXPECT_EQ(of("aaaabbcc"), 2);
  EXPECT_EQ(of("aaabbccc"), 1);
  EXPECT_EQ(of("abab"), 1);
  run_ranks(3, [&](Communicator& world) { EXPECT_EQ(ranks_per_node(world), 3); });
}

/// By what each rank plans, of the memory of the machine that they share.
TEST(MemoryNeed, OfThePlanIsComparedWithThisMachineWhenARunOpens) {
  const auto opening = [](std::int64_t samples) {
    const Configuration configuration =
        configuration_with({{"batch_size", samples}, {"steps", 1}}, "auto", "none", 512);
    const DataDescription data{{24, 36}, make_channels(configuration.data, false)};
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    run_ranks(2, [&](Communicator& world) {
      OpenedRun run(configuration, described_objective(configuration, data), world);
      Log log(world.rank() == 0);
      tell_opening(log, run, world.size());
    });
    ::testing::internal::GetCapturedStdout();
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(opening(4).find("memory: as planned"), std::string::npos);
  const std::string beyond = opening(1 << 24);  // tens of TiB
  EXPECT_NE(beyond.find("memory: as planned a rank holds up to "), std::string::npos) << beyond;
  EXPECT_NE(beyond.find(" in a step, and 2 ranks share "), std::string::npos) << beyond;
}

/// Ranks that are only planned for have all the room that they ask for.
TEST(MemoryNeed, IsNotComparedWithThisMachineForRanksElsewhere) {
  Context meta = Context::make_meta();
  const auto record = make_record_communicator(meta, 0, 4096);
  EXPECT_EQ(memory_room(*record).bytes, MemoryRoom().bytes);
  Context host = Context::make_host(Backend::kReference, 1);
  const MemoryRoom here = memory_room(*make_self_communicator(host));
  EXPECT_EQ(here.bytes, memory_limit());
  EXPECT_EQ(here.ranks, 1);
}

}  // namespace memory_need_test
}  // namespace jigsaw
