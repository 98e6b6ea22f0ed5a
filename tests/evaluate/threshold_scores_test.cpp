// Scores of thresholds beside plain loops in float64, and beside numbers of a textbook; on any mesh.
#include "evaluate/threshold_scores.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"
#include "evaluate/made_forecasts.h"
#include "support/arrays.h"
#include "support/pieces.h"
#include "support/test_ranks.h"
#include "task/ensemble.h"

namespace jigsaw {
namespace threshold_scores_test {

using namespace testing::made_forecasts;
using testing::array_of;
using testing::MeshCase;

constexpr std::int64_t kChannels = 4;
constexpr int kLeads = 2;

/// Of few values, so that many are equal to a threshold.
double forecast_at(int member, int lead, std::size_t batch, std::int64_t i) {
  return std::round(4 * wave(member, lead, batch, i)) / 4;
}
/// Missing here and there.
double truth_at(int lead, std::size_t batch, std::int64_t i) {
  return i % 11 == 0 ? kNaN : forecast_at(0, lead, batch, i + i % 3);
}
double mean_at(int members, int lead, std::size_t batch, std::int64_t i) {
  double sum = forecast_at(0, lead, batch, i);
  for (int j = 1; j < members; ++j) sum += forecast_at(j, lead, batch, i);
  return members == 1 ? sum : sum * (1.0 / members);
}

double region_weight(std::int64_t region, std::int64_t point) {
  return is_in(region, point) ? 1 + 0.25 * static_cast<double>(point / kColumns) : 0.0;
}

Thresholds thresholds(bool around) {
  const std::vector<std::vector<double>> numbers = {{0.25, 0.5}, {}, {-0.5}, {0, 0.25, 2}};
  return {numbers, {1, 3, 9}, around};
}

/// What loops over all points of all samples find. Values are multiples of 1/12 but for rounding.
class Loops {
 public:
  Loops(int members, bool around) : members_(members), around_(around) {}

  ThresholdScore score(int lead, std::int64_t channel, double threshold, std::int64_t region) const {
    double hits = 0, misses = 0, alarms = 0, rejections = 0, brier = 0;
    std::vector<double> apart(3), largest(3), forecasts(static_cast<std::size_t>(members_ + 1)),
        events(forecasts.size());
    for (std::size_t batch = 0; batch < kBatches.size(); ++batch) {
      for (std::int64_t p = 0; p < kBatches[batch] * kPoints; ++p) {
        const std::int64_t i = p * kChannels + channel, sample = p / kPoints, point = p % kPoints;
        const double weight = region_weight(region, point), truth = truth_at(lead, batch, i);
        if (std::isnan(truth) || weight == 0) continue;
        const bool event = truth >= threshold, told = mean_at(members_, lead, batch, i) >= threshold;
        (event ? (told ? hits : misses) : (told ? alarms : rejections)) += weight;
        std::size_t reached = 0;
        for (int j = 0; j < members_; ++j) reached += forecast_at(j, lead, batch, i) >= threshold ? 1 : 0;
        brier += weight * std::pow(static_cast<double>(reached) / members_ - (event ? 1 : 0), 2);
        forecasts[reached] += weight;
        events[reached] += event ? weight : 0;
        for (std::size_t s = 0; s < 3; ++s) {
          const std::int64_t scale = std::vector<std::int64_t>{1, 3, 9}[s];
          double told_there = 0, events_there = 0;
          for (std::int64_t down = -(scale / 2); down <= scale / 2; ++down) {
            for (std::int64_t right = -(scale / 2); right <= scale / 2; ++right) {
              const std::int64_t row = point / kColumns + down;
              std::int64_t column = point % kColumns + right;
              if (around_) column = (column + 10 * kColumns) % kColumns;
              if (row < 0 || row >= kRows || column < 0 || column >= kColumns) continue;
              const std::int64_t there = ((sample * kRows + row) * kColumns + column) * kChannels + channel;
              if (std::isnan(truth_at(lead, batch, there))) continue;
              told_there += mean_at(members_, lead, batch, there) >= threshold ? 1 : 0;
              events_there += truth_at(lead, batch, there) >= threshold ? 1 : 0;
            }
          }
          const double p_there = told_there / static_cast<double>(scale * scale),
                       q_there = events_there / static_cast<double>(scale * scale);
          apart[s] += weight * std::pow(p_there - q_there, 2);
          largest[s] += weight * (p_there * p_there + q_there * q_there);
        }
      }
    }
    const double all = hits + misses + alarms + rejections;
    ThresholdScore score;
    score.hits = hits / all;
    score.misses = misses / all;
    score.false_alarms = alarms / all;
    score.correct_negatives = rejections / all;
    score.base_rate = (hits + misses) / all;
    score.pod = hits / (hits + misses);
    score.far = alarms / (hits + alarms);
    score.csi = hits / (hits + alarms + misses);
    score.frequency_bias = (hits + alarms) / (hits + misses);
    // Right ones less those that chance would have, over what chance leaves.
    const double by_chance =
        ((hits + alarms) * (hits + misses) + (misses + rejections) * (alarms + rejections)) / all;
    score.hss = (hits + rejections - by_chance) / (all - by_chance);
    score.brier = members_ > 1 ? brier / all : 0;
    for (std::size_t s = 0; s < 3; ++s) score.fss.push_back(1 - apart[s] / largest[s]);
    for (std::size_t k = 0; members_ > 1 && k < forecasts.size(); ++k) {
      score.forecast_share.push_back(forecasts[k] / all);
      score.observed_frequency.push_back(events[k] / forecasts[k]);
      if (forecasts[k] == 0) continue;
      const double share = static_cast<double>(k) / members_;
      score.reliability += forecasts[k] * std::pow(share - events[k] / forecasts[k], 2) / all;
      // Of Murphy's three parts the one that is left.
    }
    score.resolution =
        members_ > 1 ? score.reliability + score.base_rate * (1 - score.base_rate) - score.brier : 0;
    // How often more members reach it where the event came than where it did not; of equal numbers half.
    double more = 0, pairs = 0;
    for (std::size_t k = 0; members_ > 1 && k < forecasts.size(); ++k) {
      for (std::size_t j = 0; j < forecasts.size(); ++j) {
        const double both = events[k] * (forecasts[j] - events[j]);
        pairs += both;
        more += k > j ? both : k == j ? both / 2 : 0;
      }
    }
    score.roc_area = members_ > 1 ? more / pairs : 0;
    return score;
  }

 private:
  int members_;
  bool around_;
};

void expect_near(double found, double wanted, const char* what) {
  expect_number(found, wanted, 1e-12, what);
}

void expect_numbers(const std::vector<double>& found, const std::vector<double>& wanted, const char* what) {
  ASSERT_EQ(found.size(), wanted.size()) << what;
  for (std::size_t i = 0; i < wanted.size(); ++i) expect_near(found[i], wanted[i], what);
}

void expect_score(const ThresholdScore& found, const ThresholdScore& wanted) {
  expect_near(found.hits, wanted.hits, "hits");
  expect_near(found.misses, wanted.misses, "misses");
  expect_near(found.false_alarms, wanted.false_alarms, "false alarms");
  expect_near(found.correct_negatives, wanted.correct_negatives, "correct negatives");
  expect_near(found.base_rate, wanted.base_rate, "base rate");
  expect_near(found.pod, wanted.pod, "POD");
  expect_near(found.far, wanted.far, "FAR");
  expect_near(found.csi, wanted.csi, "CSI");
  expect_near(found.frequency_bias, wanted.frequency_bias, "frequency bias");
  expect_near(found.hss, wanted.hss, "HSS");
  expect_near(found.brier, wanted.brier, "Brier");
  expect_near(found.reliability, wanted.reliability, "reliability");
  expect_near(found.resolution, wanted.resolution, "resolution");
  expect_near(found.roc_area, wanted.roc_area, "ROC area");
  expect_numbers(found.fss, wanted.fss, "FSS");
  expect_numbers(found.forecast_share, wanted.forecast_share, "forecasts");
  expect_numbers(found.observed_frequency, wanted.observed_frequency, "events");
}

const MeshCase kMeshes[] = {{1, {1, 1}, 1}, {2, {1, 1}, 1}, {1, {2, 1}, 2},    {1, {1, 3}, 1},
                            {1, {1, 1}, 3}, {4, {1, 1}, 1}, {2, {2, 1}, 1, 1}, {2, {1, 2}, 1, 1}};

void add_all(const Rank& rank, const MeshCase& mesh, int members, ThresholdScores& scores) {
  for (std::size_t batch = 0; batch < kBatches.size(); ++batch) {
    const Layout layout = layout_of(rank.mesh, kBatches[batch], kChannels, mesh.data_cuts);
    const Box box = rank.box(layout);
    std::vector<double> weights;
    for (const std::vector<double>& of_region : weights_in(box, region_weight))
      weights.insert(weights.end(), of_region.begin(), of_region.end());
    const Array points =
        array_of(rank.context, {kRegions, box.extent[1] * box.extent[2]}, DType::kFloat64, weights);
    for (int lead = 0; lead < kLeads; ++lead) {
      const auto forecast = [&](int member, std::int64_t i) { return forecast_at(member, lead, batch, i); };
      const auto mean = [&](int, std::int64_t i) { return mean_at(members, lead, batch, i); };
      const auto truth = [&](int, std::int64_t i) { return truth_at(lead, batch, i); };
      scores.add(rank, lead, layout, members_of(rank, layout, members, forecast),
                 members_of(rank, layout, 1, mean), members_of(rank, layout, 1, truth), points);
    }
  }
  scores.finish(rank);
}

TEST(ThresholdScores, AreWhatLoopsFindOnEveryMesh) {
  for (const MeshCase& mesh : kMeshes) {
    for (const int members : {1, kMembers}) {
      const bool around = members == 1;
      const Loops loops(members, around);
      SCOPED_TRACE(concat(text_of(mesh), ", ", members, " members"));
      testing::run_test_ranks(ranks_of(mesh), [&](Communicator& world) {
        Mesh axes(world, mesh.data, mesh.domain, mesh.tensor);
        const Rank rank{world.context(), axes};
        ThresholdScores scores(thresholds(around), kLeads, kRegions, members);
        add_all(rank, mesh, members, scores);
        for (int lead = 0; lead < kLeads; ++lead) {
          for (std::size_t channel = 0; channel < kChannels; ++channel) {
            for (std::size_t t = 0; t < scores.of(channel).size(); ++t) {
              for (std::size_t region = 0; region < kRegions; ++region) {
                SCOPED_TRACE(
                    concat("lead ", lead, ", channel ", channel, ", threshold ", t, ", region ", region));
                ThresholdScore wanted =
                    loops.score(lead, static_cast<std::int64_t>(channel), scores.of(channel)[t] - 1e-8,
                                static_cast<std::int64_t>(region));
                expect_score(scores.score(lead, channel, t, region), wanted);
              }
            }
          }
        }
        // What never happens has no share of it that was told, and no skill.
        const ThresholdScore never = scores.score(0, 3, 2, 0);
        EXPECT_EQ(never.base_rate, 0);
        EXPECT_EQ(never.correct_negatives, 1);
        for (const double number : {never.pod, never.csi, never.fss[1]}) EXPECT_TRUE(std::isnan(number));
      });
    }
  }
}

/// Scores of one row of points, of which so many are forecast and true.
ThresholdScore score_of(const std::vector<double>& forecast, const std::vector<double>& truth,
                        std::vector<std::int64_t> scales, bool around = false) {
  ThresholdScore score;
  testing::run_test_ranks(1, [&](Communicator& world) {
    Mesh axes(world, 1, {1, 1}, 1);
    const Rank rank{world.context(), axes};
    const auto points = std::ssize(truth);
    const Layout layout{{1, 1, points, 1}, {}};
    const auto field = [&](const std::vector<double>& values) {
      return array_of(rank.context, layout.global, DType::kFloat64, values);
    };
    ThresholdScores scores({{{1}}, std::move(scales), around}, 1, 1, 1);
    scores.add(rank, 0, layout, field(forecast), field(forecast), field(truth),
               array_of(rank.context, {1, points}, DType::kFloat64, std::vector<double>(truth.size(), 1.0)));
    scores.finish(rank);
    score = scores.score(0, 0, 0, 0);
  });
  return score;
}

/// Finley's forecasts of tornadoes, as Wilks has their scores (2006, section 7.2).
TEST(ThresholdScores, AreThoseOfFinleysTornadoes) {
  std::vector<double> forecast, truth;
  const auto put = [&](int times, double told, double came) {
    forecast.insert(forecast.end(), static_cast<std::size_t>(times), told);
    truth.insert(truth.end(), static_cast<std::size_t>(times), came);
  };
  put(28, 1, 1);
  put(72, 1, 0);
  put(23, 0, 1);
  put(2680, 0, 0);
  const ThresholdScore score = score_of(forecast, truth, {});
  EXPECT_NEAR(score.hits, 28.0 / 2803, 1e-15);
  EXPECT_NEAR(score.pod, 0.549, 5e-4);
  EXPECT_NEAR(score.far, 0.720, 5e-4);
  EXPECT_NEAR(score.csi, 0.228, 5e-4);
  EXPECT_NEAR(score.frequency_bias, 1.96, 5e-3);
  EXPECT_NEAR(score.hss, 0.355, 5e-4);
}

/// A point of rain that is forecast two columns off: squares of n points along an edge that overlap in n − 2
/// columns. Of one row each share is of n events at most of n² points.
TEST(ThresholdScores, FractionsForgiveADisplacementLessThanTheirSquares) {
  std::vector<double> forecast(31, 0.0), truth(31, 0.0);
  truth[15] = forecast[17] = 1;
  const ThresholdScore score = score_of(forecast, truth, {1, 3, 5, 9});
  // Σ (p − q)² ∝ 4 columns in which one of both alone counts, Σ p² + q² ∝ 2n.
  expect_numbers(score.fss, {0, 1 - 4.0 / 6, 1 - 4.0 / 10, 1 - 4.0 / 18}, "FSS");
  EXPECT_EQ(score.hits, 0);
  // Over the ends of a row around the globe they are as near to each other.
  std::vector<double> east(31, 0.0), west(31, 0.0);
  east[30] = west[1] = 1;
  expect_numbers(score_of(west, east, {1, 3, 5, 9}, true).fss, score.fss, "FSS around the globe");
  EXPECT_EQ(score_of(west, east, {5}, false).fss[0], 0) << "on a limited area they are far apart";
}

TEST(ThresholdScores, AForecastThatIsNotANumberShows) {
  const ThresholdScore score = score_of({1, kNaN, 0}, {1, 1, kNaN}, {3});
  for (const double number : {score.hits, score.csi, score.fss[0]}) EXPECT_TRUE(std::isnan(number));
  const ThresholdScore known = score_of({1, 1, kNaN}, {1, 1, kNaN}, {3});
  for (const double number : {known.hits, known.csi, known.fss[0]}) EXPECT_EQ(number, 1);
}

/// As files of float32 hold it, too.
TEST(ThresholdScores, WhatIsAtAThresholdReachesIt) {
  for (int i = -2000; i < 2000; ++i) {
    const double threshold = 0.01 * i, reached = reached_from(threshold);
    ASSERT_GE(static_cast<double>(static_cast<float>(threshold)), reached) << threshold;
    ASSERT_LE(reached, threshold);
    if (i != 0) {
      ASSERT_LT(threshold - 1e-6 * std::abs(threshold), reached) << threshold;
    }
  }
}

}  // namespace threshold_scores_test
}  // namespace jigsaw
