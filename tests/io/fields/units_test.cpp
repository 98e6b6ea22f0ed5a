#include "fields/units.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

namespace jigsaw {
namespace {

TEST(Units, AreOneInEveryNotation) {
  const auto same = [](const char* a, const char* b) {
    EXPECT_EQ(same_unit(a, b), same_unit(b, a));
    return same_unit(a, b);
  };
  for (const char* const text : {"m s**-1", "m s-1", "m s^-1", "m.s-1", "m/s", "m / s", "s-1 m", "m*s**-1"})
    EXPECT_TRUE(same("m s-1", text)) << text;
  for (const char* const text : {"kg m**-2 s**-1", "kg m-2 s-1", "kg/m2/s", "kg/m**2/s", "kg m^-2/s"})
    EXPECT_TRUE(same("kg m-2 s-1", text)) << text;
  EXPECT_TRUE(same("1/s", "s-1"));
  EXPECT_TRUE(same("kg kg**-1", "kg/kg"));
  EXPECT_TRUE(same("(0 - 1)", "(0 - 1)"));
  for (const char* const text : {"kelvin", "Kelvin", "degK"}) EXPECT_TRUE(same("K", text)) << text;
  for (const char* const text : {"Celsius", "degrees_C", "°C"}) EXPECT_TRUE(same("degC", text)) << text;
  EXPECT_TRUE(same("mbar", "hPa"));
  EXPECT_TRUE(same("meters second-1", "m s**-1"));
  EXPECT_TRUE(same("percent", "%"));
  EXPECT_TRUE(same("", ""));
  EXPECT_TRUE(same("m m s-1", "m2 s-1"));
}

TEST(Units, ThatAreOthersStayOthers) {
  const std::pair<const char*, const char*> others[] = {
      {"m s-1", "ms-1"},        {"K", "degC"},     {"Pa", "hPa"},
      {"kg m-2", "kg m2"},      {"m/s s", "m/s"},  {"", "1"},
      {"1", "(0 - 1)"},         {"10-6 m", "m"},   {"10 m", "1 m"},
      {"m s-", "m s-1"},        {"m//s", "m s-1"}, {"m s**", "m s"},
      {"m-2000000000000", "m"}, {"(m)", "m"},      {"m ", "s "},
      {"m", "m K/K s"},         {"%", "1"},        {"kg kg-1", "mol mol-1"},
      {"W m**-2", "J m**-2"}};
  for (const auto& [a, b] : others) {
    EXPECT_FALSE(same_unit(a, b)) << a << " and " << b;
    EXPECT_FALSE(same_unit(b, a)) << a << " and " << b;
  }
}

/// Beside numbers of the International System of Units and of UDUNITS-2 (`udunits2 -H degF -W K`).
TEST(Units, AreConvertedByTheirDefinitions) {
  struct Case {
    const char *from, *to;
    double value, converted;
  };
  const Case cases[] = {{"degC", "K", 20, 293.15},
                        {"K", "°C", 293.15, 20},
                        {"degF", "K", 32, 273.15},
                        {"degF", "degC", 212, 100},
                        {"mm", "m", 3, 0.003},
                        {"km/h", "m s**-1", 36, 10},
                        {"kt", "m s-1", 10, 5.144444444444445},
                        {"knots", "m/s", 1, 0.5144444444444445},
                        {"hPa", "Pa", 1013.25, 101325},
                        {"mbar", "kPa", 10, 1},
                        {"%", "(0 - 1)", 87.5, 0.875},
                        {"1", "%", 0.25, 25},
                        {"g/kg", "kg kg**-1", 5, 0.005},
                        {"kJ m-2", "J m**-2", 2, 2000},
                        {"kW h m-2", "J m**-2", 1, 3.6e6},
                        {"degC km-1", "K m-1", -6.5, -0.0065},
                        {"mm", "kg m**-2", 2, 2},
                        {"kg m-2", "m", 2, 0.002},
                        {"mm h-1", "kg m-2 s-1", 3.6, 0.001},
                        {"mm of water equivalent", "m of water equivalent", 5, 0.005},
                        {"kg m-2", "m of water equivalent", 5, 0.005},
                        {"m/s", "m s**-1", 7, 7},
                        {"dBZ", "dBZ", 7, 7}};
  for (const Case& one : cases) {
    const auto conversion = unit_conversion(one.from, one.to);
    ASSERT_TRUE(conversion) << one.from << " to " << one.to;
    EXPECT_NEAR((*conversion)(one.value), one.converted, 1e-12 * std::abs(one.converted) + 1e-13)
        << one.from << " to " << one.to;
  }
  EXPECT_EQ(unit_conversion("m/s", "m s**-1"), UnitConversion{});
  const std::pair<const char*, const char*> others[] = {
      {"", "K"},     {"K", ""},        {"K", "Pa"},     {"J m-2", "W m-2"}, {"dBZ", "dB"},
      {"okta", "1"}, {"Pa", "m2 s-2"}, {"kg m-2", "1"}, {"10 m", "m"},      {"cm", "m of water equivalent"}};
  for (const auto& [from, to] : others) EXPECT_FALSE(unit_conversion(from, to)) << from << " to " << to;
}

TEST(Units, OfLevelsAreHectopascalsAndMetres) {
  EXPECT_EQ(in_level_units(85000, "Pa"), 850);
  EXPECT_EQ(in_level_units(850, "mbar"), 850);
  EXPECT_EQ(in_level_units(50, "kPa"), 500);
  EXPECT_EQ(in_level_units(500, "centimeters"), 5);
  EXPECT_EQ(in_level_units(0.7, "km"), 700);
  EXPECT_EQ(in_level_units(0.5, "1"), 0.5);
}

TEST(Units, OfLength) {
  for (const char* const text : {"m", "km", "cm", "metres", "meters", "centimeters"})
    EXPECT_TRUE(is_length(text)) << text;
  for (const char* const text : {"", "1", "hPa", "degrees", "m s-1", "m2"})
    EXPECT_FALSE(is_length(text)) << text;
}

}  // namespace
}  // namespace jigsaw
