// Prescribed fields, the rim of a limited area, transforms, ranges and gradients of the last lead alone:
// losses, gradients (by central differences) and scores of rollouts against loops in float64 that know
// nothing of tapes, layouts and batches, on one rank and on meshes.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <mutex>
#include <numbers>

#include "array/transfer.h"
#include "config/config.h"
#include "optim/optimizer.h"
#include "support/parameters.h"
#include "support/temporary_folder.h"
#include "support/test_ranks.h"
#include "task/physical_states.h"
#include "train/forecast_file.h"
#include "train/one_step.h"
#include "train/training_batches.h"
#include "train/training_step.h"
#include "train/validation.h"

namespace jigsaw {
namespace forecast_inputs_test {

using testing::CutStep;
using testing::Tensors;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int kTimes = 14, kTrainTimes = 8, kRows = 6, kColumns = 5, kPoints = kRows * kColumns;
constexpr int kInputs = 9, kHidden = 4, kOutputs = 3, kLeads = 3;
constexpr double kLow = 0.004, kHigh = 0.012, kEpsilon = 1e-3, kPower = 0.3, kRainEpsilon = 1e-4;

struct Values {
  std::vector<double> values;
  bool has_time = true;
  std::function<double(double)> forward = [](double x) { return x; }, inverse = forward;
  double centre = 0, scale = 1, increment = 1;

  /// Transformed.
  double at(int time, int point) const {
    return forward(values[static_cast<std::size_t>((has_time ? time : 0) * kPoints + point)]);
  }
  /// As it stands in the file.
  double raw(int time, int point) const { return values[static_cast<std::size_t>(time * kPoints + point)]; }
  /// As the model gets it.
  double input(int time, int point) const {
    const double x = (at(time, point) - centre) / scale;
    return std::isnan(x) ? 0 : x;
  }
};

double wave(int i) {
  return std::sin(1.7 * i + 0.3) + 0.5 * std::cos(0.61 * i * i);
}

/// The numbers of a made-up month and all that is known of them.
struct Fields {
  Values t2m, q, tp, sst, ice, elevation;

  Fields() {
    for (int i = 0; i < kTimes * kPoints; ++i) {
      t2m.values.push_back(280 + 6 * wave(i));
      q.values.push_back(0.008 + 0.0028 * wave(3 * i + 1));
      tp.values.push_back(1e-3 * wave(5 * i + 2));  // packed rain is below 0 now and then
      sst.values.push_back(i % kPoints < 7 ? kNaN : 290 + 4 * wave(7 * i));
      ice.values.push_back(0.5 + 0.3 * wave(11 * i));
    }
    for (int i = 0; i < kPoints; ++i) elevation.values.push_back(800 + 400 * wave(13 * i));
    elevation.has_time = false;
    t2m.values[2 * kPoints + 13] = t2m.values[3 * kPoints + 8] = t2m.values[9 * kPoints + 16] = kNaN;
    q.forward = [](double x) { return std::log(x + kEpsilon); };
    q.inverse = [](double v) { return std::exp(v) - kEpsilon; };
    tp.forward = [](double x) { return (std::pow(std::fmax(x, 0) + kRainEpsilon, kPower) - 1) / kPower; };
    tp.inverse = [](double v) {
      return std::fmax(std::pow(std::fmax(kPower * v + 1, 0), 1 / kPower) - kRainEpsilon, 0);
    };
    elevation.forward = [](double x) { return std::sqrt(x); };
    for (Values* field : {&t2m, &q, &tp, &elevation}) standardise(*field);
    double least = 1e30, largest = -1e30;
    for (int i = 0; i < kTrainTimes * kPoints; ++i) {
      least = std::fmin(least, sst.values[static_cast<std::size_t>(i)]);
      largest = std::fmax(largest, sst.values[static_cast<std::size_t>(i)]);
    }
    sst.centre = least;
    sst.scale = largest - least;
  }

  static void standardise(Values& field) {
    std::vector<double> states, changes;
    for (int t = 0; t < (field.has_time ? kTrainTimes : 1); ++t) {
      for (int i = 0; i < kPoints; ++i) {
        states.push_back(field.at(t, i));
        if (field.has_time && t + 1 < kTrainTimes) changes.push_back(field.at(t + 1, i) - field.at(t, i));
      }
    }
    const auto moments = [](const std::vector<double>& values) {
      double sum = 0, squares = 0, count = 0;
      for (const double value : values) {
        if (std::isnan(value)) continue;
        sum += value;
        count += 1;
      }
      for (const double value : values) {
        if (!std::isnan(value)) squares += (value - sum / count) * (value - sum / count);
      }
      return std::pair(sum / count, std::sqrt(squares / count));
    };
    std::tie(field.centre, field.scale) = moments(states);
    if (field.has_time) field.increment = moments(changes).second;
  }

  void write(const std::string& path) const {
    testing::write_forecast_file(path,
                                 {testing::coordinates(kTimes, 0, 6), testing::coordinates(kRows, 50, -2),
                                  testing::coordinates(kColumns, 0, 2)},
                                 {{"t2m", t2m.values},
                                  {"q", q.values},
                                  {"tp", tp.values},
                                  {"sst", sst.values},
                                  {"ice", ice.values},
                                  {"elevation", elevation.values, {}, false}});
  }
};

bool on_rim(int point) {
  const int row = point / kColumns, column = point % kColumns;
  return row == 0 || row == kRows - 1 || column == 0 || column == kColumns - 1;
}

using State = std::vector<std::array<double, kInputs>>;

/// y = W₂ tanh(W₁ ∗ x + b₁) + b₂ at a point, W₁ of 3 × 3 points with zeros around the grid: so what stands on
/// the rim reaches the points inside.
std::array<double, kOutputs> network(const State& x, int point, const Tensors& p) {
  std::array<double, kOutputs> y{};
  std::array<double, kHidden> hidden{};
  const std::vector<double>&weights = p.at("layers.0.weight"), &biases = p.at("layers.0.bias");
  for (std::size_t h = 0; h < kHidden; ++h) {
    double sum = biases[h];
    for (int down = -1; down <= 1; ++down) {
      for (int along = -1; along <= 1; ++along) {
        const int row = point / kColumns + down, column = point % kColumns + along;
        if (row < 0 || row >= kRows || column < 0 || column >= kColumns) continue;
        const auto tap = static_cast<std::size_t>((down + 1) * 3 + along + 1);
        for (std::size_t k = 0; k < kInputs; ++k) {
          sum +=
              weights[(h * kInputs + k) * 9 + tap] * x[static_cast<std::size_t>(row * kColumns + column)][k];
        }
      }
    }
    hidden[h] = std::tanh(sum);
  }
  for (std::size_t n = 0; n < kOutputs; ++n) {
    y[n] = p.at("layers.2.bias")[n];
    for (std::size_t h = 0; h < kHidden; ++h) y[n] += p.at("layers.2.weight")[n * kHidden + h] * hidden[h];
  }
  return y;
}

Tensors initial_parameters() {
  Tensors p;
  const auto fill = [&](const std::string& name, int count, double size) {
    for (int i = 0; i < count; ++i) p[name].push_back(size * std::sin(2.3 * i + 1.1 * count));
  };
  fill("layers.0.weight", kHidden * kInputs * 9, 0.25);
  fill("layers.0.bias", kHidden, 0.3);
  fill("layers.2.weight", kOutputs * kHidden, 1.1);
  fill("layers.2.bias", kOutputs, 0.4);
  return p;
}

class Reference {
 public:
  Reference(const Fields& fields, bool increment) : fields_(fields), increment_(increment) {}

  /// [lead][point][output], as it is compared with the target of the lead.
  using Rollout = std::vector<std::vector<std::array<double, kOutputs>>>;

  /// @param earlier  the parameters of all leads but the last.
  Rollout run(int start, const Tensors& p, const Tensors& earlier, int leads = kLeads) {
    const Values* const states[] = {&fields_.t2m, &fields_.q};
    Rollout rollout(static_cast<std::size_t>(leads));
    std::array<std::vector<double>, 2> before, now, sum;
    for (std::size_t s = 0; s < 2; ++s) {
      for (int i = 0; i < kPoints; ++i) {
        before[s].push_back(states[s]->input(start - 1, i));
        now[s].push_back(states[s]->input(start, i));
      }
      sum[s].assign(kPoints, 0);
    }
    for (int r = 0; r < leads; ++r) {
      const int time = start + r;
      State x;
      for (std::size_t i = 0; i < kPoints; ++i) {
        const int at = static_cast<int>(i);
        x.push_back({before[0][i], before[1][i], now[0][i], now[1][i], fields_.elevation.input(0, at),
                     fields_.sst.input(time, at), fields_.ice.input(time, at),
                     fields_.sst.input(time + 1, at), fields_.ice.input(time + 1, at)});
      }
      for (std::size_t i = 0; i < kPoints; ++i) {
        const int at = static_cast<int>(i);
        std::array<double, kOutputs> y = network(x, at, r + 1 == leads ? p : earlier);
        y[1] = clamped(fields_.q, y[1], now[1][i], increment_, kLow, kHigh);
        y[2] = clamped(fields_.tp, y[2], 0, false, 0, std::numeric_limits<double>::infinity());
        std::array<double, kOutputs> compared = y;
        for (std::size_t s = 0; s < 2; ++s) {
          sum[s][i] += y[s];
          if (increment_) compared[s] = sum[s][i];
          before[s][i] = now[s][i];
          const double next = increment_ ? now[s][i] + y[s] * states[s]->increment / states[s]->scale : y[s];
          const bool absent = std::isnan(states[s]->at(start, at));
          now[s][i] = on_rim(at) ? states[s]->input(time + 1, at) : absent ? 0 : next;
        }
        rollout[static_cast<std::size_t>(r)].push_back(compared);
      }
    }
    return rollout;
  }

  double target(int start, int lead, int point, std::size_t output) const {
    const Values& field = *outputs()[output];
    const double y = field.at(start + lead + 1, point);
    if (increment_ && output < 2) return (y - field.at(start, point)) / field.increment;
    return (y - field.centre) / field.scale;
  }

  /// The loss of windows, leads weighing alike, or the last one alone.
  double loss(const std::vector<int>& starts, const Tensors& p, const Tensors& earlier, bool last_only) {
    constexpr std::array<double, kOutputs> kWeights = {1, 2, 1};
    double sum = 0, weight = 0;
    for (const int start : starts) {
      const Rollout rollout = run(start, p, earlier);
      for (int r = last_only ? kLeads - 1 : 0; r < kLeads; ++r) {
        for (std::size_t n = 0; n < kOutputs; ++n) {
          double squares = 0, count = 0;
          for (int i = 0; i < kPoints; ++i) {
            const double wanted = target(start, r, i, n);
            if (on_rim(i) || std::isnan(wanted)) continue;
            squares +=
                std::pow(rollout[static_cast<std::size_t>(r)][static_cast<std::size_t>(i)][n] - wanted, 2);
            count += 1;
          }
          sum += kWeights[n] * squares / count;
          weight += kWeights[n];
        }
      }
    }
    return sum / weight;
  }

  /// Root mean square error, bias and error of persistence in physical units, weighted by area.
  std::array<double, 3> scores(const std::vector<int>& starts, const Tensors& p, int lead, std::size_t n) {
    const Values& field = *outputs()[n];
    const bool increment = increment_ && n < 2;
    double squares = 0, errors = 0, persistence = 0;
    for (const int start : starts) {
      const Rollout rollout = run(start, p, p);
      double weights = 0, both = 0, square = 0, error = 0, change = 0;
      for (int i = 0; i < kPoints; ++i) {
        const double truth = field.raw(start + lead + 1, i);
        const double y = rollout[static_cast<std::size_t>(lead)][static_cast<std::size_t>(i)][n];
        const double base = increment ? field.at(start, i) : field.centre;
        const double state = field.inverse(base + y * (increment ? field.increment : field.scale));
        if (on_rim(i) || std::isnan(target(start, lead, i, n))) continue;
        const double latitude = (50 - 2.0 * (i / kColumns)) * std::numbers::pi / 180,
                     half = std::numbers::pi / 180;
        const double area = std::sin(latitude + half) - std::sin(latitude - half);
        weights += area;
        square += area * (state - truth) * (state - truth);
        error += area * (state - truth);
        const double origin = field.raw(start, i);
        if (std::isnan(origin)) continue;
        both += area;
        change += area * (origin - truth) * (origin - truth);
      }
      squares += square / weights / static_cast<double>(starts.size());
      errors += error / weights / static_cast<double>(starts.size());
      persistence += change / both / static_cast<double>(starts.size());
    }
    return {std::sqrt(squares), errors, std::sqrt(persistence)};
  }

  int lowered = 0, raised = 0;  ///< predictions brought to an end of a range

 private:
  std::array<const Values*, kOutputs> outputs() const { return {&fields_.t2m, &fields_.q, &fields_.tp}; }

  double clamped(const Values& field, double y, double now, bool increment, double low, double high) {
    const auto end = [&](double value) {
      const double normalised = (field.forward(value) - field.centre) / field.scale;
      return increment ? (normalised - now) * field.scale / field.increment : normalised;
    };
    raised += y < end(low) ? 1 : 0;
    lowered += y > end(high) ? 1 : 0;
    return std::fmin(std::fmax(y, end(low)), end(high));
  }

  const Fields& fields_;
  bool increment_;
};

Configuration configuration_of(bool increment, bool last_only, const CutStep& cut) {
  const Json convolution = {{"type", "conv"}, {"features", kHidden}, {"kernel", 3}, {"padding", 1}},
             linear = {{"type", "linear"}, {"features", kOutputs}};
  Json json = {{"data",
                {{"files", {"fields.nc"}},
                 {"variables", {"t2m", "q"}},
                 {"diagnostic", {"tp"}},
                 {"static", {"elevation"}},
                 {"forcing_variables", {"sst", "ice"}},
                 {"input_hours", {-6, 0}},
                 {"predict", increment ? "increment" : "state"},
                 {"boundary_width", 1},
                 {"transforms",
                  {{"q", {{"type", "log"}, {"epsilon", kEpsilon}}},
                   {"tp", {{"type", "box_cox"}, {"epsilon", kRainEpsilon}, {"lambda", kPower}}},
                   {"sst", "min_max"},
                   {"ice", "none"},
                   {"elevation", "sqrt"}}},
                 {"clamp", {{"q", {kLow, kHigh}}, {"tp", {0, nullptr}}}},
                 {"train", {"2019-12-30", "2019-12-31"}},
                 {"valid", {"2020-01-01", "2020-01-02"}}}},
               {"model", {{"type", "sequential"}, {"layers", {convolution, {{"type", "tanh"}}, linear}}}},
               {"loss", {{"area_weighted", false}, {"variable_weights", {{"q", 2.0}}}}}};
  testing::take_gradient_away(json, cut, 4, kLeads);
  if (last_only) json["train"]["rollout_gradient"] = "last";
  return parse<Configuration>(json);
}

struct Wanted {
  double loss = 0;
  Tensors gradients;
  std::vector<std::array<double, 3>> scores;  ///< [lead · outputs + output]
};

Wanted reference_of(const Fields& fields, bool increment, bool last_only) {
  Reference reference(fields, increment);
  const std::vector<int> train = {1, 2, 3, 4}, valid = {8, 9, 10};
  const Tensors p = initial_parameters();
  Wanted wanted{reference.loss(train, p, p, last_only), {}, {}};
  EXPECT_GT(reference.lowered, 0);
  EXPECT_GT(reference.raised, 0);
  constexpr double kStep = 1e-6;
  for (const auto& [name, values] : p) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto moved = [&](double by) {
        Tensors there = p;
        there[name][i] += by;
        return reference.loss(train, there, last_only ? p : there, last_only);
      };
      wanted.gradients[name].push_back((moved(kStep) - moved(-kStep)) / (2 * kStep));
    }
  }
  for (int lead = 0; lead < kLeads; ++lead) {
    for (std::size_t n = 0; n < kOutputs; ++n) wanted.scores.push_back(reference.scores(valid, p, lead, n));
  }
  return wanted;
}

void expect_scores(const ValidationResult& found, const Wanted& wanted) {
  const std::array<const char*, kOutputs> names = {"t2m", "q", "tp"};
  ASSERT_EQ(found.leads.size(), static_cast<std::size_t>(kLeads));
  for (std::size_t lead = 0; lead < kLeads; ++lead) {
    for (std::size_t n = 0; n < kOutputs; ++n) {
      const auto& [rmse, bias, persistence] = wanted.scores[lead * kOutputs + n];
      const Json& score = found.metrics(lead).at(names[n]);
      EXPECT_NEAR(score.at("rmse").get<double>(), rmse, 1e-10 * rmse) << names[n] << lead;
      EXPECT_NEAR(score.at("bias").get<double>(), bias, 1e-10 * rmse) << names[n] << lead;
      EXPECT_NEAR(score.at("persistence_rmse").get<double>(), persistence, 1e-10 * persistence)
          << names[n] << lead;
    }
  }
}

Tensors run_rank(Communicator& world, const Configuration& config, const std::string& folder,
                 const Wanted& wanted) {
  OpenedRun run(config, folder, world);
  PlacedModel& placed = run.placed();
  const std::vector<ParameterBlock*> blocks = placed.model().parameters();
  const Context& context = placed.rank().context;
  for (ParameterBlock* block : blocks) testing::load(context, *block, initial_parameters());
  Optimizer optimizer(placed.rank(), blocks, config.optimizer);
  expect_scores(Validation(run).run([] { return false; }).value(), wanted);
  TrainingBatches batches(config, run.objective(), placed);
  Prefetch parts([&](std::int64_t part) { return batches.read(part, context.host()); }, 0,
                 config.train.accumulate);
  const StepResult result = TrainingStep(run, optimizer, 1).run(1, parts);
  EXPECT_NEAR(result.loss / wanted.loss, 1, 1e-11);
  Tensors after;
  for (ParameterBlock* block : blocks) {
    for (auto& group : block->groups()) testing::collect(group->owned_segments(), group->owned(), after);
  }
  return after;
}

void expect_equal(bool increment, bool last_only, const std::vector<CutStep>& cuts) {
  const testing::TemporaryFolder folder;
  const Fields fields;
  fields.write(folder.path() + "/fields.nc");
  const Wanted wanted = reference_of(fields, increment, last_only);
  const Tensors initial = initial_parameters();
  for (const CutStep& cut : cuts) {
    SCOPED_TRACE(concat(increment ? "increment" : "state", ", ", cut.to_string()));
    const Configuration config = configuration_of(increment, last_only, cut);
    Tensors after;
    std::mutex mutex;
    testing::run_test_ranks(cut.ranks(), [&](Communicator& world) {
      EXPECT_EQ(world.size(), cut.ranks());
      const Tensors mine = run_rank(world, config, folder.path(), wanted);
      const std::lock_guard lock(mutex);
      testing::merge(after, mine);
    });
    for (const auto& [name, gradient] : wanted.gradients) {
      std::vector<double> taken = initial.at(name);
      for (std::size_t i = 0; i < taken.size(); ++i) taken[i] -= after.at(name)[i];
      EXPECT_LE(testing::relative_difference(taken, gradient), 3e-8) << name;
    }
  }
}

TEST(ForecastInputs, IncrementsAreThoseOfTheLoops) {
  expect_equal(true, false,
               {{}, {2}, {1, {2, 1}}, {1, {1, 3}, 1, 2}, {1, {1, 1}, 2}, {1, {2, 1}, 2, 1, "block"}});
}

TEST(ForecastInputs, StatesAreThoseOfTheLoops) {
  expect_equal(false, false, {{}, {2, {1, 2}}, {1, {3, 1}}, {1, {1, 1}, 2, 4}});
}

/// In single precision, whose roundings leave what is brought to an end of a range on either side of it.
TEST(ForecastInputs, StatesAtTheEndsOfRangesAreTheseEndsToTheLastBit) {
  const testing::TemporaryFolder folder;
  Fields().write(folder.path() + "/fields.nc");
  for (const CutStep& cut : std::vector<CutStep>{{}, {1, {2, 1}}}) {
    SCOPED_TRACE(cut.to_string());
    Json json = to_json(configuration_of(true, false, cut));
    json["train"]["precision"] = "fp32";
    const auto config = parse<Configuration>(json);
    std::atomic<int> low = 0, high = 0, dry = 0;
    testing::run_test_ranks(cut.ranks(), [&](Communicator& world) {
      OpenedRun run(config, folder.path(), world);
      const Rank& rank = run.placed().rank();
      for (ParameterBlock* block : run.placed().model().parameters())
        testing::load(rank.context, *block, initial_parameters());
      const PhysicalStates physical(run.data().channels(), run.data().statistics(), Predict::kIncrement);
      const auto states_of = [&](bool physical_alone) {
        std::vector<double> all;
        Validation(run, physical_alone)
            .run([&](int lead, const ShardedTensor& prediction, const Batch& batch) {
              std::vector<double> states = download_values(
                  rank.context, physical.predicted(rank, prediction.layout, prediction.piece, batch.origin));
              // On the rim the model goes on with the files' states, and what it adds is no state there.
              const std::vector<double> targets = download_values(rank.context, batch.target(lead));
              ASSERT_EQ(states.size(), targets.size());
              for (std::size_t i = 0; i < states.size(); ++i)
                if (std::isnan(targets[i])) states[i] = std::nan("");
              all.insert(all.end(), states.begin(), states.end());
            });
        return all;
      };
      const std::vector<double> compared = states_of(false), exact = states_of(true);
      ASSERT_EQ(exact.size(), compared.size());
      for (std::size_t i = 0; i < exact.size(); ++i) {
        const auto expect_end = [&](double end, double roundings, std::atomic<int>& count) {
          if (!(std::abs(compared[i] - end) < roundings)) return;
          EXPECT_EQ(exact[i], end) << i << ", " << compared[i];
          ++count;
        };
        if (std::isnan(exact[i])) continue;
        const std::size_t output = i % kOutputs;
        EXPECT_NEAR(exact[i], compared[i], output == 0 ? 1e-3 : 4e-8) << i;
        if (output == 1) expect_end(kLow, 1e-5 * kLow, low);
        if (output == 1) expect_end(kHigh, 1e-5 * kHigh, high);
        if (output == 2) expect_end(0, 1e-8, dry);
      }
    });
    EXPECT_GT(low + dry, 0);
    EXPECT_GT(high, 0);
  }
}

TEST(ForecastInputs, GradientsOfTheLastLeadAlone) {
  expect_equal(true, true, {{}, {1, {2, 1}}, {2, {1, 1}, 1, 2, "block"}});
  expect_equal(false, true, {{}, {1, {1, 1}, 2}});
}

TEST(ForecastInputs, LevelsWeighByPressure) {
  const auto targets = std::vector<Channel>{{"t2m", Role::kPrognostic, {"t2m", std::nullopt}},
                                            {"t_850", Role::kPrognostic, {"t", 850}},
                                            {"t_500", Role::kPrognostic, {"t", 500}},
                                            {"t_250", Role::kPrognostic, {"t", 250}},
                                            {"q_850", Role::kPrognostic, {"q", 850}}};
  Json json = to_json(configuration_of(true, false, {}));
  json["loss"] = {{"type", "mse"},
                  {"level_weights", "pressure"},
                  {"variable_weights", {{"t", 3.0}, {"t_500", 0.5}, {"q", 2.0}}}};
  const FieldLossOptions options = field_loss_options(parse<Configuration>(json).loss, targets);
  const double mean = 1600.0 / 3;
  EXPECT_DOUBLE_EQ(options.variable_weights.at("t2m"), 1);
  EXPECT_DOUBLE_EQ(options.variable_weights.at("t_850"), 3 * 850 / mean);
  EXPECT_DOUBLE_EQ(options.variable_weights.at("t_500"), 0.5 * 500 / mean);
  EXPECT_DOUBLE_EQ(options.variable_weights.at("t_250"), 3 * 250 / mean);
  EXPECT_DOUBLE_EQ(options.variable_weights.at("q_850"), 2);
  const auto above = std::vector<Channel>{{"w_0", Role::kPrognostic, {"w", 0}}};
  EXPECT_THROW(field_loss_options(parse<Configuration>(json).loss, above), ConfigError);
  json["loss"]["variable_weights"]["v"] = 1.0;
  const FieldLossOptions wrong = field_loss_options(parse<Configuration>(json).loss, targets);
  EXPECT_THROW(FieldLoss(wrong, {1, 1}, {"t2m", "t_850", "t_500", "t_250", "q_850"}), ConfigError);
}

TEST(ForecastInputs, RolloutsBySteps) {
  Json json = to_json(configuration_of(true, false, {}));
  json["train"]["rollout"] = {{"leads", {1, 2, 4}}, {"from", {1, 1001, 2001}}};
  const RolloutOptions rollout = parse<Configuration>(json).train.rollout;
  EXPECT_EQ(rollout.most(), 4);
  const std::vector<std::pair<std::int64_t, int>> expected = {{1, 1},    {1000, 1}, {1001, 2},
                                                              {2000, 2}, {2001, 4}, {99999, 4}};
  for (const auto& [step, leads] : expected) EXPECT_EQ(rollout.at(step, 0.5), leads) << step;
  const auto refused = [&](const Json& wrong) {
    json["train"]["rollout"] = wrong;
    EXPECT_THROW(parse<Configuration>(json), ConfigError) << wrong.dump();
  };
  refused({{"leads", {1, 2}}, {"from", {1}}});
  refused({{"leads", {1, 2}}, {"from", {2, 3}}});
  refused({{"leads", {1, 2, 4}}, {"from", {1, 5, 5}}});
}

}  // namespace forecast_inputs_test
}  // namespace jigsaw
