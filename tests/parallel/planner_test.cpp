// Plans of real layers: as cheap as the best of all plans, found fast, and the same on every rank.
#include "parallel/planner.h"

#include <gtest/gtest.h>

#include <ctime>
#include <limits>
#include <set>

#include "base/text.h"
#include "comm/record/record.h"
#include "comm/thread/run_ranks.h"
#include "config/config.h"
#include "layers/registry.h"

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

/// The cost of plans by their definition, and the cheapest one by trying them all.
class Exhaustive {
 public:
  Exhaustive(const Trace& trace, const MeshShape& mesh, const CostModel& costs)
      : trace_(trace), mesh_(mesh), costs_(costs), homes_(trace.values.size()) {
    for (std::size_t v = 0; v < trace.values.size(); ++v) homes_[v] = homes_of(trace.values[v]);
    for (const Trace::Node& node : trace.nodes) {
      std::set<int> values(node.inputs.begin(), node.inputs.end());
      values.insert(node.output);
      tables_.push_back({{values.begin(), values.end()}, {}});
      fill(tables_.back(), node);
    }
  }

  /// The minimum over all homes of all values; for each of them every operation takes its best rows.
  double minimum() const {
    std::vector<std::size_t> homes(trace_.values.size(), 0);
    double best = std::numeric_limits<double>::infinity();
    do {
      double seconds = 0;
      for (const Table& table : tables_) seconds += table.seconds[index(table, homes)];
      best = std::min(best, seconds);
    } while (next(homes));
    return best;
  }

  double cost(const Plan& plan) const {
    double seconds = 0;
    std::vector<Placements> home(trace_.values.size());
    for (std::size_t v = 0; v < home.size(); ++v) home[v] = trace_.values[v].placements;
    for (std::size_t n = 0; n < trace_.nodes.size(); ++n) {
      const Trace::Node& node = trace_.nodes[n];
      const Decision& decision = plan.decisions[n];
      home[static_cast<std::size_t>(node.output)] = decision.output;
      std::vector<const Row*> rows(static_cast<std::size_t>(mesh_.axes), nullptr);
      for (int axis = 0; axis < mesh_.axes; ++axis) {
        for (const Row& row : node.signature.rows) {
          if (contains(decision.cut, axis) && row.output == decision.row_output[axis] &&
              row.inputs[0] == decision.inputs[0][axis] &&
              row.inputs.back() == decision.inputs.back()[axis]) {
            rows[static_cast<std::size_t>(axis)] = &row;
          }
        }
      }
      seconds += work(node, rows) + transfers(node, rows, home);
    }
    return seconds;
  }

 private:
  using Rows = std::vector<const Row*>;  // by axis; null where the axis has one rank

  const Trace::Value& value(int v) const { return trace_.values[static_cast<std::size_t>(v)]; }
  int size(int axis) const { return mesh_.size[static_cast<std::size_t>(axis)]; }
  double piece(const Shape& global, const Placements& placements) const {
    return static_cast<double>(Layout{global, placements}.box(mesh_, {}).extent.count());
  }
  double transfer(const Shape& global, const Placements& from, const Placements& to) const {
    return transfer_cost(mesh_, {global, from}, {global, to}, costs_.element_bytes).seconds(costs_);
  }

  /// Every dim may be cut that has enough elements; along data it is the sample.
  std::vector<Placements> homes_of(const Trace::Value& v) const {
    if (v.role != Trace::Role::kActivation) return {v.placements};
    std::vector<Placements> homes = {Placements{}};
    for (int axis = 0; axis < mesh_.axes; ++axis) {
      if (size(axis) == 1) continue;
      std::vector<Placements> next;
      for (const Placements& home : homes) {
        for (int dim = 0; dim < v.shape.rank(); ++dim) {
          if ((axis == 0 && dim > 0) || v.shape[dim] < size(axis)) continue;
          next.push_back(home);
          next.back()[axis] = Placement::shard(dim);
        }
      }
      homes = next;
    }
    return homes;
  }

  std::vector<Rows> row_combinations(const Trace::Node& node) const {
    std::vector<Rows> all = {Rows(static_cast<std::size_t>(mesh_.axes), nullptr)};
    for (int axis = 0; axis < mesh_.axes; ++axis) {
      if (size(axis) == 1) continue;
      std::vector<Rows> next;
      for (const Rows& rows : all) {
        for (const Row& row : node.signature.rows) {
          if (axis == 0 ? !(row.output == Placement::shard(0)) : units(node, row) < size(axis)) continue;
          next.push_back(rows);
          next.back()[static_cast<std::size_t>(axis)] = &row;
        }
      }
      all = next;
    }
    return all;
  }

  static std::int64_t units(const Trace::Node& node, const Row& row) {
    for (std::size_t i = 0; i < row.inputs.size(); ++i) {
      if (!row.inputs[i].is_shard()) continue;
      return (node.signature.inputs[i][row.inputs[i].dim] + row.inputs[i].unit - 1) / row.inputs[i].unit;
    }
    return 0;
  }

  Placements operand(const Rows& rows, std::size_t i) const {
    Placements placements;
    for (std::size_t axis = 0; axis < rows.size(); ++axis) {
      if (rows[axis] != nullptr) placements.of[axis] = rows[axis]->inputs[i];
    }
    return placements;
  }

  /// Local work of the rank with the largest pieces, statistics of rows, and parameters gathered twice and
  /// scattered.
  double work(const Trace::Node& node, const Rows& rows) const {
    double flops = node.signature.forward_flops, elements = piece(node.signature.output, output(rows)),
           seconds = 0;
    for (int axis = 0; axis < mesh_.axes; ++axis) {
      const Row* row = rows[static_cast<std::size_t>(axis)];
      if (row == nullptr) continue;
      // What axes before this one leave of the dim.
      std::int64_t left = units(node, *row);
      for (int before = 0; before < axis; ++before) {
        if (rows[static_cast<std::size_t>(before)] == row) left = (left + size(before) - 1) / size(before);
      }
      flops *= std::ceil(static_cast<double>(left) / size(axis)) / static_cast<double>(left);
      if (row->slice_bytes == 0) continue;
      const Shape piece = Layout{node.signature.inputs[0], operand(rows, 0)}.box(mesh_, {}).extent;
      const auto slice = static_cast<double>(piece.count() / piece[row->inputs[0].dim]);
      seconds += 2 * costs_.latency_seconds +
                 2 * static_cast<double>(row->slice_bytes) * slice / costs_.network_bytes_per_second;
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      elements += piece(node.signature.inputs[i], operand(rows, i));
      if (value(node.inputs[i]).role == Trace::Role::kParameter) seconds += gather(node, rows, i);
    }
    return seconds + 3 * flops / costs_.flops_per_second +
           3 * elements * costs_.element_bytes / costs_.memory_bytes_per_second;
  }

  double gather(const Trace::Node& node, const Rows& rows, std::size_t i) const {
    double holders = 1;
    for (int axis = 1; axis < mesh_.axes; ++axis) {
      if (!operand(rows, i)[axis].is_shard()) holders *= size(axis);
    }
    const double bytes = piece(node.signature.inputs[i], operand(rows, i)) * costs_.element_bytes;
    return 3 * bytes * (holders - 1) / holders / costs_.network_bytes_per_second;
  }

  Placements output(const Rows& rows) const {
    Placements placements;
    for (std::size_t axis = 0; axis < rows.size(); ++axis) {
      if (rows[axis] != nullptr) placements.of[axis] = rows[axis]->output;
    }
    return placements;
  }

  /// Inputs in (again in backward if it reads them), gradients back out, the result out and its gradient in.
  double transfers(const Trace::Node& node, const Rows& rows, const std::vector<Placements>& home) const {
    const Shape& shape = node.signature.output;
    const Placements kept = home[static_cast<std::size_t>(node.output)], made = output(rows);
    double seconds = transfer(shape, made, kept) + transfer(shape, dual(kept), dual(made));
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (value(node.inputs[i]).role == Trace::Role::kParameter) continue;
      const Placements held = home[static_cast<std::size_t>(node.inputs[i])], wanted = operand(rows, i);
      Placements gradient = wanted;
      for (std::size_t axis = 0; axis < rows.size(); ++axis) {
        gradient.of[axis] = gradient_placement(wanted.of[axis], rows[axis] != nullptr);
      }
      const Shape& input = node.signature.inputs[i];
      seconds += transfer(input, held, wanted) * (node.signature.saved[i] ? 2 : 1) +
                 transfer(input, gradient, dual(held));
    }
    return seconds;
  }

  /// Of an operation: the least cost over its rows, by the homes of its values.
  struct Table {
    std::vector<int> values;
    std::vector<double> seconds;
  };

  std::size_t index(const Table& table, const std::vector<std::size_t>& homes) const {
    std::size_t result = 0;
    for (const int v : table.values) {
      const auto at = static_cast<std::size_t>(v);
      result = result * homes_[at].size() + homes[at];
    }
    return result;
  }
  void fill(Table& table, const Trace::Node& node) const {
    const std::vector<Rows> combinations = row_combinations(node);
    std::vector<std::size_t> homes(trace_.values.size(), 0);
    std::vector<Placements> home(homes.size());
    do {
      for (const int v : table.values) {
        const auto at = static_cast<std::size_t>(v);
        home[at] = homes_[at][homes[at]];
      }
      double& best = table.seconds.emplace_back(std::numeric_limits<double>::infinity());
      for (const Rows& rows : combinations)
        best = std::min(best, work(node, rows) + transfers(node, rows, home));
    } while (next(homes, table.values));
  }

  /// The next combination of homes of these values, the last one fastest; false after the last combination.
  bool next(std::vector<std::size_t>& homes, const std::vector<int>& values) const {
    for (auto v = values.rbegin(); v != values.rend(); ++v) {
      const auto at = static_cast<std::size_t>(*v);
      if (++homes[at] < homes_[at].size()) return true;
      homes[at] = 0;
    }
    return false;
  }
  bool next(std::vector<std::size_t>& homes) const {
    std::vector<int> all(homes.size());
    for (std::size_t v = 0; v < all.size(); ++v) all[v] = static_cast<int>(v);
    return next(homes, all);
  }

  const Trace& trace_;
  const MeshShape mesh_;
  const CostModel& costs_;
  std::vector<std::vector<Placements>> homes_;
  std::vector<Table> tables_;
};

/// Machines on which different things are dear.
std::vector<CostModel> machines() {
  CostModel usual, slow_network, slow_start, slow_memory;
  slow_network.network_bytes_per_second = 1e7;
  slow_start.latency_seconds = 1e-2;
  slow_memory.memory_bytes_per_second = 1e8;
  return {usual, slow_network, slow_start, slow_memory};
}

void expect_cheapest(const Job& job, const std::string& block) {
  const MeshShape mesh = job.mesh();
  for (const CostModel& costs : machines()) {
    const PlanBook plans = job.plans(costs);
    const PlanBook::Entry& entry = plans.at(block);
    const Exhaustive all(entry.trace, mesh, costs);
    const double least = all.minimum();
    ASSERT_GT(least, 0);
    EXPECT_NEAR(entry.plan.seconds / least, 1, 1e-12) << entry.plan.to_string(entry.trace, mesh);
    EXPECT_NEAR(all.cost(entry.plan) / least, 1, 1e-12) << entry.plan.to_string(entry.trace, mesh);
  }
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

/// Twenty-four blocks on half a degree.
Job large_job() {
  return {
      {{"type", "weathermixer"}, {"patch", {8, 8}}, {"embed_dim", 768}, {"depth", 24}, {"positions", true}},
      {{361, 720}, 69, 69},
      1,
      {2, 2},
      2};
}

TEST(Planner, LargeModelsArePlannedInASecond) {
  const std::clock_t begin = std::clock();
  const PlanBook plans = large_job().plans();
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_TRUE(plans.has("blocks.23.channel"));
  EXPECT_LT(seconds, 1.0);
  RecordProperty("seconds", std::to_string(seconds));
  std::printf("planned in %.3f s of processor time\n", seconds);
}

TEST(Planner, EveryRankMakesTheSamePlan) {
  Job job{{{"type", "weathermixer"}, {"patch", {3, 7}}, {"embed_dim", 10}, {"depth", 1}, {"positions", true}},
          {{33, 49}, 5, 2},
          2,
          {2, 1},
          2};
  const MeshShape mesh = job.mesh();
  run_ranks(8, [&](Communicator& world) {
    const std::vector<std::string> texts = world.all_gather_text(job.plans(world).to_string(mesh));
    EXPECT_FALSE(texts[0].empty());
    for (const std::string& text : texts) EXPECT_EQ(text, texts[0]);
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
    EXPECT_NE(lines[n].find("rows: " + entry.plan.decisions[n].rows), std::string::npos) << lines[n];
  }
  EXPECT_NE(lines[0].find("[4, 12, 24, 12]{"), std::string::npos) << lines[0];
}

TEST(Planner, OneRankNeedsNoTransfer) {
  Job job{sequential({{"type", "channel_mixing"}}), {{12, 24}, 12, 12}, 1, {1, 1}, 1};
  const PlanBook plans = job.plans();
  const PlanBook::Entry& entry = plans.at("layers.0");
  for (const Decision& decision : entry.plan.decisions) {
    EXPECT_EQ(decision.cut, 0U);
    EXPECT_EQ(decision.rows, "");
  }
}

}  // namespace
}  // namespace jigsaw
