// States of forecasts, and sums of their scores over ranks, are the same on every mesh.
#include "task/physical_states.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "base/text.h"
#include "support/arrays.h"
#include "support/pieces.h"
#include "support/test_ranks.h"
#include "task/ensemble.h"
#include "task/score_sums.h"

namespace jigsaw {
namespace {

using testing::array_of;
using testing::values_of;

const Shape kField = {4, 3, 5, 6};
constexpr int kChannels = 6;

/// Pieces of made-up fields on a mesh.
class Pieces {
 public:
  Pieces(Communicator& world, int data, const std::vector<int>& domain, int tensor)
      : mesh_(world, data, domain, tensor), rank_{world.context(), mesh_} {
    layout_.global = kField;
    layout_.placements[Mesh::kData] = Placement::shard(0);
    for (int dim = 0; dim < 2; ++dim) layout_.placements[mesh_.domain(dim)] = Placement::shard(1 + dim);
    layout_.placements[mesh_.tensor()] = Placement::shard(3);
  }

  const Rank& rank() const { return rank_; }
  const Layout& layout() const { return layout_; }
  Box box() const { return rank_.box(layout_); }

  /// Of f(element of the whole field).
  template <typename F>
  Array field(DType type, const F& f) const {
    return testing::make_piece(rank_, layout_, type, f);
  }
  std::int64_t number(std::size_t i) const {
    return testing::global_index(kField, box(), static_cast<std::int64_t>(i));
  }

 private:
  Mesh mesh_;
  Rank rank_;
  Layout layout_;
};

struct MeshCase {
  int data;
  std::vector<int> domain;
  int tensor;
  int ranks() const { return data * domain[0] * domain[1] * tensor; }
};
const MeshCase kMeshes[] = {{1, {1, 1}, 1}, {2, {1, 1}, 1}, {1, {2, 1}, 2},
                            {1, {1, 2}, 1}, {1, {1, 1}, 4}, {3, {1, 1}, 1}};

template <typename F>
void on_every_mesh(const F& body) {
  for (const MeshCase& mesh : kMeshes) {
    SCOPED_TRACE(concat(mesh.data, " × ", mesh.domain[0], " × ", mesh.domain[1], " × ", mesh.tensor));
    testing::run_test_ranks(mesh.ranks(), [&](Communicator& world) {
      ASSERT_EQ(world.size(), mesh.ranks());
      body(Pieces(world, mesh.data, mesh.domain, mesh.tensor));
    });
  }
}

double wave(std::int64_t i, double step) {
  return std::sin(step * static_cast<double>(i + 1));
}

/// A target with each transform; every second one is prognostic.
Channels channels_with_transforms() {
  Channels channels;
  for (const TransformKind kind : {TransformKind::kStandard, TransformKind::kMinMax, TransformKind::kNone,
                                   TransformKind::kLog, TransformKind::kSqrt, TransformKind::kBoxCox}) {
    Channel target;
    target.field.variable = concat("v", channels.targets.size());
    target.role = channels.targets.size() % 2 == 1 ? Role::kPrognostic : Role::kDiagnostic;
    target.transform = {kind, 0.03, 0.3};
    target.range = {0.4, 1.2};
    channels.targets.push_back(target);
  }
  return channels;
}

TEST(PhysicalStates, AtABoundAreAlike) {
  const Channels channels = channels_with_transforms();
  Statistics statistics;
  for (const Channel& target : channels.targets) statistics.fields[target.field.name()] = {"", 0.5, 0.8, 0.3};
  on_every_mesh([&](const Pieces& pieces) {
    // Less, at, and more than the lower bound, by what single precision rounds; and far from it.
    const Array states = pieces.field(DType::kFloat64, [](std::int64_t i) {
      return std::array{0.4 - 3e-8, 0.4, 0.4 + 3e-8, 0.7}[static_cast<std::size_t>(i % 4)];
    });
    const PhysicalStates physical(channels, statistics, Predict::kState);
    const std::vector<double> given = values_of(states),
                              alike =
                                  values_of(physical.alike_at_bounds(pieces.rank(), pieces.layout(), states));
    ASSERT_EQ(alike.size(), given.size());
    const auto channel = [&](std::size_t i) {
      return pieces.number(i) % static_cast<std::int64_t>(kChannels);
    };
    for (std::size_t i = 0; i < alike.size(); ++i) {
      EXPECT_NEAR(alike[i], given[i], 4e-6) << i;
      if (given[i] == 0.7) {
        EXPECT_EQ(alike[i], 0.7);
      }
      for (std::size_t j = 0; j < i; ++j) {
        const bool both = given[i] < 0.5 && given[j] < 0.5;
        if (both && channel(i) == channel(j)) {
          EXPECT_EQ(alike[i], alike[j]);
        }
      }
    }
  });
}

/// Where nothing fell a member with a transform is 0, and the truth what packing made of it: above it or
/// below.
TEST(PhysicalStates, WithATransformNothingIsAlikeWithoutARange) {
  Channels channels = channels_with_transforms();
  for (Channel& target : channels.targets) target.range = {};
  Statistics statistics;
  for (const Channel& target : channels.targets) statistics.fields[target.field.name()] = {"", 0.5, 0.8, 0.3};
  on_every_mesh([&](const Pieces& pieces) {
    const Array states = pieces.field(DType::kFloat64, [](std::int64_t i) {
      return std::array{-7e-16, 0.0, 7e-16, 1e-4}[static_cast<std::size_t>(i % 4)];
    });
    const PhysicalStates physical(channels, statistics, Predict::kState);
    const std::vector<double> given = values_of(states),
                              alike =
                                  values_of(physical.alike_at_bounds(pieces.rank(), pieces.layout(), states));
    for (std::size_t i = 0; i < alike.size(); ++i) {
      const bool transformed = pieces.number(i) % static_cast<std::int64_t>(kChannels) >= 3;
      if (!transformed || given[i] == 1e-4) {
        EXPECT_EQ(alike[i], given[i]) << i;
        continue;
      }
      EXPECT_NEAR(alike[i], 0, 4e-6);
      for (std::size_t j = 0; j < i; ++j) {
        const bool same = pieces.number(j) % static_cast<std::int64_t>(kChannels) ==
                          pieces.number(i) % static_cast<std::int64_t>(kChannels);
        if (same && given[j] < 1e-5) {
          EXPECT_EQ(alike[i], alike[j]);
        }
      }
    }
  });
}

TEST(PhysicalStates, UndoWhatTheTransformsOfTheDataDo) {
  const Channels channels = channels_with_transforms();
  Statistics statistics;
  for (std::size_t c = 0; c < kChannels; ++c)
    statistics.fields[channels.targets[c].field.name()] = {"", 0.5 + 0.1 * static_cast<double>(c), 0.8, 0.3};
  on_every_mesh([&](const Pieces& pieces) {
    const auto start_of = [](std::int64_t i) { return 1 + wave(i, 0.7); };
    const Array values = pieces.field(DType::kFloat32, [](std::int64_t i) { return wave(i, 1.3); }),
                origin = pieces.field(DType::kFloat64, start_of);
    const std::vector<double> ys = values_of(values);
    for (const Predict predict : {Predict::kState, Predict::kIncrement}) {
      const PhysicalStates physical(channels, statistics, predict);
      EXPECT_TRUE(physical.transformed());
      const std::vector<double> open = values_of(physical.of(pieces.rank(), pieces.layout(), values, origin)),
                                kept = values_of(
                                    physical.predicted(pieces.rank(), pieces.layout(), values, origin));
      ASSERT_EQ(open.size(), ys.size());
      for (std::size_t i = 0; i < ys.size(); ++i) {
        const Channel& target = channels.targets[static_cast<std::size_t>(pieces.number(i) % kChannels)];
        const FieldStatistics& field = statistics.of(target.field);
        const bool increment = predict == Predict::kIncrement && target.role == Role::kPrognostic;
        const double normalised = increment
                                      ? target.transform.forward(start_of(pieces.number(i))) + 0.3 * ys[i]
                                      : field.mean + 0.8 * ys[i];
        const double state = target.transform.inverse(normalised);
        EXPECT_NEAR(open[i], state, 1e-14) << i;
        EXPECT_NEAR(kept[i], std::clamp(state, 0.4, 1.2), 1e-14) << i;
      }
    }
  });
}

/// Means of numbers in single precision of windows in which a prediction was brought to an end.
TEST(PhysicalStates, OfAMeanAtAnEndAreThatEnd) {
  const Channels channels = channels_with_transforms();
  Statistics statistics;
  for (const Channel& target : channels.targets) statistics.fields[target.field.name()] = {"", 0.5, 0.8, 0.3};
  const PhysicalStates physical(channels, statistics, Predict::kState);
  constexpr double kRounding = 0x1p-20;
  for (std::size_t c = 0; c < kChannels; ++c) {
    const Transform& transform = channels.targets[c].transform;
    for (const double end : {0.4, 1.2}) {
      const double y = static_cast<float>((transform.forward(end) - 0.5) / 0.8);
      EXPECT_EQ(physical.predicted(c, y * (1 + 3e-8), 0, kRounding), end) << transform.name();
      EXPECT_EQ(physical.predicted(c, y * (1 - 3e-8), 0, kRounding), end) << transform.name();
    }
    EXPECT_EQ(physical.predicted(c, -30, 0, kRounding), 0.4);
    EXPECT_EQ(physical.predicted(c, 30, 0, kRounding), 1.2);
    const double y = (transform.forward(0.7) - 0.5) / 0.8;
    EXPECT_NEAR(physical.predicted(c, y, 0, kRounding), 0.7, 1e-14);
    EXPECT_NEAR(physical.of(c, (transform.forward(1.7) - 0.5) / 0.8, 0), 1.7, 1e-14);
    EXPECT_TRUE(std::isnan(physical.predicted(c, std::nan(""), 0, kRounding)));
  }
}

TEST(PhysicalStates, KnowWhetherErrorsAreThoseOfNormalisedValuesButForAFactor) {
  Channels channels = channels_with_transforms();
  Statistics statistics = neutral_statistics(channels.targets);
  EXPECT_TRUE(PhysicalStates(channels, statistics, Predict::kState).transformed());
  channels.targets.resize(3);
  EXPECT_FALSE(PhysicalStates(channels, statistics, Predict::kState).transformed());
}

/// The second region is the first row.
double region_weight(std::int64_t region, std::int64_t point) {
  return region == 1 && point >= kField[2] ? 0.0 : 1 + 0.1 * static_cast<double>(point % 4);
}

/// Of two regions.
Array weights_of(const Pieces& pieces) {
  const Box box = pieces.box();
  std::vector<double> weights;
  for (const std::int64_t region : {0, 1})
    for (std::int64_t row = box.begin[1]; row < box.end(1); ++row)
      for (std::int64_t column = box.begin[2]; column < box.end(2); ++column)
        weights.push_back(region_weight(region, row * kField[2] + column));
  return array_of(pieces.rank().context, {2, box.extent[1] * box.extent[2]}, DType::kFloat64, weights);
}

/// Of each sample that is here the sums over all points of all ranks, of all channels.
TEST(ScoreSums, AreOverAllPointsAndOfAllChannelsOnEveryMesh) {
  const auto forecast = [](std::int64_t i) { return wave(i, 0.9); };
  const auto truth = [](std::int64_t i) { return i % 11 == 0 ? std::nan("") : wave(i, 0.4); };
  const auto other = [](std::int64_t i) { return i % 7 == 0 ? std::nan("") : wave(i, 0.2); };
  const auto climate = [](std::int64_t i) { return i % 5 == 0 ? std::nan("") : wave(i, 0.1); };
  on_every_mesh([&](const Pieces& pieces) {
    const Array climatology = pieces.field(DType::kFloat32, climate);
    const ScoreSums sums =
        sum_scores(pieces.rank(), pieces.layout(),
                   {pieces.field(DType::kFloat64, forecast), pieces.field(DType::kFloat64, truth),
                    pieces.field(DType::kFloat64, other), climatology},
                   weights_of(pieces));
    ASSERT_EQ(sums.group.samples, pieces.box().extent[0]);
    ASSERT_EQ(sums.regions, 2);
    ASSERT_EQ(sums.channels, kChannels);
    const std::int64_t points = kField[1] * kField[2];
    for (std::int64_t b = 0; b < sums.group.samples; ++b) {
      for (std::int64_t region = 0; region < 2; ++region) {
        for (std::int64_t c = 0; c < kChannels; ++c) {
          double squares = 0, other_weight = 0, product = 0;
          for (std::int64_t point = 0; point < points; ++point) {
            const std::int64_t i = ((sums.group.first + b) * points + point) * kChannels + c;
            const double w = region_weight(region, point), o = truth(i),
                         mean = static_cast<float>(climate(i));
            if (std::isnan(o)) continue;
            squares += w * std::pow(forecast(i) - o, 2);
            if (!std::isnan(other(i))) other_weight += w;
            if (!std::isnan(mean)) product += w * (forecast(i) - mean) * (o - mean);
          }
          EXPECT_NEAR(sums.of(ScoreSum::kSquares, b, region, c), squares, 1e-12);
          EXPECT_NEAR(sums.of(ScoreSum::kReferenceWeight, b, region, c), other_weight, 1e-12);
          EXPECT_NEAR(sums.of(ScoreSum::kProduct, b, region, c), product, 1e-12);
        }
      }
    }
  });
}

/// Three members, of which the second is the truth at every third point.
TEST(TruthRanks, AreOverAllPointsAndOfAllChannelsOnEveryMesh) {
  const auto truth = [](std::int64_t i) { return i % 11 == 0 ? std::nan("") : wave(i, 0.4); };
  const auto member = [](int j, std::int64_t i) {
    return j == 1 && i % 3 == 0 ? wave(i, 0.4) : wave(i, 0.5 + 0.2 * j);
  };
  on_every_mesh([&](const Pieces& pieces) {
    std::vector<Array> fields;
    for (int j = 0; j < 3; ++j)
      fields.push_back(pieces.field(DType::kFloat64, [&](std::int64_t i) { return member(j, i); }));
    const RegionSums sums =
        sum_truth_ranks(pieces.rank(), pieces.layout(), join_members(pieces.rank().context, fields),
                        pieces.field(DType::kFloat64, truth), 3, weights_of(pieces));
    ASSERT_EQ(sums.group.samples, pieces.box().extent[0]);
    const std::int64_t points = kField[1] * kField[2];
    for (std::int64_t b = 0; b < sums.group.samples; ++b) {
      for (std::int64_t region = 0; region < 2; ++region) {
        for (std::int64_t c = 0; c < kChannels; ++c) {
          std::array<double, 4> wanted = {};
          for (std::int64_t point = 0; point < points; ++point) {
            const std::int64_t i = ((sums.group.first + b) * points + point) * kChannels + c;
            if (std::isnan(truth(i))) continue;
            std::size_t below = 0;
            for (int j = 0; j < 3; ++j) below += member(j, i) < truth(i) ? 1 : 0;
            const bool equal = i % 3 == 0;
            wanted[below] += region_weight(region, point) / (equal ? 2 : 1);
            if (equal) wanted[below + 1] += region_weight(region, point) / 2;
          }
          for (std::size_t k = 0; k < 4; ++k)
            EXPECT_NEAR(sums.at(static_cast<std::int64_t>(k), b, region, c), wanted[k], 1e-12);
        }
      }
    }
  });
}

/// Three members and two thresholds, of which every second channel has one alone.
TEST(Exceedances, AreOverAllPointsAndOfAllChannelsOnEveryMesh) {
  const auto truth = [](std::int64_t i) { return i % 11 == 0 ? std::nan("") : wave(i, 0.4); };
  const auto member = [](int j, std::int64_t i) { return wave(i, 0.5 + 0.2 * j); };
  std::vector<std::vector<double>> thresholds(2);
  for (int c = 0; c < kChannels; ++c) {
    thresholds[0].push_back(0.1 * c - 0.2);
    thresholds[1].push_back(c % 2 == 0 ? 0.5 : std::nan(""));
  }
  on_every_mesh([&](const Pieces& pieces) {
    std::vector<Array> fields;
    for (int j = 0; j < 3; ++j)
      fields.push_back(pieces.field(DType::kFloat64, [&](std::int64_t i) { return member(j, i); }));
    const RegionSums sums =
        sum_exceedances(pieces.rank(), pieces.layout(), join_members(pieces.rank().context, fields),
                        pieces.field(DType::kFloat64, truth), 3, thresholds, weights_of(pieces));
    ASSERT_EQ(sums.group.samples, pieces.box().extent[0]);
    const std::int64_t points = kField[1] * kField[2];
    for (std::int64_t b = 0; b < sums.group.samples; ++b) {
      for (std::int64_t region = 0; region < 2; ++region) {
        for (std::int64_t c = 0; c < kChannels; ++c) {
          std::array<double, 16> wanted = {};
          for (std::int64_t point = 0; point < points; ++point) {
            const std::int64_t i = ((sums.group.first + b) * points + point) * kChannels + c;
            for (std::size_t t = 0; t < 2; ++t) {
              const double threshold = thresholds[t][static_cast<std::size_t>(c)];
              if (std::isnan(truth(i)) || std::isnan(threshold)) continue;
              std::size_t kind = t * 8 + (truth(i) >= threshold ? 0 : 4);
              for (int j = 0; j < 3; ++j) kind += member(j, i) >= threshold ? 1 : 0;
              wanted[kind] += region_weight(region, point);
            }
          }
          for (std::size_t k = 0; k < wanted.size(); ++k)
            EXPECT_NEAR(sums.at(static_cast<std::int64_t>(k), b, region, c), wanted[k], 1e-12) << k;
        }
      }
    }
  });
}

}  // namespace
}  // namespace jigsaw
