// Gradient descent with momentum against loops in float64, chosen by name from a configuration.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "array/transfer.h"
#include "config/config.h"
#include "kernels/optimizer.h"
#include "kernels/pointwise.h"
#include "optim/optimizer.h"
#include "optim/registry.h"
#include "support/parameters.h"
#include "support/test_ranks.h"

namespace jigsaw {
namespace sgd_test {

using testing::Tensors;

struct Section {
  Tagged optimizer;
};
void declare(Keys<Section>& keys) {
  keys.tagged("optimizer", &Section::optimizer, optimizer_types).doc("The optimizer.");
}

constexpr int kSteps = 5;
constexpr double kRate = 0.1, kDecay = 0.2, kMomentum = 0.75, kClip = 3.0, kGroupRate = 0.4;
/// "b" takes more than one run of the update.
const std::map<std::string, std::int64_t> kCounts = {{"a", 7}, {"b", 300000}};

/// Of a case: Nesterov's momentum, and decay apart from the gradient.
struct Case {
  bool nesterov, decoupled;
};

Json options(const Case& of) {
  return {{"optimizer",
           {{"type", "sgd"},
            {"learning_rate", kRate},
            {"weight_decay", kDecay},
            {"momentum", kMomentum},
            {"nesterov", of.nesterov},
            {"decoupled_weight_decay", of.decoupled},
            {"clip_norm", kClip},
            {"groups", Json::array({{{"match", "b*"}, {"learning_rate", kGroupRate}}})}}}};
}

double initial(const std::string& name, std::int64_t i) {
  return (name == "a" ? 1.0 : -2.0) + 1e-5 * static_cast<double>(i);
}
double gradient(const std::string& name, std::int64_t i, int step) {
  return std::sin(static_cast<double>(i) * 0.7 + step + (name == "a" ? 0.0 : 1.5));
}

struct Outcome {
  Tensors parameters, momenta;
};

Outcome by_loops(const Case& of) {
  Outcome result;
  for (const auto& [name, count] : kCounts) {
    for (std::int64_t i = 0; i < count; ++i) result.parameters[name].push_back(initial(name, i));
    result.momenta[name].assign(static_cast<std::size_t>(count), 0.0);
  }
  for (int step = 0; step < kSteps; ++step) {
    double squares = 0;
    for (const auto& [name, count] : kCounts) {
      for (std::int64_t i = 0; i < count; ++i) squares += std::pow(gradient(name, i, step), 2);
    }
    const double clip = kClip / (std::sqrt(squares) + 1e-6);
    for (const auto& [name, count] : kCounts) {
      const double rate = 0.5 * (name == "a" ? kRate : kGroupRate);
      for (std::int64_t i = 0; i < count; ++i) {
        double &p = result.parameters[name][static_cast<std::size_t>(i)],
               &v = result.momenta[name][static_cast<std::size_t>(i)];
        const double g = clip * gradient(name, i, step) + (of.decoupled ? 0 : kDecay * p);
        v = kMomentum * v + g;
        if (of.decoupled) p *= 1 - rate * kDecay;
        p -= rate * (of.nesterov ? g + kMomentum * v : v);
      }
    }
  }
  return result;
}

/// The first rank forms the whole gradient; the reduction over ranks hands it out.
void add_gradients(Communicator& world, ParameterBlock& block, int step) {
  block.acquire();
  block.begin_gradients();
  for (const auto& parameter : block.parameters()) {
    if (world.rank() > 0) break;
    std::vector<double> whole;
    for (std::int64_t i = 0; i < parameter->shape().count(); ++i)
      whole.push_back(gradient(parameter->name(), i, step));
    write_values(world.context(), parameter->gradient(), whole);
  }
  block.finish_gradients();
  block.release();
}

Outcome trained(int ranks, const Case& of) {
  Outcome result;
  std::mutex mutex;
  testing::run_test_ranks(ranks, [&](Communicator& world) {
    Mesh mesh(world, 1, {ranks}, 1);
    const Rank rank{world.context(), mesh};
    ParameterBlock block("block");
    Tensors start;
    for (const auto& [name, count] : kCounts) {
      ParameterBlock::set_compute(block.add(name, {count}, Initial::constant(0)), {});
      for (std::int64_t i = 0; i < count; ++i) start[name].push_back(initial(name, i));
    }
    block.materialise(rank, Zero::kNone, DType::kFloat64, DType::kFloat64, 1);
    testing::load(world.context(), block, start);
    Optimizer optimizer(rank, {&block}, parse<Section>(options(of)).optimizer);
    EXPECT_EQ(optimizer.kinds(), (std::vector<std::string>{"parameters", "sgd.momentum"}));
    for (int step = 0; step < kSteps; ++step) {
      optimizer.zero_gradients();
      add_gradients(world, block, step);
      optimizer.step(0.5, 1.0, optimizer.finish_gradients(1.0));
    }
    const std::lock_guard lock(mutex);
    for (const Optimizer::State& state : optimizer.state(Optimizer::Share::kHeld)) {
      Tensors& into = state.kind == "parameters" ? result.parameters : result.momenta;
      testing::collect({state.segment}, state.array, into);
    }
  });
  return result;
}

TEST(Sgd, StepsAsLoopsOnAnyNumberOfRanks) {
  const std::vector<std::pair<int, Case>> cases = {
      {1, {false, true}}, {3, {false, true}}, {3, {true, true}}, {3, {false, false}}, {3, {true, false}}};
  for (const auto& [ranks, of] : cases) {
    const Outcome expected = by_loops(of), found = trained(ranks, of);
    for (const auto& [name, count] : kCounts) {
      EXPECT_LE(testing::relative_difference(found.parameters.at(name), expected.parameters.at(name)), 1e-12);
      EXPECT_LE(testing::relative_difference(found.momenta.at(name), expected.momenta.at(name)), 1e-12);
    }
  }
}

/// torch.optim.SGD(lr=0.1, momentum=0.99, nesterov=True) on p = 1 with gradients 1, −2, 0.5, without decay
/// and with weight_decay=0.3.
TEST(Sgd, NesterovsStepsAreTorchs) {
  Context context = Context::make_host(Backend::kReference, 1);
  for (const double decay : {0.0, 0.3}) {
    Array p = filled(context, {1}, DType::kFloat64, 1.0), v = filled(context, {1}, DType::kFloat64, 0.0);
    std::vector<double> numbers(UpdateNumbers::kKinds, 1.0), found;
    const std::vector<TrainedRun> run = {{0, 1, 0.1, decay}};
    for (const double gradient : {1.0, -2.0, 0.5}) {
      sgd(context, {0.99, true, false}, run,
          constant(context, {UpdateNumbers::kKinds}, DType::kFloat64, numbers), p,
          filled(context, {1}, DType::kFloat64, gradient), v);
      found.push_back(download_values(context, p)[0]);
    }
    const std::vector<double> torchs =
        decay > 0 ? std::vector{0.7413, 0.96763139, 0.858448482117} : std::vector{0.801, 1.10099, 1.1004801};
    EXPECT_LE(testing::relative_difference(found, torchs), 1e-14);
  }
}

}  // namespace sgd_test
}  // namespace jigsaw
