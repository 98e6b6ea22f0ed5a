// What is remarkable of a list of places.
#include "fields/named_places.h"

#include <gtest/gtest.h>

namespace jigsaw {
namespace named_places_test {

TEST(NamedPlaces, OfOneNameAreToldWhereTheyStandApart) {
  EXPECT_EQ(remark_on_names({}, "a.csv"), "");
  EXPECT_EQ(remark_on_names({{"A", "B"}, {1, 1}, {2, 2}}, "a.csv"), "");
  EXPECT_EQ(remark_on_names({{"A", "B", "A"}, {1, 5, 1}, {-77, 2, 283}}, "a.csv"), "")
      << "one place, written in two ways";
  EXPECT_EQ(remark_on_names({{"B", "A", "B", "B"}, {1.5, 1, 3, 4}, {2, 2, -2, 2}}, "a.csv"),
            "a.csv has several places that are called B, at 1.5, 2 and at 3, -2");
  EXPECT_EQ(
      remark_on_names({{"A", "B", "C", "C", "B", "A"}, {1, 2, 3, 4, 5, 6}, {0, 0, 0, 0, 0, 0}}, "a.csv"),
      "a.csv has several places that are called C, at 3, 0 and at 4, 0, and so of 2 more names");
}

}  // namespace named_places_test
}  // namespace jigsaw
