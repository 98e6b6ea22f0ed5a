// Scores of means and variability in time beside plain loops over whole fields in float64; on any mesh.
#include "evaluate/climate_scores.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "evaluate/made_forecasts.h"
#include "support/arrays.h"
#include "support/test_ranks.h"

namespace jigsaw {
namespace climate_scores_test {

using namespace testing::made_forecasts;
using testing::array_of;
using testing::MeshCase;

constexpr std::int64_t kChannels = 3;
constexpr int kLeads = 4, kSpinUp = 1;

double forecast_at(int member, int lead, std::size_t batch, std::int64_t i) {
  return large_at(member, lead, batch, i, kChannels);
}
double truth_at(int lead, std::size_t batch, std::int64_t i) {
  return large_truth_at(lead, batch, i, kChannels);
}

/// A sample's start; leads are twenty days. Nothing is of July and September.
Time time_at(std::size_t batch, std::int64_t sample, int lead) {
  static const std::vector<std::vector<Date>> kStarts = {{{2001, 1, 15}, {2001, 4, 20}, {2001, 11, 29}},
                                                         {{2003, 12, 30}, {2004, 2, 9}}};
  const Date& start = kStarts[batch][static_cast<std::size_t>(sample)];
  return days_from_date(start, Calendar::kStandard) * kDay + (lead + 1) * 20 * kDay;
}
bool falls_in(const std::string& group, Time time) {
  const std::int64_t month = date_from_days(time / kDay, Calendar::kStandard).month;
  if (group == "all") return true;
  static const std::map<std::string, std::set<std::int64_t>> kSeasons = {
      {"DJF", {12, 1, 2}}, {"MAM", {3, 4, 5}}, {"JJA", {6, 7, 8}}, {"SON", {9, 10, 11}}};
  return kSeasons.contains(group) ? kSeasons.at(group).contains(month) : group == std::to_string(month);
}

/// As `data.cell_area` has it each point has its own weight.
double region_weight(std::int64_t region, std::int64_t point) {
  return is_in(region, point) ? 0.5 + 0.125 * static_cast<double>(point * 5 % 9) : 0.0;
}

/// Means and deviations of a point and channel in a group.
struct Series {
  std::vector<double> forecast, truth;

  static std::array<double, 2> moments(const std::vector<double>& numbers) {
    double mean = 0, squares = 0;
    const auto count = static_cast<double>(numbers.size());
    for (const double number : numbers) mean += number / count;
    for (const double number : numbers) squares += (number - mean) * (number - mean) / count;
    return {mean, std::sqrt(squares)};
  }
};

Series series_of(int members, const std::string& group, std::int64_t point, std::int64_t channel) {
  Series series;
  for (std::size_t batch = 0; batch < kBatches.size(); ++batch) {
    for (std::int64_t sample = 0; sample < kBatches[batch]; ++sample) {
      for (int lead = kSpinUp; lead < kLeads; ++lead) {
        const std::int64_t i = (sample * kPoints + point) * kChannels + channel;
        const double truth = truth_at(lead, batch, i);
        if (std::isnan(truth) || !falls_in(group, time_at(batch, sample, lead))) continue;
        series.truth.push_back(truth);
        for (int j = 0; j < members; ++j) series.forecast.push_back(forecast_at(j, lead, batch, i));
      }
    }
  }
  return series;
}

ClimateScore loops(int members, const std::string& group, std::int64_t region, std::int64_t channel) {
  double weight = 0, forecast = 0, truth = 0, error = 0, squares = 0, forecast_spread = 0, truth_spread = 0,
         apart = 0;
  std::vector<std::array<double, 3>> maps;  // weight and both means
  for (std::int64_t point = 0; point < kPoints; ++point) {
    const Series series = series_of(members, group, point, channel);
    const double w = region_weight(region, point);
    if (series.truth.empty() || w == 0) continue;
    const auto [f, of_forecast] = Series::moments(series.forecast);
    const auto [o, of_truth] = Series::moments(series.truth);
    weight += w;
    forecast += w * f;
    truth += w * o;
    error += w * (f - o);
    squares += w * (f - o) * (f - o);
    forecast_spread += w * of_forecast * of_forecast;
    truth_spread += w * of_truth * of_truth;
    apart += w * (of_forecast - of_truth) * (of_forecast - of_truth);
    maps.push_back({w, f, o});
  }
  double ff = 0, oo = 0, fo = 0;
  for (const auto& [w, f, o] : maps) {
    ff += w * (f - forecast / weight) * (f - forecast / weight);
    oo += w * (o - truth / weight) * (o - truth / weight);
    fo += w * (f - forecast / weight) * (o - truth / weight);
  }
  return {error / weight,
          std::sqrt(squares / weight),
          fo / std::sqrt(ff * oo),
          std::sqrt(forecast_spread / truth_spread),
          std::sqrt(apart / weight),
          forecast / weight,
          truth / weight};
}

void expect_near(double found, double wanted, const char* what) {
  expect_number(found, wanted, 1e-8 + 1e-13 * std::abs(wanted), what);
}

void expect_score(const ClimateScore& found, const ClimateScore& wanted) {
  expect_near(found.bias, wanted.bias, "bias");
  expect_near(found.rmse, wanted.rmse, "RMSE");
  expect_near(found.pattern_correlation, wanted.pattern_correlation, "pattern correlation");
  expect_near(found.std_ratio, wanted.std_ratio, "ratio of deviations");
  expect_near(found.std_rmse, wanted.std_rmse, "RMSE of deviations");
  expect_near(found.forecast_mean, wanted.forecast_mean, "mean of forecasts");
  expect_near(found.truth_mean, wanted.truth_mean, "mean of the truth");
}

const MeshCase kMeshes[] = {{1, {1, 1}, 1}, {2, {1, 1}, 1}, {4, {1, 1}, 1},    {1, {2, 1}, 1},
                            {1, {1, 3}, 1}, {1, {1, 1}, 2}, {2, {2, 1}, 1},    {2, {1, 2}, 1},
                            {2, {1, 1}, 2}, {1, {7, 1}, 1}, {2, {2, 1}, 1, 1}, {2, {1, 2}, 1, 1}};

ClimateScores scores_of(const Rank& rank, const MeshCase& mesh, ClimateGroups groups, int members) {
  const Box piece = rank.box(layout_of(rank.mesh, kBatches[0], kChannels, mesh.data_cuts));
  ClimateScores scores(rank.context, {groups, kSpinUp}, Calendar::kStandard, piece, kChannels,
                       weights_in(piece, region_weight));
  for (std::size_t batch = 0; batch < kBatches.size(); ++batch) {
    const Layout layout = layout_of(rank.mesh, kBatches[batch], kChannels, mesh.data_cuts);
    for (int lead = 0; lead < kLeads; ++lead) {
      std::vector<Time> times;
      for (std::int64_t sample = 0; sample < kBatches[batch]; ++sample)
        times.push_back(time_at(batch, sample, lead));
      const auto forecast = [&](int member, std::int64_t i) { return forecast_at(member, lead, batch, i); };
      const auto truth = [&](int, std::int64_t i) { return truth_at(lead, batch, i); };
      scores.add(rank, lead, layout, members_of(rank, layout, members, forecast),
                 members_of(rank, layout, 1, truth), times);
    }
  }
  scores.finish(rank);
  return scores;
}

/// What this rank holds of the maps of a group.
void expect_maps(const Rank& rank, const ClimateScores& scores, std::size_t group, int members) {
  const std::string name = scores.groups()[group];
  const TimeMoments moments = scores.moments().on_host(rank.context, group);
  const Box box = rank.box(scores.moments().map_layout(kClimateMaps));
  for (std::int64_t channel = 0; channel < kChannels; ++channel) {
    const std::vector<float> maps = ClimateScores::maps(moments, box, channel);
    const bool here = channel >= box.begin[3] && channel < box.end(3);
    ASSERT_EQ(std::ssize(maps), here ? box.extent[0] * box.extent[1] * box.extent[2] : 0);
    for (std::int64_t i = 0; i < std::ssize(maps); ++i) {
      const std::int64_t map = box.begin[0] + i / (box.extent[1] * box.extent[2]),
                         row = box.begin[1] + i / box.extent[2] % box.extent[1],
                         column = box.begin[2] + i % box.extent[2];
      const Series series = series_of(members, name, row * kColumns + column, channel);
      const auto [f, of_forecast] = Series::moments(series.forecast);
      const auto [o, of_truth] = Series::moments(series.truth);
      const double count = static_cast<double>(series.truth.size());
      const double wanted =
          std::vector<double>{f, o, f - o, of_forecast, of_truth, count}.at(static_cast<std::size_t>(map));
      const auto found = static_cast<double>(maps[static_cast<std::size_t>(i)]);
      if (count == 0 && map < kClimateMaps - 1) {
        ASSERT_TRUE(std::isnan(found)) << name << " " << map << " " << row << " " << column;
      } else {
        ASSERT_NEAR(found, wanted, 1e-6 + 1e-7 * std::abs(wanted)) << name << " " << map;
      }
    }
  }
}

TEST(ClimateScores, AreWhatLoopsFindOnEveryMesh) {
  for (const MeshCase& mesh : kMeshes) {
    for (const ClimateGroups groups : {ClimateGroups::kAll, ClimateGroups::kSeason, ClimateGroups::kMonth}) {
      const int members = groups == ClimateGroups::kAll ? 1 : kMembers;
      const std::vector<std::string> names = names_of(groups);
      SCOPED_TRACE(concat(text_of(mesh), ", ", names.size(), " groups"));
      std::vector<ClimateScore> wanted;
      for (const std::string& name : names) {
        for (std::int64_t region = 0; region < kRegions; ++region) {
          for (std::int64_t channel = 0; channel < kChannels; ++channel)
            wanted.push_back(loops(members, name, region, channel));
        }
      }
      testing::run_test_ranks(ranks_of(mesh), [&](Communicator& world) {
        Mesh axes(world, mesh.data, mesh.domain, mesh.tensor);
        const Rank rank{world.context(), axes};
        const ClimateScores scores = scores_of(rank, mesh, groups, members);
        const ClimateScore* expected = wanted.data();
        for (std::size_t group = 0; group < names.size(); ++group) {
          for (std::size_t region = 0; region < kRegions; ++region) {
            for (std::size_t channel = 0; channel < kChannels; ++channel, ++expected) {
              SCOPED_TRACE(concat("group ", names[group], ", region ", region, ", channel ", channel));
              expect_score(scores.score(channel, region, group), *expected);
            }
          }
          expect_maps(rank, scores, group, members);
        }
      });
    }
  }
}

/// Of one variable at so many points, of one forecast with so many leads.
ClimateScore score_of(const std::vector<std::vector<double>>& forecasts,
                      const std::vector<std::vector<double>>& truths, int spin_up = 0) {
  ClimateScore score;
  testing::run_test_ranks(1, [&](Communicator& world) {
    Mesh axes(world, 1, {1, 1}, 1);
    const Rank rank{world.context(), axes};
    const auto points = std::ssize(truths[0]);
    const Layout layout{{1, 1, points, 1}, {}};
    ClimateScores scores(rank.context, {ClimateGroups::kAll, spin_up}, Calendar::kStandard,
                         Box::whole(layout.global), 1, {std::vector<double>(truths[0].size(), 1.0)});
    for (std::size_t lead = 0; lead < truths.size(); ++lead) {
      scores.add(rank, static_cast<int>(lead), layout,
                 array_of(rank.context, layout.global, DType::kFloat64, forecasts[lead]),
                 array_of(rank.context, layout.global, DType::kFloat64, truths[lead]), std::array{Time{0}});
    }
    scores.finish(rank);
    score = scores.score(0, 0, 0);
  });
  return score;
}

TEST(ClimateScores, OfNumbersThatAreCountedByHand) {
  // Means in time are 2 and 6 of the forecast, 1 and 3 of the truth; deviations 1 and 2, 1 and 1.
  const std::vector<std::vector<double>> forecasts = {{99, 99}, {1, 4}, {3, 8}},
                                         truths = {{-9, 9}, {0, 2}, {2, 4}};
  const ClimateScore score = score_of(forecasts, truths, 1);
  EXPECT_DOUBLE_EQ(score.bias, 2);
  EXPECT_DOUBLE_EQ(score.rmse, std::sqrt(5));
  EXPECT_DOUBLE_EQ(score.pattern_correlation, 1);
  EXPECT_DOUBLE_EQ(score.std_ratio, std::sqrt(2.5));
  EXPECT_DOUBLE_EQ(score.std_rmse, std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(score.forecast_mean, 4);
  EXPECT_DOUBLE_EQ(score.truth_mean, 2);
}

TEST(ClimateScores, AForecastThatIsNotANumberShowsWhereATruthCounts) {
  EXPECT_TRUE(std::isnan(score_of({{1, kNaN}}, {{1, 1}}).rmse));
  EXPECT_EQ(score_of({{1, kNaN}}, {{1, kNaN}}).rmse, 0);
  EXPECT_TRUE(std::isnan(score_of({{1, 2}}, {{kNaN, kNaN}}).truth_mean));
}

TEST(ClimateGroups, AreThoseOfTheCalendar) {
  EXPECT_EQ(parse_climate_groups("month"), ClimateGroups::kMonth);
  EXPECT_EQ(parse_climate_groups(""), ClimateGroups::kNone);
  EXPECT_THROW(parse_climate_groups("week"), ConfigError);
  EXPECT_EQ(join(names_of(ClimateGroups::kSeason), " "), "all DJF MAM JJA SON");
  EXPECT_EQ(names_of(ClimateGroups::kMonth).size(), 13U);
  // The sixtieth day of 1972, a leap year, and the day before the first of all.
  using Groups = std::vector<std::size_t>;
  const Time day = (365 + 365 + 59) * kDay;
  EXPECT_EQ(groups_at(ClimateGroups::kMonth, day, Calendar::kStandard), (Groups{0, 2}));
  EXPECT_EQ(groups_at(ClimateGroups::kMonth, day, Calendar::kNoLeap), (Groups{0, 3}));
  EXPECT_EQ(groups_at(ClimateGroups::kSeason, day, Calendar::kNoLeap), (Groups{0, 2}));
  EXPECT_EQ(groups_at(ClimateGroups::kMonth, -1, Calendar::kStandard), (Groups{0, 12}));
  EXPECT_EQ(groups_at(ClimateGroups::kSeason, -1, Calendar::kStandard), (Groups{0, 1}));
  EXPECT_EQ(groups_at(ClimateGroups::kAll, day, Calendar::kStandard), (Groups{0}));
}

}  // namespace climate_scores_test
}  // namespace jigsaw
