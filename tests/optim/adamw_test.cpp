// AdamW against torch.optim.AdamW, on one and several ranks; groups, clipping, schedules and averages.
#include "optim/adamw.h"

#include <gtest/gtest.h>

#include <mutex>

#include "base/error.h"
#include "base/text.h"
#include "optim/optimizer.h"
#include "support/error_of.h"
#include "support/golden_file.h"
#include "support/parameters.h"
#include "support/test_ranks.h"

namespace jigsaw {
namespace adamw_test {

using testing::GoldenFile;
using testing::relative_difference;
using testing::Tensors;

const std::vector<std::string> kNames = {"matrix", "vector", "volume", "scalar"};

/// One section of adamw.h5, read before ranks start: HDF5 is not for several threads.
struct Golden {
  explicit Golden(const std::string& section) {
    const GoldenFile file("adamw.h5");
    for (const std::string& name : kNames) {
      const std::string initial = section + "/initial/" + name;
      shapes[name] = file.read(initial).shape;
      values[name] = file.values(initial);
      for (const std::string key : {"weight_decay", "learning_rate_factor"}) {
        numbers[name + "." + key] = file.number(initial, key);
      }
      for (const std::string key : {"gradients", "parameters", "first_moment", "second_moment"}) {
        for (int step = 0; step < 10; ++step) {
          histories[key].resize(10);
          histories[key][static_cast<std::size_t>(step)][name] =
              file.row(section + "/" + key + "/" + name, step);
        }
      }
    }
    rates = file.values(section + "/learning_rate");
    options.learning_rate = 1.0;  // the golden's rate is the factor
    options.betas = file.attribute(section, "betas");
    options.eps = file.number(section, "epsilon");
    options.clip_norm = file.number(section, "clip_norm");
    if (options.clip_norm > 0) norms = file.values(section + "/gradient_norm");
    options.weight_decay = numbers.at("matrix.weight_decay");
    options.decoupled_weight_decay = section != "adam";
    for (const std::string name : {"volume", "scalar"}) {
      ParameterGroupOptions group;
      group.match = name.substr(0, 3) + "*";
      group.learning_rate = numbers.at(name + ".learning_rate_factor");
      group.weight_decay = numbers.at(name + ".weight_decay");
      options.groups.push_back(group);
    }
  }

  std::map<std::string, Shape> shapes;
  Tensors values;
  std::map<std::string, double> numbers;
  std::map<std::string, std::vector<Tensors>> histories;  // by step
  std::vector<double> rates, norms;
  AdamWOptions options;
};

/// The golden's parameters in a block that an optimizer can train: whole in use, cut evenly in store.
class Trained {
 public:
  Trained(const Rank& rank, const Golden& golden, Zero zero = Zero::kNone) : rank_(rank), block_("block") {
    for (const std::string& name : kNames) {
      ParameterBlock::set_compute(block_.add(name, golden.shapes.at(name), Initial::constant(0)), {});
    }
    block_.materialise(rank, zero, DType::kFloat64, DType::kFloat64, 1);
    testing::load(rank_.context, block_, golden.values);
  }

  ParameterBlock& block() { return block_; }

  /// Every rank adds its share of the gradient, as the backward of a sum over ranks does.
  void add_gradients(const Tensors& gradients) {
    block_.acquire();
    block_.begin_gradients();
    for (const auto& parameter : block_.parameters()) {
      const std::vector<double>& whole = gradients.at(parameter->name());
      std::vector<double> sums = testing::values_of(parameter->gradient());
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += share() * whole[i];
      write_values(rank_.context, parameter->gradient(), sums);
    }
    block_.finish_gradients();
    block_.release();
  }

  /// This rank's part of a state of the optimizer: "parameters", "adamw.moment1", "adamw.moment2".
  Tensors state(const Optimizer& optimizer, const std::string& kind) {
    Tensors result;
    for (const Optimizer::State& state : optimizer.state(Optimizer::Share::kHeld)) {
      if (state.kind == kind) testing::collect({state.segment}, state.array, result);
    }
    return result;
  }

 private:
  /// Exact in binary; they add up to one.
  double share() const {
    const int ranks = rank_.mesh.world().size(), last = ranks - 1;
    if (ranks == 1) return 1.0;
    return rank_.mesh.world().rank() == last ? 1.0 - 0.25 * last : 0.25;
  }

  Rank rank_;
  ParameterBlock block_;
};

struct History {
  std::vector<double> norms;
  std::vector<Tensors> parameters, moment1, moment2;  // after each step
};

void run_rank(const Rank& rank, const Golden& golden, Zero zero, History& all, std::mutex& mutex) {
  Trained trained(rank, golden, zero);
  Optimizer optimizer(rank, {&trained.block()}, golden.options);
  for (std::size_t s = 0; s < 10; ++s) {
    optimizer.zero_gradients();
    trained.add_gradients(golden.histories.at("gradients")[s]);
    const double norm = optimizer.finish_gradients(1.0);
    optimizer.step(golden.rates[s], 1.0, norm);
    const std::lock_guard lock(mutex);
    all.norms.resize(10);
    all.norms[s] = norm;
    for (auto& history : {&all.parameters, &all.moment1, &all.moment2}) history->resize(10);
    testing::merge(all.parameters[s], trained.state(optimizer, "parameters"));
    testing::merge(all.moment1[s], trained.state(optimizer, "adamw.moment1"));
    testing::merge(all.moment2[s], trained.state(optimizer, "adamw.moment2"));
  }
}

void compare(const std::string& section, int data, int domain, int tensor, Zero zero) {
  SCOPED_TRACE(::testing::Message() << section << " on " << data << " × " << domain << " × " << tensor);
  const Golden golden(section);
  History history;
  std::mutex mutex;
  testing::run_test_ranks(data * domain * tensor, [&](Communicator& world) {
    Mesh mesh(world, data, {domain}, tensor);
    run_rank(Rank{world.context(), mesh}, golden, zero, history, mutex);
  });
  for (std::size_t s = 0; s < 10; ++s) {
    for (const std::string& name : kNames) {
      const auto difference = [&](const std::vector<Tensors>& ours, const std::string& theirs) {
        return relative_difference(ours[s].at(name), golden.histories.at(theirs)[s].at(name));
      };
      EXPECT_LE(difference(history.parameters, "parameters"), 1e-12) << name << " after step " << s + 1;
      EXPECT_LE(difference(history.moment1, "first_moment"), 1e-12) << name << " after step " << s + 1;
      EXPECT_LE(difference(history.moment2, "second_moment"), 1e-12) << name << " after step " << s + 1;
    }
  }
  if (!golden.norms.empty()) {
    EXPECT_LE(relative_difference(history.norms, golden.norms), 1e-12);
  }
}

TEST(AdamW, StepsAsTorch) {
  compare("plain", 1, 1, 1, Zero::kNone);
}

TEST(AdamW, ClipsAsTorch) {
  compare("clipped", 1, 1, 1, Zero::kNone);
}

TEST(AdamW, WithDecayInTheGradientItIsTorchsAdam) {
  compare("adam", 1, 1, 1, Zero::kNone);
}

TEST(AdamW, StepsAlikeOnSeveralRanks) {
  for (const std::string section : {"plain", "clipped", "adam"}) {
    compare(section, 1, 2, 1, Zero::kNone);
    compare(section, 1, 3, 1, Zero::kNone);
    compare(section, 2, 1, 1, Zero::kNone);
    compare(section, 2, 1, 1, Zero::kOptimizer);
    compare(section, 2, 1, 1, Zero::kParameters);
    compare(section, 2, 1, 2, Zero::kOptimizer);
  }
}

/// Calls body(rank, optimizer, trained) on one rank with made-up gradients of norm about 5 in place.
template <typename F>
void with_gradients(const AdamWOptions& options, F&& body) {
  const Golden golden("plain");
  testing::run_test_ranks(1, [&](Communicator& world) {
    Mesh mesh(world, 1, {1}, 1);
    const Rank rank{world.context(), mesh};
    Trained trained(rank, golden);
    Optimizer optimizer(rank, {&trained.block()}, options);
    Tensors gradients;
    for (const auto& parameter : trained.block().parameters()) {
      std::vector<double>& gradient = gradients[parameter->name()];
      for (std::int64_t i = 0; i < parameter->shape().count(); ++i)
        gradient.push_back(i % 2 == 0 ? 0.5 : -0.25);
    }
    trained.add_gradients(gradients);
    body(optimizer, trained);
  });
}

TEST(AdamW, FrozenParametersStayAndDoNotCountInTheNorm) {
  AdamWOptions options;
  options.groups = {{.match = "m*", .frozen = true}, {.match = "v*", .frozen = true}};
  with_gradients(options, [](Optimizer& optimizer, Trained& trained) {
    const Tensors before = trained.state(optimizer, "parameters");
    const double norm = optimizer.finish_gradients(2.0);
    EXPECT_DOUBLE_EQ(norm, 1.0);  // of "scalar", scaled
    optimizer.step(1.0, 2.0, norm);
    const Tensors after = trained.state(optimizer, "parameters");
    for (const std::string name : {"matrix", "vector", "volume"}) EXPECT_EQ(after.at(name), before.at(name));
    EXPECT_NE(after.at("scalar"), before.at("scalar"));
    EXPECT_EQ(trained.state(optimizer, "adamw.moment1").at("matrix"), std::vector<double>(21, 0.0));
  });
}

/// What a batch norm gives as gradient moves a running statistic, by its momentum of the mean of all passes,
/// of which there are four here.
TEST(AdamW, RunningStatisticsGoTheirWay) {
  for (const int ranks : {1, 3}) {
    Tensors all;
    std::mutex mutex;
    testing::run_test_ranks(ranks, [&](Communicator& world) {
      Mesh mesh(world, 1, {ranks}, 1);
      const Rank rank{world.context(), mesh};
      ParameterBlock block("block");
      ParameterBlock::set_compute(block.add("weight", {2}, Initial::constant(1)), {});
      ParameterBlock::set_compute(block.add("running", {4}, Initial::constant(2), 0.25), {});
      block.materialise(rank, Zero::kNone, DType::kFloat64, DType::kFloat64, 1);
      AdamWOptions options;
      options.learning_rate = 0.1;
      options.weight_decay = 0.5;
      options.clip_norm = 1e-3;
      Optimizer optimizer(rank, {&block}, options);
      optimizer.zero_gradients();
      block.acquire();
      block.begin_gradients();
      if (world.rank() == 0) {
        for (const auto& parameter : block.parameters()) {
          const Array gradient = parameter->gradient();
          write_values(world.context(), gradient,
                       std::vector<double>(static_cast<std::size_t>(gradient.count()), 3.0));
        }
      }
      block.finish_gradients();
      block.release();
      const double norm = optimizer.finish_gradients(1.0);
      optimizer.step(0.5, 1.0, norm, 4);
      const std::lock_guard lock(mutex);
      EXPECT_NEAR(norm, std::sqrt(2 * 9.0), 1e-12);
      for (auto& group : block.groups()) testing::collect(group->stored_segments(), group->stored(), all);
    });
    EXPECT_EQ(all.at("running"), std::vector<double>(4, 2 - 0.25 * 3 / 4));
    EXPECT_LT(all.at("weight")[0], 1.0);
  }
}

TEST(AdamW, TheFirstMatchingGroupCounts) {
  AdamWOptions options;
  options.groups = {{.match = "vec*", .learning_rate = 0.5}, {.match = "v*", .frozen = true}, {.match = "*"}};
  with_gradients(options, [](Optimizer& optimizer, Trained& trained) {
    const Tensors before = trained.state(optimizer, "parameters");
    optimizer.step(1.0, 1.0, optimizer.finish_gradients(1.0));
    const Tensors after = trained.state(optimizer, "parameters");
    EXPECT_EQ(after.at("volume"), before.at("volume"));
    // The first step is rate · sign(gradient), but for decay.
    EXPECT_NEAR(after.at("vector")[1], before.at("vector")[1] * (1 - 0.5 * 0.01) + 0.5, 1e-6);
    EXPECT_NEAR(after.at("matrix")[1], before.at("matrix")[1] * (1 - 1e-3 * 0.01) + 1e-3, 1e-6);
  });
}

/// With decays that first updates do not reach, and that the second one does.
TEST(AdamW, AveragesParameters) {
  for (const std::array kept : {std::array{2.0 / 11, 3.0 / 12, 4.0 / 13}, std::array{2.0 / 11, 0.2, 0.2}}) {
    AdamWOptions options;
    options.ema_decay = kept[1] == 0.2 ? 0.2 : 0.75;
    with_gradients(options, [&](Optimizer& optimizer, Trained& trained) {
      Tensors average = trained.state(optimizer, "parameters");
      const double norm = optimizer.finish_gradients(1.0);
      for (const double keep : kept) {
        optimizer.step(100.0, 1.0, norm);
        const Tensors now = trained.state(optimizer, "parameters");
        for (auto& [name, values] : average) {
          for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = keep * values[i] + (1 - keep) * now.at(name)[i];
        }
      }
      const Tensors trained_values = trained.state(optimizer, "parameters");
      optimizer.with_averages([&] {
        const Tensors now = trained.state(optimizer, "parameters");
        for (const std::string& name : kNames) {
          EXPECT_LE(relative_difference(now.at(name), average.at(name)), 1e-14) << name;
          EXPECT_GT(relative_difference(now.at(name), trained_values.at(name)), 1e-3) << name;
        }
      });
      EXPECT_EQ(trained.state(optimizer, "parameters"), trained_values);
    });
  }
}

/// Nothing is computed, and nobody is called, behind an error.
TEST(AdamW, AnErrorLeavesTheAverages) {
  AdamWOptions options;
  options.ema_decay = 0.75;
  with_gradients(options, [](Optimizer& optimizer, Trained& trained) {
    optimizer.step(100.0, 1.0, optimizer.finish_gradients(1.0));
    Tensors averages;
    const auto use = [&] {
      averages = trained.state(optimizer, "parameters");
      throw std::runtime_error("a rank alone");
    };
    EXPECT_THROW(optimizer.with_averages(use), std::runtime_error);
    EXPECT_EQ(trained.state(optimizer, "parameters"), averages);
    EXPECT_NE(trained.state(optimizer, "average"), averages);
  });
}

TEST(AdamW, AveragedWithoutAnAverageChangesNothing) {
  with_gradients({}, [](Optimizer& optimizer, Trained& trained) {
    const Tensors before = trained.state(optimizer, "parameters");
    optimizer.with_averages([&] { EXPECT_EQ(trained.state(optimizer, "parameters"), before); });
  });
}

TEST(AdamW, APatternThatMatchesNothingIsAnError) {
  AdamWOptions options;
  options.groups = {{.match = "v*"}, {.match = "decoder.*"}};
  try {
    with_gradients(options, [](Optimizer&, Trained&) { ADD_FAILURE() << "made an optimizer"; });
    ADD_FAILURE() << "no error";
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("optimizer.groups[1].match \"decoder.*\" matches no parameter"), std::string::npos)
        << text;
    EXPECT_NE(text.find("matrix"), std::string::npos) << text;
  }
}

TEST(AdamW, APatternThatOthersBeforeItTakeAllOfIsAnError) {
  AdamWOptions options;
  options.groups = {{.match = "v*", .frozen = true}, {.match = "vec*", .learning_rate = 0.1}};
  const std::string text = testing::error_of<ConfigError>(
      [&] { with_gradients(options, [](Optimizer&, Trained&) { ADD_FAILURE() << "made an optimizer"; }); });
  EXPECT_NE(text.find("optimizer.groups[1].match \"vec*\" has no effect"), std::string::npos) << text;
}

TEST(AdamW, WhereAllIsFrozenNothingIsTrained) {
  AdamWOptions options;
  options.groups = {{.match = "v*", .learning_rate = 0.1, .frozen = true}, {.match = "*", .frozen = true}};
  const std::string text = testing::error_of<ConfigError>(
      [&] { with_gradients(options, [](Optimizer&, Trained&) { ADD_FAILURE() << "made an optimizer"; }); });
  EXPECT_NE(text.find("every parameter of the model is frozen"), std::string::npos) << text;
}

/// Two groups of three, by the numbers of their shapes; running statistics are not trained.
TEST(GroupShares, CountWhatEachGroupDecides) {
  ParameterBlock block("block");
  block.add("a.weight", {3, 4}, Initial::constant(1));
  block.add("a.bias", {4}, Initial::constant(1));
  block.add("b.weight", {4, 2}, Initial::constant(1));
  block.add("b.bias", {2}, Initial::constant(1));
  AdamWOptions options;
  options.learning_rate = 0.5;
  options.weight_decay = 0.25;
  options.groups = {{.match = "*bias", .frozen = true}, {.match = "a*", .learning_rate = 0.1}};
  const std::vector<GroupShare> shares = group_shares({&block}, options);
  ASSERT_EQ(shares.size(), 3U);
  EXPECT_TRUE(shares[0].frozen);
  EXPECT_EQ(std::pair(shares[0].tensors, shares[0].parameters), std::pair(std::int64_t{2}, std::int64_t{6}));
  EXPECT_EQ(std::pair(shares[1].tensors, shares[1].parameters), std::pair(std::int64_t{1}, std::int64_t{12}));
  EXPECT_EQ(std::pair(shares[1].learning_rate, shares[1].weight_decay), std::pair(0.1, 0.25));
  EXPECT_EQ(std::pair(shares[2].tensors, shares[2].parameters), std::pair(std::int64_t{1}, std::int64_t{8}));
  EXPECT_EQ(std::pair(shares[2].learning_rate, shares[2].weight_decay), std::pair(0.5, 0.25));
  EXPECT_EQ(shares[2].match, "");
}

/// Work that a device is given in one step, by a block of so many parameters in one flat buffer.
std::int64_t launches(int parameters) {
  std::int64_t launches = 0;
  const auto make_context = [](int) {
    return testing::SimulatedDevice::make_context(Backend::kReference, 1);
  };
  run_ranks(1, {}, make_context, [&](Communicator& world) {
    Mesh mesh(world, 1, {1}, 1);
    ParameterBlock block("block");
    for (int i = 0; i < parameters; ++i)
      ParameterBlock::set_compute(block.add(concat("p", i), {3}, Initial::constant(1)), {});
    block.materialise({world.context(), mesh}, Zero::kNone, DType::kFloat32, DType::kFloat32, 1);
    AdamWOptions options;
    options.ema_decay = 0.5;
    options.groups = {{.match = "p1*", .learning_rate = 0.5}};
    Optimizer optimizer({world.context(), mesh}, {&block}, options);
    block.begin_gradients();
    block.finish_gradients();
    auto& device = static_cast<testing::SimulatedDevice&>(*world.context().runtime());
    const Array loss = constant(world.context(), {3}, DType::kFloat64, std::vector{1.0, 1.0, 0.0});
    device.synchronise(Stream::kCompute);
    const Array squares = optimizer.finish_gradients();
    optimizer.step(1.0, loss, squares, 1);
    launches = device.waiting(Stream::kCompute);
  });
  return launches;
}

/// The sum of squares begins at 0 and is formed; what follows from it is decided; parameters are updated,
/// their average follows, and what is packed of them is forgotten.
TEST(AdamW, AParameterMoreIsNoLaunchMore) {
  EXPECT_EQ(launches(2), 6);
  EXPECT_EQ(launches(50), 6);
}

TEST(AdamW, CountsItsBytes) {
  AdamWOptions options;
  options.ema_decay = 0.5;
  with_gradients(options, [](Optimizer& optimizer, Trained&) {
    EXPECT_EQ(optimizer.parameter_bytes(), (21 + 5 + 30 + 1) * 8);
    EXPECT_EQ(optimizer.optimizer_bytes(), 3 * (21 + 5 + 30 + 1) * 8);
  });
}

}  // namespace adamw_test
}  // namespace jigsaw
