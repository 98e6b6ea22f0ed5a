// Bytes that a training step of a block sends, counted on every mesh, beside what known schemes send: the
// tables of docs/traffic.md. JIGSAW_WRITE_DOCS=1 writes them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iomanip>
#include <limits>
#include <map>
#include <set>
#include <sstream>

#include "base/text.h"
#include "comm/record/record.h"
#include "config/config.h"
#include "layers/registry.h"
#include "layers/traffic_blocks.h"
#include "support/documented_table.h"
#include "support/exhaustive_plan.h"

namespace jigsaw {
namespace {

using testing::ExhaustivePlan;
using testing::kNone;
using testing::MeshSizes;
using testing::Sizes;
using testing::TrafficBlock;

struct ModelSection {
  Tagged model;
};
void declare(Keys<ModelSection>& keys) {
  keys.tagged("model", &ModelSection::model, model_types).required().doc("The network.");
}

constexpr double kBytes = 4;

struct Counted {
  double forward = 0, backward = 0;  ///< bytes that the busiest rank sends
  double exchanged = 0;              ///< of which in exchanges
  double beyond = 0;                 ///< that leave its node, as far as known, of the rank with most
  double imbalance = 1;              ///< FLOPs, largest over mean

  double total() const { return forward + backward; }
};

/// What a rank sends, call by call.
class SentCalls : public CallObserver {
 public:
  struct Call {
    std::string label;  ///< of the group
    Collective kind;
    double bytes;
  };

  std::size_t started(const jigsaw::Call& call, const std::string& label, const Sent& /*sent*/) override {
    if (call.kind != Collective::kControl) calls_.push_back({label, call.kind, call.sent_bytes});
    return 0;
  }
  void waited(std::size_t /*number*/) override {}
  const std::vector<Call>& calls() const { return calls_; }

 private:
  std::vector<Call> calls_;
};

/// Of bytes that a group sends in so many reductions and gathers of equal size, those that leave a node.
double leaving_node(const NodeGrid& grid, double bytes, int calls) {
  const bool levels = grid.several() && grid.bytes_kept_within(bytes / calls) >= kTwoLevelsFrom;
  return levels ? bytes * grid.share_between() : bytes;
}

/// A model on one rank of a mesh, on arrays without data.
class CountedModel {
 public:
  /// @param first  another rank, whose plans this one takes; null: it makes them by these costs.
  CountedModel(const Json& model, const ModelDescription& description, const MeshSizes& sizes, int number,
               const CostModel& costs, const CountedModel* first = nullptr)
      : context_(Context::make_meta()),
        world_(make_record_communicator(context_, number, sizes.ranks(), &sent_)),
        mesh_(*world_, 1, sizes.domain, sizes.tensor),
        rank_{context_, mesh_},
        model_(build_model(parse<ModelSection>(Json{{"model", model}}).model, description)),
        plans_(costs) {
    if (first != nullptr) {
      for (const ParameterBlock* block : first->model_->parameters())
        plans_.add("known: " + block->path(), first->plans_.at(block->path()));
    }
    plan_and_materialise(*model_, rank_, plans_, 1, Zero::kNone, DType::kFloat32, DType::kFloat32, 1);
  }

  /// A step of this rank: its bytes, and in `imbalance` its FLOPs.
  Counted step(int ranks_per_node) {
    const Layout in = model_->input_layout(mesh_, 1), out = model_->output_layout(mesh_, 1);
    Tape tape(rank_, plans_, Tape::Mode::kRecord);
    const Variable x({Array(context_, rank_.box(in).extent, DType::kFloat32), in}, true);
    const Variable y = model_->forward(tape, x);
    Counted counted;
    counted.forward = world_->traffic().total_bytes();
    y.slot()->add(rank_, {Array(context_, rank_.box(out).extent, DType::kFloat32), out});
    tape.backward();
    counted.backward = world_->traffic().total_bytes() - counted.forward;
    counted.exchanged = world_->traffic().sent_bytes[static_cast<std::size_t>(Collective::kExchange)];
    counted.imbalance = context_.tally().flops;
    counted.beyond = beyond_nodes(ranks_per_node);
    return counted;
  }

  /// The least bytes with which any rules and layouts of its blocks run; none where there are too many to
  /// try.
  double least_bytes() const {
    double least = 0;
    for (const ParameterBlock* block : model_->parameters()) {
      const Trace& trace = plans_.at(block->path()).trace;
      if (layouts(trace) > kMostLayouts || joins(trace)) return kNone;
      least += ExhaustivePlan(trace, mesh_.shape(), plans_.model()).minimum();
    }
    return least;
  }

 private:
  static constexpr double kMostLayouts = 2e6;

  /// What a skip moves is bounded, not counted, by its rules.
  static bool joins(const Trace& trace) {
    return std::any_of(trace.nodes.begin(), trace.nodes.end(), [](const Trace::Node& node) {
      return std::any_of(node.signature.rules.begin(), node.signature.rules.end(),
                         [](const ShardingRule& rule) { return rule.moves_result; });
    });
  }

  double beyond_nodes(int ranks_per_node) {
    const MeshShape& shape = mesh_.shape();
    const AxisSet in_node = axes_within_nodes(shape, ranks_per_node);
    std::map<std::string, NodeGrid> across;  // by label
    if ((mesh_.all_axes() & ~in_node) != 0)
      across[world_->label()] = node_grid(shape, mesh_.all_axes(), ranks_per_node);
    for (AxisSet axes = 1; axes <= mesh_.all_axes(); ++axes) {
      if (mesh_.active(axes) == axes && (axes & ~in_node) != 0)
        across[mesh_.communicator(axes).label()] = node_grid(shape, axes, ranks_per_node);
    }
    double sum = 0;
    for (const SentCalls::Call& call : sent_.calls()) {
      const auto group = across.find(call.label);
      if (group == across.end()) continue;
      const bool reduced = call.kind == Collective::kAllReduce;
      const bool in_levels =
          reduced || call.kind == Collective::kReduceScatter || call.kind == Collective::kAllGather;
      sum += in_levels ? leaving_node(group->second, call.bytes, reduced ? 2 : 1) : call.bytes;
    }
    return sum;
  }

  double layouts(const Trace& trace) const {
    double count = 1;
    for (const Trace::Value& value : trace.values) {
      if (value.role != Trace::Role::kActivation) continue;
      for (int axis = 0; axis < mesh_.shape().axes; ++axis) {
        double dims = 0;
        for (const std::int64_t extent : value.shape) dims += extent >= mesh_.size(axis) ? 1 : 0;
        if (mesh_.size(axis) > 1) count *= dims;
      }
    }
    return count;
  }

  Context context_;
  SentCalls sent_;
  std::unique_ptr<Communicator> world_;
  Mesh mesh_;
  Rank rank_;
  std::unique_ptr<Model> model_;
  PlanBook plans_;
};

ModelDescription description_of(const Sizes& sizes) {
  const auto side = static_cast<std::int64_t>(sizes.side),
             channels = static_cast<std::int64_t>(sizes.channels);
  return {{side, side}, channels, channels};
}

/// A step on every rank of the mesh, by these costs' plan, which the first makes.
Counted count(const Json& model, const ModelDescription& description, const MeshSizes& sizes,
              const CostModel& costs, int ranks_per_node = 1) {
  Counted busiest;
  double flops = 0, largest = 0, beyond = 0;
  std::vector<std::unique_ptr<CountedModel>> ranks;
  for (int number = 0; number < sizes.ranks(); ++number) {
    ranks.push_back(std::make_unique<CountedModel>(model, description, sizes, number, costs,
                                                   number == 0 ? nullptr : ranks.front().get()));
    const Counted one = ranks.back()->step(ranks_per_node);
    flops += one.imbalance;
    largest = std::max(largest, one.imbalance);
    beyond = std::max(beyond, one.beyond);
    if (one.total() > busiest.total()) busiest = one;
  }
  busiest.imbalance = largest * sizes.ranks() / flops;
  busiest.beyond = beyond;
  return busiest;
}

/// A rank with an accelerator: memory is much faster than the network.
CostModel accelerator() {
  CostModel costs;
  costs.flops_per_second = 1e14;
  costs.memory_bytes_per_second = 1.5e12;
  costs.network.bytes_per_second = 2.5e10;
  return costs;
}

/// Seconds are bytes sent.
CostModel bytes_only() {
  CostModel costs;
  costs.flops_per_second = costs.memory_bytes_per_second = std::numeric_limits<double>::infinity();
  costs.network = {1, 0};
  return costs;
}

std::string megabytes(double bytes) {
  if (bytes < 0) return "–";
  std::ostringstream text;
  text << std::fixed << std::setprecision(2) << bytes / 1e6;
  return text.str();
}

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

/// How many blocks on meshes there are, and of how many all plans were tried.
struct Tried {
  int all = 0, exhaustively = 0;
};

/// The most that the zeros weigh which make shares of a layer's parameters equal, gathered in forward and
/// backward and scattered: fewer than eight a rank.
double padding(const MeshSizes& mesh) {
  return kBytes * 3 * (mesh.q() - 1) * 8 * mesh.q();
}

/// One line of the table, and what it must hold.
std::string line_of(const TrafficBlock& block, const Sizes& sizes, const MeshSizes& mesh, Tried& tried) {
  constexpr double kSame = 1e-9, kShares = 1e-3;  // some shares are longer
  const std::string what =
      concat(block.name, " ", sizes.tokens(), " × ", sizes.channels, " on ", mesh.to_string());
  const Json model = block.model(sizes);
  const ModelDescription description = description_of(sizes);
  const Counted ours = count(model, description, mesh, {});
  const double best = kBytes * block.best_known(sizes, mesh).total();
  const double original = block.original(sizes, mesh), all = kBytes * gathered(block, sizes, mesh);
  EXPECT_GT(ours.total(), 0) << what;
  EXPECT_LE(ours.total(), best * (1 + kSame) + padding(mesh)) << what;
  if (block.below_gathered) {
    EXPECT_LE(ours.total(), all) << what;
  }
  if (original != kNone) {
    EXPECT_LE(ours.total(), kBytes * original * (1 + kSame) + padding(mesh)) << what;
  }
  EXPECT_LE(ours.imbalance, 1.02) << what;
  EXPECT_LE(count(model, description, mesh, accelerator()).total(), best * (1 + kSame) + padding(mesh))
      << what;

  const double least = CountedModel(model, description, mesh, 0, bytes_only()).least_bytes();
  ++tried.all;
  if (least != kNone) {
    ++tried.exhaustively;
    const double fewest = count(model, description, mesh, bytes_only()).total();
    EXPECT_NEAR(fewest / least, 1, kShares) << what;
    EXPECT_GE(ours.total(), least * (1 - kShares)) << what;
  }
  std::ostringstream imbalance;
  imbalance << std::fixed << std::setprecision(3) << ours.imbalance;
  return concat("| ", block.name, " | ", sizes.tokens(), " × ", sizes.channels, " | ", mesh.to_string(),
                " | ", megabytes(ours.forward), " | ", megabytes(ours.backward), " | ",
                megabytes(ours.total()), " | ", megabytes(least), " | ", megabytes(best), " | ",
                megabytes(original == kNone ? kNone : kBytes * original), " | ", megabytes(all), " | ",
                imbalance.str(), " |\n");
}

TEST(Traffic, NeverAboveKnownSchemes) {
  std::string table =
      "| block | T × C | mesh | forward | backward | ours | least | (a) best known | (b) original Jigsaw | "
      "(c) all gathered | FLOPs max/mean |\n|" +
      repeated(" --- |", 11) + "\n";
  const std::vector<MeshSizes> meshes = {{{2, 1}, 1}, {{1, 1}, 2}, {{2, 2}, 1}, {{2, 1}, 2},
                                         {{1, 1}, 4}, {{2, 2}, 2}, {{4, 1}, 2}, {{2, 1}, 4}};
  Tried tried;
  for (const TrafficBlock& block : testing::traffic_blocks()) {
    for (const Sizes& sizes : block.sizes) {
      for (const MeshSizes& mesh : meshes) table += line_of(block, sizes, mesh, tried);
    }
  }
  std::printf("exhaustive search in %d of %d lines\n", tried.exhaustively, tried.all);
  EXPECT_GT(tried.exhaustively, tried.all / 2);
  testing::expect_in_traffic_docs("<!-- table -->\n", table);
}

constexpr int kGpusPerNode = 8;

CostModel gpus() {
  return cost_model(Device::kCuda, DType::kFloat32, kGpusPerNode);
}

/// Seconds are bytes sent, each by its link.
CostModel bytes_by_link() {
  CostModel costs = bytes_only();
  costs.network = {gpus().network.bytes_per_second, 0};
  costs.node = {gpus().node.bytes_per_second, 0};
  costs.ranks_per_node = kGpusPerNode;
  costs.two_levels_from = kTwoLevelsFrom;
  return costs;
}

/// Only what leaves a node counts.
CostModel bytes_beyond_nodes() {
  CostModel costs = bytes_by_link();
  costs.node.bytes_per_second = std::numeric_limits<double>::infinity();
  return costs;
}

double seconds_by_link(double total, double beyond) {
  return (total - beyond) / gpus().node.bytes_per_second + beyond / gpus().network.bytes_per_second;
}

/// What leaves a node of what a scheme sends along `domain`: of gathers and reductions what does in two
/// levels.
double beyond_nodes(const testing::Elements& known, const MeshSizes& mesh) {
  MeshShape shape{static_cast<int>(mesh.domain.size()) + 1, {}};
  std::copy(mesh.domain.begin(), mesh.domain.end(), shape.size.begin());
  shape.size[mesh.domain.size()] = mesh.tensor;
  const NodeGrid grid = node_grid(shape, axis_bit(shape.axes - 1) - 1, kGpusPerNode);
  const double share = grid.several() ? grid.share_between() : 1;
  return kBytes * (known.domain - (1 - share) * known.gathered);
}

/// One line of the tables of GPUs, and what it must hold.
std::string gpu_line(const TrafficBlock& block, const Sizes& sizes, const MeshSizes& mesh) {
  constexpr double kSame = 1e-9, kOfFewest = 1.25, kOfFastest = 1.2, kOfBeyond = 1.15;
  const std::string what =
      concat(block.name, " ", sizes.tokens(), " × ", sizes.channels, " on ", mesh.to_string());
  const auto counted = [&](const CostModel& costs) {
    return count(block.model(sizes), description_of(sizes), mesh, costs, kGpusPerNode);
  };
  const Counted ours = counted(gpus()), fewest = counted(bytes_only()), fastest = counted(bytes_by_link());
  const testing::Elements known = block.best_known(sizes, mesh);
  EXPECT_GT(ours.total(), 0) << what;
  EXPECT_LE(ours.imbalance, 1.02) << what;
  std::string line =
      concat("| ", block.name, " | ", sizes.tokens(), " × ", sizes.channels, " | ", mesh.to_string(), " | ",
             megabytes(ours.forward), " | ", megabytes(ours.backward), " | ", megabytes(ours.total()), " | ",
             megabytes(fewest.total()), " | ", megabytes(kBytes * known.total()), " |");
  if (mesh.ranks() <= kGpusPerNode) {
    EXPECT_LE(ours.total(), kBytes * known.total() * (1 + kSame)) << what;
    EXPECT_LE(ours.total(), fewest.total() * kOfFewest) << what;
    return line + "\n";
  }
  const double seconds = seconds_by_link(ours.total(), ours.beyond), known_beyond = beyond_nodes(known, mesh);
  // A U-Net's weights travel layer by layer, some in too little for two levels.
  const double of_known = block.name == "U-Net" ? 1.3 : 1;
  EXPECT_LE(seconds,
            of_known * seconds_by_link(kBytes * known.total() + padding(mesh), known_beyond + padding(mesh)))
      << what;
  EXPECT_LE(seconds, seconds_by_link(fastest.total(), fastest.beyond) * kOfFastest) << what;
  EXPECT_LE(ours.beyond, fewest.beyond * kOfBeyond) << what;
  return concat(line, " ", megabytes(ours.beyond), " | ", megabytes(fewest.beyond), " | ",
                megabytes(known_beyond), " | ", megabytes(counted(bytes_beyond_nodes()).beyond), " |\n");
}

std::string gpu_table(const std::vector<MeshSizes>& meshes) {
  const bool one_node = meshes.front().ranks() <= kGpusPerNode;
  std::string table = concat("| block | T × C | mesh | forward | backward | ours | fewest | (a) best known |",
                             one_node ? "" : " beyond a node: ours | fewest | (a) | least |", "\n|",
                             repeated(" --- |", one_node ? 8 : 12), "\n");
  const std::map<std::string, std::vector<Sizes>> shown = {
      {"MLP over channels", {{128, 1024}, {64, 4096}}},
      {"mixer block", {{128, 1024}, {64, 4096}}},
      {"ViT block", {{128, 1024}, {64, 4096}}},
      {"spherical convolution", {{512, 256}, {256, 512}}},
      {"U-Net", {{512, 128}, {256, 256}}}};
  for (const TrafficBlock& block : testing::traffic_blocks()) {
    const auto sizes = shown.find(block.name);
    if (sizes == shown.end()) continue;
    for (const Sizes& each : sizes->second) {
      for (const MeshSizes& mesh : meshes) table += gpu_line(block, each, mesh);
    }
  }
  return table;
}

TEST(Traffic, OfGpusInANodeIsNearTheFewestBytes) {
  testing::expect_in_traffic_docs("<!-- node -->\n",
                                  gpu_table({{{1, 1}, 8}, {{2, 1}, 4}, {{2, 2}, 2}, {{4, 2}, 1}}),
                                  "<!-- end of node -->");
}

TEST(Traffic, OfFourNodesOfGpusIsNearTheFastestByTheirLinks) {
  testing::expect_in_traffic_docs("<!-- nodes -->\n",
                                  gpu_table({{{4, 1}, 8}, {{4, 2}, 4}, {{4, 4}, 2}, {{8, 4}, 1}}),
                                  "<!-- end of nodes -->");
}

/// Where fields are large and weights small, what stays cut in space exchanges halos and nothing else of it.
TEST(Traffic, HaloBytesAreTheClosedForm) {
  const Sizes field{96, 4};
  for (const MeshSizes& mesh : {MeshSizes{{2, 1}, 1}, MeshSizes{{1, 4}, 1}, MeshSizes{{2, 2}, 1},
                                MeshSizes{{3, 1}, 1}, MeshSizes{{4, 2}, 1}, MeshSizes{{3, 3}, 1}}) {
    for (const int kernel : {3, 5, 7}) {
      const Json layer = {{"type", "conv"}, {"features", 4}, {"kernel", kernel}, {"padding", kernel / 2}};
      const Json model = {{"type", "sequential"}, {"layers", Json::array({layer})}};
      const Counted counted = count(model, description_of(field), mesh, {});
      const double halos = 2 * kBytes * halo(field, kernel / 2, mesh);
      EXPECT_NEAR(counted.exchanged / halos, 1, 1e-9) << mesh.to_string() << ", kernel " << kernel;
      const double parameters = kernel * kernel * 16 + 4;
      const double shares = kBytes * 3 * (mesh.q() - 1) * std::ceil(parameters / mesh.q());
      EXPECT_LE(counted.total(), halos + shares) << mesh.to_string() << ", kernel " << kernel;
      EXPECT_GE(counted.total(), halos) << mesh.to_string() << ", kernel " << kernel;
    }
  }
}

}  // namespace
}  // namespace jigsaw
