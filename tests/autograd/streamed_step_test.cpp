// Whether a product is formed in parts while they travel, and in how many: by each class of devices, beside
// the same parts followed one by one on a clock.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "autograd/contract_streamed.h"
#include "comm/record/record.h"
#include "parallel/machine.h"

namespace jigsaw {
namespace {

/// Tokens x channels, cut in channels over the last axis of a mesh [1, a, b], or in tokens over the one
/// before, which gather them, and then multiply each token with as many channels again times four.
struct Product {
  std::int64_t tokens, channels;
  int a, b;
  bool along_last;

  MeshShape mesh() const { return {3, {1, a, b}}; }
  AxisSet axes() const { return axis_bit(along_last ? 2 : 1); }
  double ranks() const { return along_last ? b : a; }
  Layout cut() const {
    Layout layout{{tokens, channels}, {}};
    layout.placements[along_last ? 2 : 1] = Placement::shard(along_last ? 1 : 0);
    return layout;
  }
  Layout whole() const { return {{tokens, channels}, {}}; }
  double flops() const {
    return 8.0 * static_cast<double>(tokens) * static_cast<double>(channels) * static_cast<double>(channels) /
           (a * b);
  }
};

std::optional<StreamedStep> streamed(const Product& product, const CostModel& model) {
  Context context = Context::make_meta();
  const auto world = make_record_communicator(context, 0, product.a * product.b);
  Mesh mesh(*world, 1, {product.a}, product.b);
  return streamed_step({context, mesh}, product.cut(), product.whole(), product.flops(), model);
}

/// The product in so many runs of each other rank, as they arrive one after the other; in 0: when all are
/// there.
double followed(const Product& product, const CostModel& model, int runs) {
  const Link& link = model.link(product.mesh(), product.axes());
  const double others = product.ranks() - 1,
               bytes = others / product.ranks() * static_cast<double>(product.tokens * product.channels) *
                       model.element_bytes,
               work = product.flops() / model.flops_per_second;
  const auto lasts = [&](double share) { return std::max(share * work, model.product_seconds); };
  if (runs == 0) {
    // Between GPUs of several nodes in two levels.
    TransferCost sent;
    sent.add(Collective::kAllGather, bytes, 1);
    return model.seconds(product.mesh(), product.axes(), sent) + lasts(1);
  }
  const int parts = static_cast<int>(others) * runs;
  double now = lasts(1 / product.ranks()), arrived = link.latency_seconds;
  for (int part = 0; part < parts; ++part) {
    arrived += bytes / parts / link.bytes_per_second;
    now = std::max(now, arrived) + lasts(others / product.ranks() / parts) + model.part_seconds;
  }
  return now + link.latency_seconds;
}

CostModel gpus(int ranks_per_node) {
  return cost_model(Device::kCuda, DType::kBfloat16, ranks_per_node);
}

/// What is chosen takes little longer than the best of all choices: it takes what parts cost beside their
/// work for time in which nothing else goes on, where the clock hides it behind transfers that take longer.
TEST(StreamedStep, IsAboutTheFastestOnTheClock) {
  constexpr double kOfTheFastest = 1.3;
  int whole = 0, cut = 0;
  for (const CostModel& model : {CostModel(), gpus(8), gpus(2), gpus(1)}) {
    for (const auto& [a, b] : {std::pair{1, 8}, {4, 8}, {2, 2}, {1, 2}}) {
      for (const bool along_last : {true, false}) {
        if ((along_last ? b : a) == 1) continue;
        for (std::int64_t tokens = 64; tokens <= 1 << 20; tokens *= 4) {
          for (const std::int64_t channels : {64, 512, 4096, 16384}) {
            const Product product{tokens, channels, a, b, along_last};
            const std::optional<StreamedStep> step = streamed(product, model);
            const double chosen = followed(product, model, step ? step->cut.runs : 0);
            double least = std::numeric_limits<double>::infinity();
            for (const int runs : {0, 1, 2, 4, 8}) least = std::min(least, followed(product, model, runs));
            EXPECT_LE(chosen, kOfTheFastest * least)
                << tokens << " x " << channels << " over " << (along_last ? b : a) << " of " << a << " x "
                << b << ", nodes of " << model.ranks_per_node << ", in runs " << (step ? step->cut.runs : 0);
            ++(step ? cut : whole);
          }
        }
      }
    }
  }
  std::printf("products formed whole: %d, in parts: %d\n", whole, cut);
  EXPECT_GT(whole, 50);
  EXPECT_GT(cut, 50);
}

/// An MLP of a thousand channels on eight ranks: sockets hide its transfers behind parts of a millisecond,
/// GPUs of a node would lose more by launching them.
TEST(StreamedStep, OfGpusInANodeIsNotCutIntoLaunches) {
  const Product product{4096, 1024, 1, 8, true};
  EXPECT_TRUE(streamed(product, {}));
  EXPECT_FALSE(streamed(product, gpus(8)));
  // A hundred times as much between nodes is worth it.
  const Product large{65536, 8192, 4, 8, false};
  EXPECT_TRUE(streamed(large, gpus(8)));
}

/// What was measured says in how many messages parts travel, not in how many they are multiplied.
TEST(StreamedStep, IsCutAlikeWhateverWasMeasured) {
  const Product product{65536, 8192, 4, 8, false};
  CostModel model = gpus(8);
  const std::optional<StreamedStep> planned = streamed(product, model);
  ASSERT_TRUE(planned);
  Machine slow{1e13, 1e12, {}};
  slow.links.fill({1e9, 1e-2});
  model.measured = std::make_shared<const Machine>(slow);
  const std::optional<StreamedStep> seen = streamed(product, model);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->cut.runs, planned->cut.runs);
  EXPECT_EQ(seen->cut.messages, 1);
}

}  // namespace
}  // namespace jigsaw
