// The paired t test beside numbers of numpy and scipy.stats.t.
#include "evaluate/paired_difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace jigsaw {
namespace paired_difference_test {

TEST(StudentT, IsThatOfScipy) {
  struct Case {
    double t, freedom, probability;
  };
  for (const Case& one : {Case{0, 5, 1}, Case{1, 1, 0.5}, Case{2.5, 3.7, 0.07182202291182678},
                          Case{-4, 20, 0.0007035232931283187}, Case{0.01, 1000, 0.9920232819321873},
                          Case{30, 2, 0.001109262681959659}}) {
    EXPECT_NEAR(student_probability(one.t, one.freedom), one.probability, 1e-11) << one.t;
  }
  EXPECT_NEAR(student_quantile(0.05, 8), 2.3060041352041662, 1e-11);
  EXPECT_NEAR(student_quantile(0.05, 2.3), 3.8071632082321325, 1e-11);
  EXPECT_NEAR(student_quantile(0.5, 1), 1, 1e-12);
  EXPECT_NEAR(student_quantile(1e-6, 50), 5.5732172421217125, 1e-9);
}

void expect(const PairedDifference& found, double independent, double low, double high, double p) {
  EXPECT_NEAR(found.mean, 0.25, 1e-14);
  EXPECT_NEAR(found.independent, independent, 1e-12);
  EXPECT_NEAR(found.low, low, 1e-12);
  EXPECT_NEAR(found.high, high, 1e-12);
  EXPECT_NEAR(found.p, p, 1e-12);
}

TEST(PairedDifference, CountsNeighboursThatAreAlikeForLess) {
  const std::vector<double> differences = {.1, .4, .5, .6, .1, .3, -.1, .2, .5, .1, -.2, .3, .5, .4, .2, .1};
  std::vector<char> following(16, 1);
  following[0] = 0;
  expect(paired_difference(differences, following), 12.580152671755725, 0.10935383384620431,
         0.39064616615379566, 0.002298644796268432);
  following[7] = 0;  // where starts are missing
  expect(paired_difference(differences, following), 13.023255813953487, 0.112352397490662,
         0.38764760250933794, 0.0018987985279506243);
}

TEST(PairedDifference, OfUnlikeNeighboursIsThatOfIndependentOnes) {
  const std::vector<double> differences = {.3, .5, .1, -.2, .4, .6, .2, .3, -.1, .5, .45, .35};
  std::vector<char> following(12, 1);
  following[0] = following[6] = 0;
  const PairedDifference found = paired_difference(differences, following);
  EXPECT_EQ(found.independent, 12);
  EXPECT_NEAR(found.low, 0.12750379752834, 1e-12);
  EXPECT_NEAR(found.high, 0.43916286913832675, 1e-12);
  EXPECT_NEAR(found.p, 0.002079468508548387, 1e-12);
}

TEST(PairedDifference, SaysNothingOfTooFew) {
  const std::vector<double> two = {1, 2}, none;
  const std::vector<char> following = {0, 1}, nothing;
  EXPECT_EQ(paired_difference(two, following).mean, 1.5);
  EXPECT_TRUE(std::isnan(paired_difference(two, following).p));
  EXPECT_TRUE(std::isnan(paired_difference(none, nothing).mean));
  // One pair of neighbours, more alike than their deviations allow.
  const std::vector<double> steps = {1, 1, -1, 0, 0, 0};
  const std::vector<char> one_pair = {0, 1, 0, 0, 0, 0};
  EXPECT_GE(paired_difference(steps, one_pair).independent, 0);
  EXPECT_TRUE(std::isnan(paired_difference(steps, one_pair).p));
  const std::vector<double> same = {0, 0, 0, 0};
  const std::vector<char> all = {0, 1, 1, 1};
  EXPECT_EQ(paired_difference(same, all).p, 1);
}

}  // namespace paired_difference_test
}  // namespace jigsaw
