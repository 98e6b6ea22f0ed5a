// What one rank sends in a training step of a job of thousands of ranks, counted without the others: the
// table of docs/traffic.md (JIGSAW_WRITE_DOCS=1 writes it). And 256 ranks that are threads, against one.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "comm/agreement.h"
#include "comm/record/record.h"
#include "layers/training_run.h"
#include "support/documented_table.h"

namespace jigsaw {
namespace {

using Sizes = TrainingRun::MeshSizes;

constexpr const char* kBegin = "<!-- ranks -->\n";
constexpr const char* kEnd = "<!-- end of ranks -->\n";
constexpr const char* kBeginSmall = "<!-- redistributions -->\n";
constexpr const char* kEndSmall = "<!-- end of redistributions -->\n";

/// A mixer with one sample per rank along `data`.
TrainingRun mixer(const Sizes& mesh, Zero zero, int steps) {
  TrainingRun run;
  run.model = {{"type", "weathermixer"}, {"patch", {3, 7}},    {"embed_dim", 10}, {"depth", 2},
               {"final_norm", true},     {"output_map", false}};
  run.space = {12, 28};
  run.samples = mesh.data;
  run.zero = zero;
  run.steps = steps;
  return run;
}

/// What one rank sends, and how often it calls.
struct Counted {
  Sent data, control;
  std::int64_t calls = 0;

  static Counted of(const Traffic& traffic) {
    Counted result;
    for (std::size_t kind = 0; kind < kCollectives; ++kind) {
      result.data += traffic.sent[kind];
      result.calls += traffic.calls[kind];
    }
    result.control = traffic.sent[kCollectives];
    return result;
  }
};

/// Control calls of a step: whether the batch came, and whether to stop.
constexpr int kControlCalls = 2;
void agree(Communicator& world) {
  together(world, [] {});
  world.all_reduce(std::array{0.0}, ReduceOp::kMax);
}

/// One step of one rank: what two steps send less what one does.
Counted step_of(int number, const Sizes& mesh, Zero zero) {
  std::array<Counted, 2> runs;
  for (const int steps : {1, 2}) {
    Context context = Context::make_host(Backend::kReference, 1);
    const auto world = make_record_communicator(context, number, mesh.ranks());
    mixer(mesh, zero, steps).run_rank(*world, mesh);
    if (steps == 2) agree(*world);
    runs[static_cast<std::size_t>(steps - 1)] = Counted::of(world->traffic());
  }
  Counted step = runs[1];
  for (Sent Counted::*sent : {&Counted::data, &Counted::control}) {
    (step.*sent).messages -= (runs[0].*sent).messages;
    (step.*sent).bytes -= (runs[0].*sent).bytes;
  }
  step.calls -= runs[0].calls;
  return step;
}

/// The most of the first, a middle and the last rank.
Counted busiest(const Sizes& mesh, Zero zero) {
  Counted most;
  const int ranks = mesh.ranks();
  for (const int number : {0, ranks / 2 + 1, ranks - 1}) {
    const Counted step = step_of(number, mesh, zero);
    most.calls = std::max(most.calls, step.calls);
    for (Sent Counted::*sent : {&Counted::data, &Counted::control}) {
      (most.*sent).messages = std::max((most.*sent).messages, (step.*sent).messages);
      (most.*sent).bytes = std::max((most.*sent).bytes, (step.*sent).bytes);
    }
  }
  return most;
}

int log4(int n) {
  int levels = 0;
  for (int reach = 1; reach < n; reach *= 4) ++levels;
  return levels;
}

struct Family {
  const char* name;
  Zero zero;
};

TEST(ManyRanks, MessagesAndControlGrowNoFasterThanTheLogarithm) {
  std::string table =
      "| zero | ranks | mesh | calls | messages | MB | control messages | control "
      "bytes |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const Family& family : {Family{"none", Zero::kNone}, Family{"parameters", Zero::kParameters}}) {
    std::int64_t calls = 0;
    for (const int ranks : {8, 64, 512, 1024, 4096}) {
      const Sizes mesh{ranks / 4, {2, 1}, 2};
      const Counted step = busiest(mesh, family.zero);
      SCOPED_TRACE(concat(family.name, " on ", ranks, " ranks"));
      // As many calls on any number of ranks; each takes at most three messages of a level, an all_reduce of
      // much twice that. All-to-alls and exchanges of this model go to one other rank.
      if (calls == 0) calls = step.calls;
      EXPECT_EQ(step.calls, calls);
      EXPECT_LE(step.data.messages, calls * 2 * 3 * log4(ranks));
      EXPECT_LE(step.control.messages, kControlCalls * 3 * log4(ranks));
      EXPECT_LE(step.control.bytes, kControlCalls * 3 * log4(ranks) * 24.0);
      EXPECT_GT(step.control.messages, 0);
      char megabytes[32];
      std::snprintf(megabytes, sizeof megabytes, "%.3f", step.data.bytes / 1e6);
      table += concat("| ", family.name, " | ", ranks, " | ", mesh.data, " × [2, 1] × 2 | ", step.calls,
                      " | ", step.data.messages, " | ", megabytes, " | ", step.control.messages, " | ",
                      static_cast<std::int64_t>(step.control.bytes), " |\n");
    }
  }
  testing::expect_in_traffic_docs(kBegin, table, kEnd);
}

/// A value cut along one dim that is to be cut along another, of which each rank has something for each.
TEST(ManyRanks, SmallRedistributionsAreForwarded) {
  std::string table = "| ranks | to each, bytes | messages | MB |\n| --- | --- | --- | --- |\n";
  for (const std::int64_t elements : {16, 16384}) {
    for (const int ranks : {8, 64, 512, 1024, 4096}) {
      Context context = Context::make_meta();
      const auto world = make_record_communicator(context, ranks - 1, ranks);
      Mesh mesh(*world, 1, {}, ranks);
      const Rank rank{context, mesh};
      Layout rows{{ranks, ranks * elements}, {}}, columns = rows;
      rows.placements[mesh.tensor()] = Placement::shard(0);
      columns.placements[mesh.tensor()] = Placement::shard(1);
      const Array piece(context, rank.box(rows).extent, DType::kFloat32);
      redistribute(rank, {piece, rows}, columns);
      const Sent sent = world->traffic().sent[static_cast<std::size_t>(Collective::kAllToAll)];
      const auto bytes = static_cast<double>(4 * elements);
      if (elements == 16) {
        EXPECT_LE(sent.messages, 3 * log4(ranks)) << ranks;
        EXPECT_LE(sent.bytes, bytes * ranks * log4(ranks)) << ranks;
      } else {
        EXPECT_EQ(sent.messages, ranks - 1);
        EXPECT_EQ(sent.bytes, bytes * (ranks - 1));
      }
      char megabytes[32];
      std::snprintf(megabytes, sizeof megabytes, "%.3f", sent.bytes / 1e6);
      table += concat("| ", ranks, " | ", 4 * elements, " | ", sent.messages, " | ", megabytes, " |\n");
    }
  }
  testing::expect_in_traffic_docs(kBeginSmall, table, kEndSmall);
}

TEST(ManyRanks, TwoHundredAndFiftySixThreadsEqualOneRank) {
  const Sizes mesh{32, {2, 2}, 2};
  const TrainingRun run = mixer(mesh, Zero::kOptimizer, 2);
  const TrainingRun::Result one = run.run({}), many = run.run(mesh);
  EXPECT_LE(testing::relative_difference(many.losses, one.losses), 1e-9);
  EXPECT_LE(testing::relative_difference(many.norms, one.norms), 1e-9);
  ASSERT_EQ(many.parameters.size(), one.parameters.size());
  for (const auto& [name, parameter] : one.parameters) {
    EXPECT_LE(testing::relative_difference(many.parameters.at(name), parameter), 1e-9) << name;
  }
}

}  // namespace
}  // namespace jigsaw
