#include "samples/channel_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <tuple>
#include <vector>

#include "samples/piece.h"

namespace jigsaw {
namespace channel_writer_test {

void flush(ChannelWriter& writer) {
  writer.flush(1000, [](std::int64_t /*end*/) {});
}

/// Different at every point, and exact in float.
double number(int array, std::int64_t sample, int channel, std::size_t point) {
  return array * 1e6 + static_cast<double>(sample) * 1e5 + channel * 1e3 + static_cast<double>(point % 997);
}

/// @param parts  in which they are written.
void expect_all_written(std::size_t parts) {
  Context context = Context::make_host(Backend::kReference, 1);
  // More points than a tile, more channels than one; of the others whose channels begin elsewhere fewer.
  const Box wide({2, 3, 5, 4}, {2, 13, 47, 37}), narrow({2, 3, 5, 9}, {2, 5, 47, 3});
  struct Given {
    Box piece;
    Array array, expected;
  };
  std::vector<Given> all;
  for (const auto& [piece, type] : {std::pair(wide, DType::kFloat32), std::pair(narrow, DType::kFloat32),
                                    std::pair(wide, DType::kFloat64)}) {
    all.push_back({piece, Array::zeros(context, piece.extent, type, Purpose::kInput),
                   Array::zeros(context, piece.extent, type, Purpose::kInput)});
  }
  std::vector<std::tuple<int, std::int64_t, int>> order;
  for (int a = 0; a < 3; ++a) {
    const Box& piece = all[static_cast<std::size_t>(a)].piece;
    for (std::int64_t sample = piece.begin[0]; sample < piece.end(0); ++sample) {
      for (auto channel = static_cast<int>(piece.begin[3]); channel < piece.end(3); ++channel) {
        // One is left out: what stands there stays, and its neighbours are no tile together.
        if (channel != 17) order.emplace_back(a, sample, channel);
      }
    }
  }
  std::shuffle(order.begin(), order.end(), std::mt19937(3));
  ChannelWriter writer;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto [a, sample, channel] = order[i];
    Given& given = all[static_cast<std::size_t>(a)];
    const auto value = [a = a, sample = sample, channel = channel](std::size_t point) {
      return number(a, sample, channel, point);
    };
    writer.add(given.array, given.piece, sample, channel, value);
    write_channel(given.expected, given.piece, sample, channel, value);
    if ((i + 1) % ((order.size() + parts - 1) / parts) == 0) flush(writer);
  }
  flush(writer);
  EXPECT_EQ(writer.size(), 0U);
  for (std::size_t a = 0; a < all.size(); ++a) {
    const auto same = [&](const auto& written, const auto& expected) {
      EXPECT_TRUE(std::equal(written.begin(), written.end(), expected.begin(), expected.end())) << a;
      EXPECT_EQ(std::count(written.begin(), written.end(), 0), 2 * 13 * 47 * (a == 1 ? 0 : 1));
    };
    if (a == 2) {
      same(HostView<double>(all[a].array), HostView<double>(all[a].expected));
    } else {
      same(HostView<float>(all[a].array), HostView<float>(all[a].expected));
    }
  }
}

TEST(ChannelWriter, WritesEveryChannelOfEverySampleInAnyOrder) {
  for (const std::size_t parts : {1, 3}) expect_all_written(parts);
}

/// Samples so large that their lines go past the cache, and begin where no vector does; values of planes.
TEST(ChannelWriter, WritesLargeSamplesOfAllTheirChannels) {
  Context context = Context::make_host(Backend::kReference, 1);
  const Box piece({0, 0, 0, 0}, {2, 331, 333, 21});
  const std::size_t points = 331 * 333;
  Array array(context, piece.extent, DType::kFloat32, Purpose::kInput);
  std::vector<float> floats(points);
  std::vector<double> doubles(points);
  for (std::size_t i = 0; i < points; ++i) {
    floats[i] = static_cast<float>(i % 1013);
    doubles[i] = static_cast<double>(i % 911) / 7;
  }
  const PlaneView x{std::span<const float>(floats)}, y{std::span<const double>(doubles)};
  ChannelWriter writer;
  for (int sample = 0; sample < 2; ++sample) {
    for (int channel = 0; channel < 21; ++channel) {
      const double factor = 2 * channel + sample;
      const auto value = [factor](std::size_t, double a, double b) { return factor * a - b; };
      writer.add(array, piece, sample, channel, value, x, y);
    }
  }
  std::vector<std::int64_t> ends;
  writer.flush(50000, [&](std::int64_t end) { ends.push_back(end); });
  EXPECT_EQ(ends, (std::vector<std::int64_t>{50000, 100000, static_cast<std::int64_t>(points)}));
  const HostView<float> written(array);
  for (std::size_t n = 0; n < written.size(); ++n) {
    const std::size_t channel = n % 21, point = n / 21 % points, sample = n / 21 / points;
    const double factor = 2 * static_cast<double>(channel) + static_cast<double>(sample);
    const double expected = factor * static_cast<double>(floats[point]) - doubles[point];
    ASSERT_EQ(written[n], static_cast<float>(expected)) << n;
  }
}

TEST(ChannelWriter, WhatIsClearedIsNotWritten) {
  Context context = Context::make_host(Backend::kReference, 1);
  const Box piece({0, 0, 0, 0}, {1, 2, 2, 1});
  Array array = Array::zeros(context, piece.extent, DType::kFloat32, Purpose::kInput);
  ChannelWriter writer;
  writer.add(array, piece, 0, 0, [](std::size_t) { return 1.0; });
  writer.clear();
  flush(writer);
  EXPECT_EQ(HostView<float>(array)[3], 0);
}

}  // namespace channel_writer_test
}  // namespace jigsaw
