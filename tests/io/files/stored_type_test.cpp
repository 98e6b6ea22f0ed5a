#include "files/stored_type.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace jigsaw {
namespace stored_type_test {

/// By the definition of the format, and to the nearest one and back.
TEST(Half, IsOfSixteenBits) {
  double before = -1;
  for (unsigned bits = 0; bits < 0x7c00; ++bits) {
    const auto exponent = static_cast<int>(bits >> 10), fraction = static_cast<int>(bits & 0x3ff);
    const double value =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    const Half half = Half::of_bits(static_cast<std::uint16_t>(bits));
    ASSERT_EQ(static_cast<double>(half), value);
    ASSERT_EQ(static_cast<float>(Half::of_bits(static_cast<std::uint16_t>(bits | 0x8000))), -value);
    ASSERT_EQ(Half(value).bits, bits);
    ASSERT_EQ(Half(-value).bits, bits | 0x8000);
    if (bits > 0) {
      const double middle = (before + value) / 2;
      ASSERT_EQ(Half(middle).bits, bits % 2 == 0 ? bits : bits - 1);
      ASSERT_EQ(Half(std::nextafter(middle, value)).bits, bits);
      ASSERT_EQ(Half(std::nextafter(middle, before)).bits, bits - 1);
    }
    before = value;
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double large : {65520.0, 1e300, kInfinity}) EXPECT_EQ(Half(large).bits, 0x7c00);
  EXPECT_EQ(static_cast<double>(Half::of_bits(0xfc00)), -kInfinity);
  EXPECT_TRUE(std::isnan(static_cast<float>(Half::of_bits(0x7c01))));
  EXPECT_TRUE(std::isnan(static_cast<float>(Half(std::nan("")))));
}

}  // namespace stored_type_test
}  // namespace jigsaw
