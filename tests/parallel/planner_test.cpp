// Plans of real layers: as cheap as the best of all plans, found fast, and the same on every rank.
#include "parallel/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "autograd/field_operations.h"
#include "autograd/operations.h"
#include "base/text.h"
#include "comm/record/record.h"
#include "comm/thread/run_ranks.h"
#include "config/config.h"
#include "layers/registry.h"
#include "parallel/counted_plan.h"
#include "support/exhaustive_plan.h"

namespace jigsaw {
namespace {

struct ModelSection {
  Tagged model;
};
void declare(Keys<ModelSection>& keys) {
  keys.tagged("model", &ModelSection::model, model_types).required().doc("The network.");
}

struct Job {
  Json model;
  ModelDescription description;
  int data = 1;
  std::vector<int> domain = {1};
  int tensor = 1;

  int ranks() const {
    int product = data * tensor;
    for (const int size : domain) product *= size;
    return product;
  }
  MeshShape mesh() const {
    Context context = Context::make_meta();
    const auto world = make_record_communicator(context, 0, ranks());
    return Mesh(*world, data, domain, tensor).shape();
  }
  /// The plans that this rank makes.
  PlanBook plans(Communicator& world, CostModel costs = {}) const {
    Mesh mesh(world, data, domain, tensor);
    const Rank rank{world.context(), mesh};
    const auto built = build_model(parse<ModelSection>(Json{{"model", model}}).model, description);
    PlanBook plans(costs);
    plan_and_materialise(*built, rank, plans, 4, Zero::kNone, DType::kFloat32, DType::kFloat32, 1);
    return plans;
  }
  PlanBook plans(CostModel costs = {}) const {
    Context context = Context::make_meta();
    return plans(*make_record_communicator(context, 0, ranks()), costs);
  }
};

Json sequential(const Json& layer) {
  return {{"type", "sequential"}, {"layers", Json::array({layer})}};
}
const Json kNorm = {{"type", "layer_norm"}};

/// Machines on which different things are dear.
std::vector<CostModel> machines() {
  CostModel usual, slow_network, slow_start, slow_memory, nodes;
  slow_network.network.bytes_per_second = 1e7;
  slow_start.network.latency_seconds = 1e-2;
  slow_memory.memory_bytes_per_second = 1e8;
  // Nodes of two ranks, on which little else counts than what leaves them.
  nodes.node = {1e10, 1e-7};
  nodes.network = {1e8, 1e-6};
  nodes.ranks_per_node = 2;
  CostModel levels = nodes;  // in which all that can travels in two levels
  levels.two_levels_from = 0;
  return {usual,
          slow_network,
          slow_start,
          slow_memory,
          nodes,
          levels,
          cost_model(Device::kCuda, DType::kFloat32, 2)};
}

void expect_cheapest(const PlanBook::Entry& entry, const MeshShape& mesh, const CostModel& costs) {
  const testing::ExhaustivePlan all(entry.trace, mesh, costs);
  const double least = all.minimum();
  ASSERT_GT(least, 0);
  // Where pieces are uneven, the planner takes what the busiest rank sends up to a remainder.
  constexpr double kRemainder = 1e-4;
  EXPECT_NEAR(entry.plan.seconds / least, 1, kRemainder) << entry.plan.to_string(entry.trace, mesh);
  EXPECT_NEAR(all.cost(entry.plan) / least, 1, kRemainder) << entry.plan.to_string(entry.trace, mesh);
}

void expect_cheapest(const Job& job, const std::string& block) {
  for (const CostModel& costs : machines()) expect_cheapest(job.plans(costs).at(block), job.mesh(), costs);
}

/// On meshes with at most two active axes beside data.
void expect_cheapest_on_meshes(const Json& layer, std::int64_t channels) {
  const Job base{sequential(layer), {{12, 24}, 12, channels}};
  struct Sizes {
    int data;
    std::vector<int> domain;
    int tensor;
  };
  for (const Sizes& sizes : {Sizes{1, {2, 1}, 1}, {1, {1, 1}, 3}, {1, {1, 3}, 2}, {2, {3, 1}, 2}}) {
    Job job = base;
    job.data = sizes.data;
    job.domain = sizes.domain;
    job.tensor = sizes.tensor;
    expect_cheapest(job, "layers.0");
  }
}

TEST(Planner, LinearIsCheapest) {
  const Json linear = {{"type", "linear"}, {"features", 36}};
  expect_cheapest_on_meshes(linear, 36);
  expect_cheapest({sequential(linear), {{12, 24}, 12, 36}, 1, {2, 2}, 2}, "layers.0");
}

TEST(Planner, MlpIsCheapest) {
  expect_cheapest_on_meshes({{"type", "channel_mixing"}, {"hidden_ratio", 4.0}}, 12);
}

TEST(Planner, TokenHalfBlockIsCheapest) {
  expect_cheapest_on_meshes(
      {{"type", "residual"}, {"layers", {kNorm, {{"type", "token_mixing"}, {"hidden_ratio", 0.5}}}}}, 12);
}

TEST(Planner, ChannelHalfBlockIsCheapest) {
  expect_cheapest_on_meshes({{"type", "residual"}, {"layers", {kNorm, {{"type", "channel_mixing"}}}}}, 12);
}

TEST(Planner, PatchesAreCheapest) {
  Job job{{{"type", "weathermixer"}, {"patch", {3, 4}}, {"embed_dim", 12}, {"depth", 1}}, {{18, 48}, 6, 6}};
  for (const std::vector<int>& domain : {std::vector<int>{2, 1}, {1, 1}, {1, 3}}) {
    job.domain = domain;
    job.tensor = 2;
    expect_cheapest(job, "encoder");
    expect_cheapest(job, "decoder");
  }
}

TEST(Planner, VolumesAreCheapest) {
  const Json norm_and_mlp = {{"type", "residual"},
                             {"layers", {kNorm, {{"type", "channel_mixing"}, {"hidden_ratio", 2.0}}}}};
  Job job{sequential(norm_and_mlp), {{6, 4, 8}, 6, 6}, 1, {2, 1, 2}, 1};
  expect_cheapest(job, "layers.0");
}

/// An operation with two outputs: the channels go two ways and meet again.
TEST(Planner, SeveralOutputsAreCheapest) {
  for (const auto& [domain, tensor] :
       {std::pair{std::vector{2, 1}, 1}, {std::vector{1, 1}, 3}, {std::vector{1, 2}, 2}}) {
    for (const CostModel& costs : machines()) {
      Context context = Context::make_meta();
      const auto world = make_record_communicator(context, 0, domain[0] * domain[1] * tensor);
      Mesh mesh(*world, 1, domain, tensor);
      ParameterBlock parameters("ways");
      const Variable weight(parameters.add("weight", {12, 6}, Initial::constant(0)));
      PlanBook plans(costs);
      Tape({context, mesh}, plans, Tape::Mode::kTrace)
          .block({"ways", &parameters}, {Variable::traced(mesh.field_layout({2, 12, 24, 18}), -1)},
                 [&](Tape& tape, const std::vector<Variable>& x) {
                   const std::vector<Variable> ways = split(tape, x[0], 3, {6, 12});
                   return concatenate(tape, contract(tape, "bhwk,nk->bhwn", ways[0], weight), ways[1]);
                 });
      expect_cheapest(plans.at("ways"), mesh.shape(), costs);
    }
  }
}

/// Twenty-four blocks on half a degree.
Job large_job() {
  return {
      {{"type", "weathermixer"}, {"patch", {8, 8}}, {"embed_dim", 768}, {"depth", 24}, {"positions", true}},
      {{361, 720}, 69, 69},
      1,
      {2, 2},
      2};
}

/// The blocks are planned once each, however often they come, and the planner looks at some millions of ways
/// a second (benchmarks/plan measures it): so this bounds the time of planning whatever the machine.
void expect_planned(const Job& job, double most_ways, const CostModel& costs = {}) {
  const PlanBook plans = job.plans(costs);
  std::vector<const Trace*> planned;
  double ways = 0;
  for (int i = 0; i < 24; ++i) {
    for (const char* half : {"token", "channel"}) {
      const Trace& trace = plans.at(concat("blocks.", i, ".", half)).trace;
      if (std::any_of(planned.begin(), planned.end(), [&](const Trace* one) { return *one == trace; }))
        continue;
      planned.push_back(&trace);
      ways += static_cast<double>(make_counted_plan(trace, job.mesh(), plans.model()).looked_at);
    }
  }
  EXPECT_EQ(planned.size(), 2);
  EXPECT_LT(ways, most_ways);
  std::printf("24 blocks on domain [%s] x tensor %d: %.2f million ways looked at\n",
              join(job.domain, ", ").c_str(), job.tensor, ways * 1e-6);
}

TEST(Planner, LargeModelsArePlannedFast) {
  expect_planned(large_job(), 1e6);
}

/// Where a byte takes other times along other axes, bounds are as near.
TEST(Planner, LargeModelsArePlannedFastOnNodesOfGpus) {
  const CostModel gpus = cost_model(Device::kCuda, DType::kBfloat16, 8);
  expect_planned(large_job(), 1e6, gpus);
  Job job = large_job();
  job.domain = {4, 2};
  job.tensor = 4;
  expect_planned(job, 1e6, gpus);
}

TEST(Planner, LargeVolumesArePlannedFast) {
  Job job{{{"type", "weathermixer"}, {"patch", {8, 8, 8}}, {"embed_dim", 768}, {"depth", 24}},
          {{128, 256, 256}, 3, 3},
          1,
          {2, 2, 2},
          1};
  expect_planned(job, 1e6);
  // 16 ranks and four axes that may cut any of six letters.
  job.tensor = 2;
  expect_planned(job, 1.5e7);
}

/// A field cut in patches passes an operation whose rules are in units of one.
TEST(Planner, UnitsScale) {
  const MeshShape mesh{3, {1, 2, 1}};
  const Shape shape{1, 12, 5};
  Placements patches;
  patches[1] = Placement::shard(1, 4);
  Trace trace;
  trace.values = {{shape, Trace::Role::kPinned, patches, "x"}, {shape, Trace::Role::kPinned, patches, "y"}};
  Signature signature{{}, "copy", {shape}, {shape}, rules_of_letters({letters("bwc")}, letters("bwc")),
                      1,  {false}};
  trace.nodes = {{signature, {0}, {1}}};
  const Plan plan = make_plan(trace, mesh, {});
  EXPECT_EQ(plan.decisions[0].inputs[0], patches);
  EXPECT_EQ(plan.decisions[0].rule_outputs[0], patches);
}

TEST(Planner, EveryRankMakesTheSamePlan) {
  Job job{{{"type", "weathermixer"}, {"patch", {3, 7}}, {"embed_dim", 10}, {"depth", 1}, {"positions", true}},
          {{33, 49}, 5, 2},
          2,
          {2, 1},
          2};
  const MeshShape mesh = job.mesh();
  run_ranks(8, [&](Communicator& world) {
    const std::string text = job.plans(world).to_string(mesh);
    EXPECT_FALSE(text.empty());
    EXPECT_EQ(text, world.broadcast_text(text));
  });
}

TEST(Planner, PrintsOneLinePerOperation) {
  Job job{sequential({{"type", "channel_mixing"}}), {{12, 24}, 12, 12}, 1, {2, 1}, 2};
  const PlanBook plans = job.plans();
  const PlanBook::Entry& entry = plans.at("layers.0");
  ASSERT_EQ(entry.trace.nodes.size(), 4U);
  const std::string text = entry.plan.to_string(entry.trace, job.mesh());
  const std::vector<std::string> lines = split(text, '\n');
  ASSERT_EQ(lines.size(), 5U);  // the last one ends with a newline
  EXPECT_TRUE(lines[4].empty());
  for (std::size_t n = 0; n < 4; ++n) {
    EXPECT_NE(lines[n].find(entry.trace.nodes[n].signature.name), std::string::npos) << lines[n];
    EXPECT_NE(lines[n].find("rules: " + entry.plan.decisions[n].rules), std::string::npos) << lines[n];
  }
  EXPECT_NE(lines[0].find("[4, 12, 24, 12]{"), std::string::npos) << lines[0];
}

TEST(Planner, OneRankNeedsNoTransfer) {
  Job job{sequential({{"type", "channel_mixing"}}), {{12, 24}, 12, 12}, 1, {1, 1}, 1};
  const PlanBook plans = job.plans();
  const PlanBook::Entry& entry = plans.at("layers.0");
  for (const Decision& decision : entry.plan.decisions) {
    EXPECT_EQ(decision.cut, 0U);
    EXPECT_EQ(decision.rules, "");
  }
}

}  // namespace
}  // namespace jigsaw
