// A step takes hardly longer than what cannot be hidden. Judged on a virtual clock, so that nothing but the
// order of starts and waits counts: mixer blocks on two ranks, on processors and networks of several speeds,
// each with plans made for it.
//
// No order of starts and waits is faster than the longest of
//   - all kernels, and all transfers, of a rank;
//   - forward, the longer of its kernels and its transfers, and then backward, the longer of its kernels and
//     its transfers of values and gradients: what forward moves is used there, and what backward moves
//     depends on the output, but for parameters that are gathered again;
//   - over all operations, forward and backward, the longer of its kernels and of its transfers of values:
//   they
//     run one after the other, what one moves was made by the one before it and is read by the one after it,
//     and what its backward reads again is not brought before its turn, for that takes memory. (Parameters
//     and their gradients may travel while others run.) To its transfers belong the latency of the last
//     message, and the kernels of the first part, which is computed before it is sent, or of the last, which
//     arrives before it is multiplied: what is for the other rank, half of all, is cut into eight at most.
//     Statistics of rows, which are formed, sent and used, are hidden by nothing.
// Where transfers take as long as the kernels, operations with more of the one stand between operations with
// more of the other, and the last is the longest: by up to a quarter.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/output_watch.h"
#include "base/text.h"
#include "comm/thread/virtual_clock.h"
#include "layers/convolution.h"
#include "layers/pooling.h"
#include "layers/resampling.h"
#include "layers/weathermixer.h"
#include "support/pieces.h"

namespace jigsaw {
namespace {

constexpr double kLimit = 1.1;

struct MeshSizes {
  const char* name;
  std::vector<int> domain;
  int tensor;
};
const std::vector<MeshSizes>& meshes() {
  static const std::vector<MeshSizes> all = {{"domain [2,1]", {2, 1}, 1}, {"tensor 2", {1, 1}, 2}};
  return all;
}

/// A place in a rank's step: what it has computed and how many calls it has made.
struct Mark {
  Tally tally;
  std::size_t calls = 0;
};
/// A stretch between two marks: one operation, forward or backward.
struct Stretch {
  OutputWatch::Phase phase;
  Mark from, to;
};

/// Hears of a rank's operations as they run.
class Stretches {
 public:
  Stretches(Context& context, const VirtualClock& clock, int rank)
      : context_(context), clock_(clock), rank_(rank) {
    context.state<OutputWatch>().saw = [this](const OutputWatch::Source& source, const ShardedTensor&) {
      const Mark now = mark();
      // What an operation gives is seen when it has run, its gradient before its backward does.
      const bool forward = source.phase == OutputWatch::Phase::kForward;
      if (forward) {
        all_.push_back({source.phase, last_, now});
      } else {
        if (backward_) all_.push_back({source.phase, last_, now});
        backward_ = true;
      }
      last_ = now;
    };
  }
  std::vector<Stretch> end() {
    if (backward_) all_.push_back({OutputWatch::Phase::kGradient, last_, mark()});
    return std::move(all_);
  }

 private:
  Mark mark() const { return {context_.tally(), clock_.of(rank_).calls.size()}; }

  Context& context_;
  const VirtualClock& clock_;
  int rank_;
  Mark last_;
  bool backward_ = false;
  std::vector<Stretch> all_;
};

/// A step after which nothing waits, of a batch of one, on arrays without data.
void step(Communicator& world, const MeshSizes& sizes, const CostModel& cost) {
  Mesh mesh(world, 1, sizes.domain, sizes.tensor);
  const Rank rank{world.context(), mesh};
  const WeatherMixerOptions mixer{.patch = {4, 4},
                                  .embed_dim = 256,
                                  .depth = 8,
                                  .token_hidden_ratio = 2.0,
                                  .channel_hidden_ratio = 4.0,
                                  .positions = true,
                                  .output_map = false};
  Model model({{96, 128}, 16, 16});
  append_weathermixer(model, mixer);
  model.finish();
  PlanBook plans(cost);
  plan_and_materialise(model, rank, plans, 1, Zero::kNone, DType::kFloat32, DType::kFloat32, 1);
  const Layout in = model.input_layout(mesh, 1), out = model.output_layout(mesh, 1);
  Tape tape(rank, plans, Tape::Mode::kRecord);
  tape.set_training(true);
  tape.on_gradients([](ParameterBlock& block) { block.start_synchronise_gradients(); });
  const Variable x({Array(rank.context, rank.box(in).extent, DType::kFloat32), in}, false);
  const Variable y = model.forward(tape, x);
  y.slot()->add(rank, {Array(rank.context, rank.box(out).extent, DType::kFloat32), out});
  tape.backward();
}

struct Timed {
  double compute = 0, transfer = 0, seconds = 0;  ///< of the rank that has most
  double phases = 0, operations = 0;              ///< what cannot be hidden, see above
  std::string waits;

  double bound() const { return std::max({compute, transfer, phases, operations}); }
  double ratio() const { return seconds / bound(); }
};

/// Messages up to this long are the statistics of rows, or not worth cutting.
constexpr double kStatisticsBytes = 16384;
/// Into how many parts what is for the other rank is cut at most.
constexpr double kMostRuns = 8;

double seconds_between(const Tally& from, const Tally& to, const CostModel& cost) {
  return (to.flops - from.flops) / cost.flops_per_second +
         (to.bytes - from.bytes) / cost.memory_bytes_per_second;
}

/// What an operation takes at least.
double least_seconds(const Stretch& stretch, const std::vector<VirtualClock::Call>& calls,
                     const CostModel& cost, double bytes_per_second) {
  const double compute = seconds_between(stretch.from.tally, stretch.to.tally, cost);
  double streamed = 0, statistics = 0;
  for (std::size_t i = stretch.from.calls; i < stretch.to.calls; ++i) {
    if (calls[i].purpose != Purpose::kActivations) continue;
    const double seconds = calls[i].bytes / bytes_per_second;
    if (calls[i].bytes > kStatisticsBytes) {
      streamed += seconds;
    } else {
      statistics += seconds + cost.network.latency_seconds;
    }
  }
  if (streamed == 0) return compute + statistics;
  return statistics + std::max(compute, streamed + cost.network.latency_seconds + compute / 2 / kMostRuns);
}

void find_bounds(const std::vector<Stretch>& stretches, const std::vector<VirtualClock::Call>& calls,
                 const CostModel& cost, double bytes_per_second, Timed& timed) {
  struct Pass {
    double compute = 0, link = 0;
  };
  std::map<OutputWatch::Phase, Pass> phases;
  double of_operations = 0, of_phases = 0;
  for (const Stretch& stretch : stretches) {
    of_operations += least_seconds(stretch, calls, cost, bytes_per_second);
    Pass& pass = phases[stretch.phase];
    pass.compute += seconds_between(stretch.from.tally, stretch.to.tally, cost);
    for (std::size_t i = stretch.from.calls; i < stretch.to.calls; ++i) {
      const bool gathered_again =
          stretch.phase == OutputWatch::Phase::kGradient && calls[i].purpose == Purpose::kWorkspace;
      if (!gathered_again) pass.link += calls[i].bytes / bytes_per_second;
    }
  }
  for (const auto& [phase, pass] : phases) of_phases += std::max(pass.compute, pass.link);
  timed.phases = std::max(timed.phases, of_phases);
  timed.operations = std::max(timed.operations, of_operations);
}

/// @param bytes_per_second  0: transfers take no time.
Timed time_step(const MeshSizes& sizes, const CostModel& cost, double bytes_per_second) {
  VirtualClock clock(2, {cost.flops_per_second, cost.memory_bytes_per_second});
  ThreadOptions options;
  options.latency_seconds = bytes_per_second > 0 ? cost.network.latency_seconds : 0;
  options.bytes_per_second = bytes_per_second;
  std::array<std::vector<Stretch>, 2> stretches;
  run_ranks(
      2, options, clock, [](int) { return Context::make_meta(); },
      [&](Communicator& world) {
        ASSERT_EQ(world.size(), 2);
        Stretches watch(world.context(), clock, world.rank());
        step(world, sizes, cost);
        stretches[static_cast<std::size_t>(world.rank())] = watch.end();
      });
  Timed timed;
  timed.seconds = clock.seconds();
  for (int r = 0; r < 2; ++r) {
    const VirtualClock::RankTime& time = clock.of(r);
    timed.compute = std::max(timed.compute, time.computed);
    timed.transfer = std::max(timed.transfer,
                              time.link + static_cast<double>(time.calls.size()) * options.latency_seconds);
    if (bytes_per_second > 0)
      find_bounds(stretches[static_cast<std::size_t>(r)], time.calls, cost, bytes_per_second, timed);
  }
  timed.waits = clock.longest_waits(8);
  return timed;
}

/// @param share  of the time of the kernels that the transfers take.
Timed time_step(const MeshSizes& sizes, double flops_per_second, double share) {
  CostModel cost{.flops_per_second = flops_per_second,
                 .memory_bytes_per_second = 0.1 * flops_per_second,
                 .network = {0.02 * flops_per_second, 5e-5}};
  // As many bytes travel as the plan for the network wants, which depends on how many travel.
  for (int round = 0; round < 2; ++round) {
    const Timed unit = time_step(sizes, cost, 1.0), free = time_step(sizes, cost, 0);
    cost.network.bytes_per_second = unit.transfer / (share * free.compute);
  }
  return time_step(sizes, cost, cost.network.bytes_per_second);
}

using LayerBuild = std::function<LayerPtr(const LayerSite&)>;

/// A layer that reads its neighbours' rows.
struct FieldLayer {
  const char* name;
  bool only_in_place;  ///< its interior must be consecutive in the result
  LayerBuild build;
};

/// Windows of 3 × 3 and linear interpolation read a row of each neighbour; windows of 2 × 2 do where a piece
/// has an odd number of rows.
std::vector<FieldLayer> field_layers() {
  const auto maximum = [](const MaxPoolOptions& options) {
    return [=](const LayerSite& site) { return std::make_unique<PoolingLayer>(site, options); };
  };
  return {{"conv", false,
           [](const LayerSite& site) {
             return std::make_unique<ConvolutionLayer>(
                 site, ConvolutionOptions{
                           .features = site.input.channels, .kernel = {3}, .padding = {1}, .bias = false});
           }},
          {"max_pool of 3 x 3", true, maximum({.kernel = {3}, .stride = {1}, .padding = {1}})},
          {"max_pool of 2 x 2", true, maximum({.kernel = {2}})},
          {"avg_pool", true,
           [](const LayerSite& site) {
             return std::make_unique<PoolingLayer>(
                 site, AveragePoolOptions{.kernel = {3}, .stride = {1}, .padding = {1}});
           }},
          {"upsample", true, [](const LayerSite& site) {
             return std::make_unique<Upsample>(site, UpsampleOptions{{2}, {}, Interpolation::kLinear});
           }}};
}

using PieceOf = std::function<Array(const Layout&)>;

/// What the layer alone makes of one sample, and the input's gradient, if an output's is given.
struct Made {
  ShardedTensor output, gradient;
};
Made made_by(const LayerBuild& build, const Rank& rank, const Shape& space, std::int64_t channels,
             const PieceOf& input, const PieceOf& output_gradient = nullptr) {
  Model model({space, channels, channels});
  model.append("field", "field", build);
  model.finish();
  PlanBook plans;
  plan_and_materialise(model, rank, plans, 1, Zero::kNone, DType::kFloat32, DType::kFloat32, 1);
  const Layout in = model.input_layout(rank.mesh, 1);
  Tape tape(rank, plans, Tape::Mode::kRecord);
  tape.set_training(true);
  const Variable x({input(in), in}, true), y = model.forward(tape, x);
  if (!output_gradient) return {y.value(), {}};
  y.slot()->add(rank, {output_gradient(y.layout()), y.layout()});
  tape.backward();
  return {y.value(), x.slot()->take()};
}

/// What a rank computes while the halos of a layer travel, as a share of all its kernels in forward: the
/// least of two ranks, which hold 65 rows each, or columns.
double share_while_halos_travel(const LayerBuild& build, bool rows) {
  VirtualClock clock(2, {});
  run_ranks(
      2, {.latency_seconds = 1}, clock, [](int) { return Context::make_meta(); },
      [&](Communicator& world) {
        Mesh mesh(world, 1, {rows ? 2 : 1, rows ? 1 : 2}, 1);
        const Rank rank{world.context(), mesh};
        made_by(build, rank, {130, 130}, 16,
                [&](const Layout& in) { return Array(rank.context, rank.box(in).extent, DType::kFloat32); });
      });
  double share = 1;
  for (int rank = 0; rank < 2; ++rank) {
    const VirtualClock::RankTime& time = clock.of(rank);
    int exchanges = 0;
    for (const VirtualClock::Call& call : time.calls) {
      if (call.name.rfind("exchange", 0) != 0) continue;
      ++exchanges;
      share = std::min(share, call.computed / time.computed);
    }
    EXPECT_EQ(exchanges, 1);
  }
  return share;
}

TEST(Overlap, TheInteriorOfAFieldIsMadeWhileHalosTravel) {
  for (const FieldLayer& layer : field_layers()) {
    for (const bool rows : {true, false}) {
      const double share = share_while_halos_travel(layer.build, rows);
      std::printf("%s, cut in %s: %.2f of the kernels run while halos travel\n", layer.name,
                  rows ? "rows" : "columns", share);
      if (rows || !layer.only_in_place) {
        EXPECT_GT(share, 0.75) << layer.name;
      } else {
        EXPECT_EQ(share, 0.0) << layer.name;
      }
    }
  }
}

/// Of pooling and resampling; sums of a convolution are the library's. Gradients are whole numbers, so that
/// they add up alike in any order, but for those of a mean.
TEST(Overlap, TheInteriorAndBordersOfAFieldHaveTheBitsOfTheWhole) {
  using Whole = std::vector<double>;
  const auto made_on = [](const FieldLayer& layer, const std::vector<int>& domain, Backend backend) {
    Whole output, gradient;
    std::mutex mutex;
    run_ranks(
        domain[0] * domain[1], {}, [&](int) { return Context::make_host(backend, 1); },
        [&](Communicator& world) {
          Mesh mesh(world, 1, domain, 1);
          const Rank rank{world.context(), mesh};
          const auto piece = [&](const std::function<double(std::int64_t)>& value) {
            return [&rank, value](const Layout& layout) {
              return testing::make_piece(rank, layout, DType::kFloat32, value);
            };
          };
          const Made made =
              made_by(layer.build, rank, {65, 23}, 4,
                      piece([](std::int64_t i) { return std::sin(static_cast<double>(i * i % 1009)); }),
                      piece([](std::int64_t i) { return static_cast<double>(i * i % 101); }));
          const std::lock_guard lock(mutex);
          testing::paste_piece(rank, made.output.layout, made.output.piece, output);
          testing::paste_piece(rank, made.gradient.layout, made.gradient.piece, gradient);
        });
    if (std::string_view(layer.name) == "avg_pool") gradient.clear();
    return std::pair<Whole, Whole>(output, gradient);
  };
  for (const FieldLayer& layer : field_layers()) {
    if (!layer.only_in_place) continue;
    for (const Backend backend : {Backend::kReference, Backend::kCpu}) {
      const auto wanted = made_on(layer, {1, 1}, backend);
      for (const std::vector<int>& domain : {std::vector<int>{2, 1}, {3, 1}, {1, 2}, {2, 2}}) {
        const auto made = made_on(layer, domain, backend);
        EXPECT_EQ(made.first, wanted.first) << layer.name << " on " << domain[0] << " x " << domain[1];
        EXPECT_EQ(made.second, wanted.second) << layer.name << " on " << domain[0] << " x " << domain[1];
      }
    }
  }
}

TEST(Overlap, AStepTakesHardlyLongerThanWhatCannotBeHidden) {
  for (const MeshSizes& sizes : meshes()) {
    for (const double flops : {3e10, 1e11, 3e11}) {
      for (const double share : {0.25, 0.5, 2.0, 1.0}) {
        const Timed timed = time_step(sizes, flops, share);
        const std::string text = concat(
            sizes.name, ", ", flops * 1e-9, " GFLOP/s, kernels ", timed.compute * 1e3, " ms, transfers ",
            timed.transfer * 1e3, " ms, pass by pass ", timed.phases * 1e3, " ms, operation by operation ",
            timed.operations * 1e3, " ms, step ", timed.seconds * 1e3, " ms: ", timed.ratio(), ", and ",
            timed.seconds / std::max(timed.compute, timed.transfer), " of the longer");
        std::printf("%s\n", text.c_str());
        EXPECT_LE(timed.ratio(), kLimit) << text << "\n" << timed.waits;
        if (share != 1.0) {
          EXPECT_LE(timed.seconds, kLimit * std::max(timed.compute, timed.transfer)) << text;
        }
      }
    }
  }
}

}  // namespace
}  // namespace jigsaw
