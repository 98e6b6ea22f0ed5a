// Which numbers need float64, by hand.
#include "predict/written_precision.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "support/error_of.h"

namespace jigsaw {
namespace written_precision_test {

Channel target(TransformKind kind = TransformKind::kStandard) {
  Channel channel;
  channel.name = "x";
  channel.field = {"x", {}};
  channel.transform.kind = kind;
  channel.transform.epsilon = 1e-45;
  return channel;
}

TEST(WrittenPrecision, RangeFollowsFromMeanAndDeviation) {
  for (const auto& [mean, deviation] : {std::pair{280.0, 20.0}, {0.0, 1e-9}, {1e9, 3e10}, {0.0, 1.2e-29}})
    EXPECT_FALSE(leaves_single_range(target(), {"", mean, deviation})) << mean;
  for (const auto& [mean, deviation] : {std::pair{1e44, 1e43}, {0.0, 1e40}, {-1e36, 1.0}, {1e-38, 1e-39}})
    EXPECT_TRUE(leaves_single_range(target(), {"", mean, deviation})) << mean;
}

TEST(WrittenPrecision, RangeFollowsFromEndsAndTransforms) {
  FieldStatistics field{"", 1e20, 1e20};
  field.least = 0;
  field.largest = 1e35;
  EXPECT_TRUE(leaves_single_range(target(), field));
  // A logarithm of 101 is that of 1e44.
  EXPECT_TRUE(leaves_single_range(target(TransformKind::kLog), {"", 101, 2}));
  EXPECT_FALSE(leaves_single_range(target(TransformKind::kLog), {"", 23, 2}));
  EXPECT_TRUE(leaves_single_range(target(TransformKind::kLog), {"", -90, 2}));
}

TEST(WrittenPrecision, RoundingsAboutAMeanCount) {
  // The distance of float32 at 2.7 is 2.4e-7.
  EXPECT_TRUE(needs_double_precision(target(), {"K", 2.7, 1e-5}));
  EXPECT_FALSE(needs_double_precision(target(), {"K", 2.7, 1e-3}));
  EXPECT_FALSE(needs_double_precision(target(), {"K", 280, 20}));
  EXPECT_TRUE(needs_double_precision(target(), {"", 1e44, 1e44}));
}

TEST(WrittenPrecision, FieldsBeyondTheRangeAreRefused) {
  Statistics statistics;
  statistics.fields["x"] = {"g", 3e44, 1e44};
  require_single_range({target()}, {}, statistics);
  const std::string why =
      testing::error_of<ConfigError>([&] { require_single_range({target()}, {0}, statistics); });
  EXPECT_NE(why.find("whose range x leaves (a deviation around its mean are 2e+44 to 4e+44 g)"),
            std::string::npos)
      << why;
}

}  // namespace written_precision_test
}  // namespace jigsaw
