// Extreme values that are hardly meant as numbers.
#include "task/odd_values.h"

#include <gtest/gtest.h>

namespace jigsaw {
namespace odd_values_test {

Statistics of(const std::string& name, const FieldStatistics& field, double least, double largest) {
  Statistics statistics;
  statistics.fields[name] = field;
  statistics.seen[name] = {0, least, largest};
  return statistics;
}

TEST(OddValues, AreNumbersThatFillGapsAndWhatLiesFarOutside) {
  EXPECT_EQ(
      odd_values_warning(of("sst", {"K", -2900, 4700}, -9999, 305)),
      "values in data.train that may stand for missing ones, and count as numbers: sst -9999; if so, the "
      "files should declare them by the attribute _FillValue or missing_value, or data.missing name them");
  for (const double fill :
       {1e20, 9.96921e36, static_cast<double>(9.96921e36F), 32767.0, 1e30, 1e37, 1.2676506e30}) {
    const auto warning = odd_values_warning(of("t2m", {"K", 280, 20}, 200, fill));
    ASSERT_TRUE(warning.has_value()) << fill;
    EXPECT_NE(warning->find(": t2m "), std::string::npos) << *warning;
  }
  EXPECT_TRUE(odd_values_warning(of("t2m", {"K", 280, 20}, -8888, 320)).has_value());
  EXPECT_TRUE(odd_values_warning(of("u", {"m/s", 0, 10}, -80, 5e4)).has_value());
}

TEST(OddValues, AreNoExtremesOfWeather) {
  EXPECT_FALSE(odd_values_warning(of("t2m", {"K", 280, 20}, 190, 330)).has_value());
  EXPECT_FALSE(odd_values_warning(of("w", {"Pa/s", 0, 0.15}, -12, 9)).has_value());
  EXPECT_FALSE(odd_values_warning(of("tp", {"m", 1e-4, 3e-4}, 0, 0.15)).has_value())
      << "500 deviations of rain";
  // Of logarithms −9.21 is nothing; nor has a variable without values any.
  EXPECT_FALSE(odd_values_warning(of("tp", {"m", -9, 1, 0, "log(x + 1e-05)"}, -999, 3)).has_value());
  Statistics nothing = of("sst", {"K", 0, 1}, -9999, 0);
  nothing.seen["sst"].missing = 1;
  EXPECT_FALSE(odd_values_warning(nothing).has_value());
}

}  // namespace odd_values_test
}  // namespace jigsaw
