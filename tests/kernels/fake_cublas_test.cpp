// Products with the cuBLASLt of plain loops that the fake CUDA runtime has: how it is asked, and what is done
// where it has no algorithm.
#include <utility>

#include "kernels/contraction.h"
#include "kernels/fake_cuda_finds.h"
#include "kernels/remarks.h"
#include "support/tolerance.h"

namespace jigsaw {
namespace {

namespace fake_cuda = testing::fake_cuda;
using testing::FakeCudaFinds;
using testing::values_of;

class FakeCublas : public FakeCudaFinds {
 protected:
  ~FakeCublas() override { fake_cuda::machine().cublas_refuses = before_; }

 private:
  int before_ = fake_cuda::machine().cublas_refuses;
};

/// Large products of bf16 whose rows are no multiples of 16 bytes go through padded copies; small ones do
/// not.
TEST_F(FakeCublas, MisalignedRows) {
  const auto spec = ContractionSpec::parse("bmk,bnk->bmn");
  for (const std::int64_t extent : {33, 259}) {
    const Shape a = {2, extent, extent}, b = {2, extent, extent};
    Context host = Context::make_host(Backend::kReference, 1);
    const auto made = [&](Context& context, unsigned seed) {
      return testing::random_array(context, seed == 1 ? a : b, DType::kBfloat16, seed);
    };
    for (const DType out : {DType::kBfloat16, DType::kFloat32}) {
      const std::int64_t before = fake_cuda::misaligned_products();
      const Array c = contract(context_, spec, made(context_, 1), made(context_, 2), out);
      const std::vector<double> found = values_of(c);
      EXPECT_EQ(fake_cuda::misaligned_products() > before, extent < 256);
      const std::vector<double> wanted = values_of(contract(host, spec, made(host, 1), made(host, 2), out));
      testing::expect_near(found, wanted, testing::tolerance(out, extent, 32));
    }
  }
}

/// A kernel of ours does what cuBLASLt refuses, in every order of letters and with what stands in the result
/// (kernels_fake_cublas_test runs all contractions like this); each such product is said once.
TEST_F(FakeCublas, WhatItRefusesIsSaidOnce) {
  const auto product = [&](std::int64_t depth, DType type, DType out) {
    const Array a = testing::random_array(context_, {3, 5, depth}, type, 1),
                b = testing::random_array(context_, {3, 4, depth}, type, 2);
    return values_of(contract(context_, ContractionSpec::parse("bmk,bnk->bmn"), a, b, out));
  };
  constexpr DType kF32 = DType::kFloat32, kBf16 = DType::kBfloat16;
  const std::vector<double> wanted = product(7, kF32, kF32);
  EXPECT_TRUE(take_remarks(context_).empty());
  fake_cuda::machine().cublas_refuses = 8;
  product(7, kF32, kF32);
  product(7, kBf16, kF32);
  product(8, kBf16, kF32);
  product(8, kBf16, kF32);
  EXPECT_EQ(
      take_remarks(context_),
      std::vector<std::string>{
          "cuBLASLt has no algorithm for the product of bf16 matrices 5 x 8 and 8 x 4, 3 times, to fp32: "
          "a far slower kernel of this program does it"});
  product(8, kBf16, kF32);
  EXPECT_TRUE(take_remarks(context_).empty());
  fake_cuda::machine().cublas_refuses = 7;
  Context fresh = testing::kernel_context(Backend::kCuda, 1);
  std::swap(fresh, context_);
  testing::expect_near(product(7, kF32, kF32), wanted, 1e-6);
  EXPECT_EQ(take_remarks(context_).size(), 1U);
}

/// Scales of channels and their gradients are no products of matrices: it is not asked for them.
TEST_F(FakeCublas, ScalesAreNotForIt) {
  fake_cuda::machine().cublas_refuses = -1;
  for (const DType type : {DType::kFloat32, DType::kBfloat16}) {
    const Array x = testing::random_array(context_, {2, 5, 7, 24}, type, 1),
                scale = testing::random_array(context_, {24}, type, 2);
    contract(context_, ContractionSpec::parse("bhwc,c->bhwc"), x, scale, type);
    contract(context_, ContractionSpec::parse("bhwc,bhwc->c"), x, x, DType::kFloat32);
  }
  EXPECT_TRUE(take_remarks(context_).empty());
}

/// Terms far smaller than their sum keep what they add: 65,573 that are equal, of which a plain sum in
/// float32 is 5e-4 beside the right one, and that of blocks 1.3e-5.
TEST_F(FakeCublas, LongSumsOfWhatItRefuses) {
  fake_cuda::machine().cublas_refuses = -1;
  constexpr std::int64_t kTerms = (1 << 16) + 37;
  const std::vector<double> tenths(kTerms, 0.1);
  const Array x = testing::array_of(context_, {1, kTerms}, DType::kFloat32, tenths);
  const double sum =
      values_of(contract(context_, ContractionSpec::parse("mk,nk->mn"), x, x, DType::kFloat32))[0];
  const double term = static_cast<double>(0.1F) * static_cast<double>(0.1F), wanted = kTerms * term;
  EXPECT_NEAR(sum / wanted, 1, 5e-5);
}

}  // namespace
}  // namespace jigsaw
