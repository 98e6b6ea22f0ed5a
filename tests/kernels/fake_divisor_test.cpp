// Division without an instruction for it, as kernels do it.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernels/cuda/device.cuh"

namespace jigsaw {
namespace fake_divisor_test {

constexpr std::int64_t kLimit = std::int64_t{1} << 31;

void expect_division(std::int64_t n, std::int64_t by, const Divisor& divisor) {
  ASSERT_EQ(kernels::cuda::quotient(n, divisor), n / by) << n << " / " << by;
  std::int64_t rest = n;
  ASSERT_EQ(kernels::cuda::take_digit(rest, divisor), n % by) << n << " % " << by;
  ASSERT_EQ(rest, n / by);
}

/// Dividends on both sides of multiples, the smallest, those at the limit of the short way and beyond it.
void expect_divides(std::int64_t by) {
  const Divisor divisor = kernels::divisor(by);
  std::vector<std::int64_t> dividends = {0, 1, kLimit - 2, kLimit - 1, kLimit, kLimit + 1, 1LL << 40};
  for (const std::int64_t multiple : {by, 2 * by, (kLimit - 1) / by / 2 * by, (kLimit - 1) / by * by}) {
    for (const std::int64_t beside : {-1, 0, 1}) dividends.push_back(multiple + beside);
  }
  for (const std::int64_t n : dividends) {
    if (n >= 0) expect_division(n, by, divisor);
  }
}

TEST(FakeCudaDivisor, DividesAllThereIs) {
  for (std::int64_t by = 1; by < 3000; ++by) {
    expect_divides(by);
    const Divisor divisor = kernels::divisor(by);
    for (std::int64_t n = 0; n < 300; ++n) expect_division(n, by, divisor);
  }
  for (int bit = 1; bit < 34; ++bit) {
    for (const std::int64_t beside : {-1, 0, 1}) expect_divides((std::int64_t{1} << bit) + beside);
  }
  std::mt19937_64 generator(1);
  for (int i = 0; i < 200000; ++i) {
    const std::uint64_t bits = generator() & 0x7fffffff;
    expect_divides(static_cast<std::int64_t>(1 + (bits >> generator() % 31)));
  }
}

}  // namespace fake_divisor_test
}  // namespace jigsaw
