// Maps of errors beside plain loops over forecasts in float64; on any mesh.
#include "evaluate/error_maps.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"
#include "evaluate/made_forecasts.h"
#include "support/arrays.h"
#include "support/test_ranks.h"
#include "task/ensemble.h"

namespace jigsaw {
namespace error_maps_test {

using namespace testing::made_forecasts;
using testing::MeshCase;

constexpr std::int64_t kChannels = 3;
constexpr int kLeads = 3;
/// Of which there are maps.
const std::vector<int> kMapLeads = {1, 3};

double forecast_at(int member, int lead, std::size_t batch, std::int64_t i) {
  return large_at(member, lead, batch, i, kChannels);
}
double truth_at(int lead, std::size_t batch, std::int64_t i) {
  return large_truth_at(lead, batch, i, kChannels);
}

/// By ErrorMap.
std::vector<double> loops(int members, int lead, std::int64_t point, std::int64_t channel) {
  double errors = 0, squares = 0, variance = 0, count = 0;
  for (std::size_t batch = 0; batch < kBatches.size(); ++batch) {
    for (std::int64_t sample = 0; sample < kBatches[batch]; ++sample) {
      const std::int64_t i = (sample * kPoints + point) * kChannels + channel;
      const double truth = truth_at(lead, batch, i);
      if (std::isnan(truth)) continue;
      double mean = 0;
      for (int j = 0; j < members; ++j) mean += forecast_at(j, lead, batch, i) / members;
      for (int j = 0; j < members && members > 1; ++j)
        variance += std::pow(forecast_at(j, lead, batch, i) - mean, 2) / (members - 1);
      errors += mean - truth;
      squares += std::pow(mean - truth, 2);
      count += 1;
    }
  }
  return {errors / count, std::sqrt(squares / count), count, std::sqrt(variance / count)};
}

const MeshCase kMeshes[] = {{1, {1, 1}, 1}, {2, {1, 1}, 1},   {4, {1, 1}, 1}, {1, {2, 1}, 1},
                            {1, {1, 3}, 1}, {1, {1, 1}, 2},   {2, {2, 1}, 1}, {2, {1, 1}, 2},
                            {1, {7, 1}, 1}, {2, {1, 2}, 1, 1}};

ErrorMaps errors_of(const Rank& rank, const MeshCase& mesh, int members) {
  ErrorMaps maps(rank.context, kMapLeads,
                 rank.box(layout_of(rank.mesh, kBatches[0], kChannels, mesh.data_cuts)), members);
  for (std::size_t batch = 0; batch < kBatches.size(); ++batch) {
    const Layout layout = layout_of(rank.mesh, kBatches[batch], kChannels, mesh.data_cuts);
    for (int lead = 0; lead < kLeads; ++lead) {
      const auto forecast = [&](int member, std::int64_t i) { return forecast_at(member, lead, batch, i); };
      const auto truth = [&](int, std::int64_t i) { return truth_at(lead, batch, i); };
      const Array all = members_of(rank, layout, members, forecast);
      maps.add(rank, lead, layout, all, member_mean(rank.context, all, members),
               members_of(rank, layout, 1, truth));
    }
  }
  maps.finish(rank);
  return maps;
}

TEST(ErrorMaps, AreWhatLoopsFindOnEveryMesh) {
  for (const MeshCase& mesh : kMeshes) {
    for (const int members : {1, 4}) {
      SCOPED_TRACE(concat(text_of(mesh), ", ", members, " members"));
      testing::run_test_ranks(ranks_of(mesh), [&](Communicator& world) {
        Mesh axes(world, mesh.data, mesh.domain, mesh.tensor);
        const Rank rank{world.context(), axes};
        const ErrorMaps errors = errors_of(rank, mesh, members);
        ASSERT_EQ(errors.maps(), members > 1 ? 4 : 3);
        const Box box = rank.box(errors.moments().map_layout(errors.maps()));
        std::int64_t seen = 0;
        for (std::size_t group = 0; group < kMapLeads.size(); ++group) {
          const TimeMoments moments = errors.moments().on_host(rank.context, group);
          for (std::int64_t channel = 0; channel < kChannels; ++channel) {
            const std::vector<float> maps = errors.maps_of(moments, box, channel);
            for (std::int64_t i = 0; i < std::ssize(maps); ++i, ++seen) {
              const std::int64_t map = box.begin[0] + i / (box.extent[1] * box.extent[2]),
                                 row = box.begin[1] + i / box.extent[2] % box.extent[1],
                                 column = box.begin[2] + i % box.extent[2];
              const std::vector<double> wanted =
                  loops(members, kMapLeads[group] - 1, row * kColumns + column, channel);
              const auto found = static_cast<double>(maps[static_cast<std::size_t>(i)]);
              if (wanted[2] == 0 && map != static_cast<std::int64_t>(ErrorMap::kCount)) {
                ASSERT_TRUE(std::isnan(found)) << map << " " << row << " " << column;
              } else {
                ASSERT_NEAR(found, wanted[static_cast<std::size_t>(map)], 1e-6) << map;
              }
            }
          }
        }
        ASSERT_EQ(seen, box.empty() ? 0 : std::ssize(kMapLeads) * box.extent.count())
            << "every point is compared";
      });
    }
  }
}

}  // namespace error_maps_test
}  // namespace jigsaw
