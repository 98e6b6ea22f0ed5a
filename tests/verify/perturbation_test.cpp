#include "verify/perturbation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "array/transfer.h"
#include "verify/tolerance.h"

namespace jigsaw {
namespace {

constexpr double kRounding = std::numeric_limits<float>::epsilon();

/// Which way each of so many ones is moved, as a part of what it is moved by.
std::vector<double> moves(int number, std::int64_t count, std::uint64_t place = 0) {
  const Context context = Context::make_host(Backend::kReference, 1);
  const Array array =
      constant(context, {count}, DType::kFloat32, std::vector<double>(static_cast<std::size_t>(count), 1.0));
  Perturbation(number).move(context, array, kRounding, place);
  std::vector<double> values = download_values(context, array);
  for (double& value : values) value = (value - 1) / kRounding / Perturbation(number).roundings();
  return values;
}

TEST(Perturbation, OfAPairAreOpposite) {
  const std::vector<double> one = moves(1, 100), two = moves(2, 100), three = moves(3, 100);
  int alike = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(std::abs(one[i]), 1) << i;
    EXPECT_EQ(two[i], -one[i]) << i;
    alike += three[i] == one[i] ? 1 : 0;
  }
  EXPECT_GT(alike, 20);
  EXPECT_LT(alike, 80);
}

TEST(Perturbation, OfRanksAreDifferent) {
  const std::vector<double> one = moves(1, 100), other = moves(1, 100, 1);
  int alike = 0;
  for (std::size_t i = 0; i < one.size(); ++i) alike += one[i] == other[i] ? 1 : 0;
  EXPECT_GT(alike, 20);
  EXPECT_LT(alike, 80);
}

TEST(Perturbation, FurtherOnesAreLarger) {
  EXPECT_EQ(Perturbation(1).roundings(), 1);
  EXPECT_EQ(Perturbation(2).roundings(), 1);
  // Without allowing more of what grows with them.
  for (const int number : {3, 4, 8})
    EXPECT_EQ(Perturbation(number).roundings() * Tolerances::kMostFactor, Tolerances::kNoiseFactor);
}

/// Signs in a regular order would leave a sum nearly as it is.
TEST(Perturbation, MovesASumAsARandomWalkDoes) {
  constexpr std::int64_t kCount = 1 << 14;
  constexpr int kPairs = 16;
  double squares = 0;
  for (int pair = 0; pair < kPairs; ++pair) {
    double sum = 0;
    for (const double move : moves(2 * pair + 1, kCount)) sum += move;
    squares += sum * sum / kPairs;
  }
  EXPECT_GT(squares, kCount / 4.0);
  EXPECT_LT(squares, kCount * 4.0);
}

}  // namespace
}  // namespace jigsaw
