// The CUDA kernels against the reference backend. Without a device all of it is skipped but the errors.
#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "array/transfer.h"
#include "base/error.h"
#include "kernels/contraction.h"
#include "kernels/copy.h"
#include "kernels/cuda_context.h"
#include "kernels/normalization.h"
#include "kernels/optimizer.h"
#include "kernels/pointwise.h"
#include "support/arrays.h"
#include "support/tolerance.h"

namespace jigsaw {
namespace {

/// Σ x².
double sum_of_squares(Context& context, const Array& x) {
  Array sum = filled(context, {1}, DType::kFloat64, 0.0);
  add_sum_of_squares(context, x, sum);
  return download_values(context, sum)[0];
}

using testing::expect_near;
using testing::random_array;
using testing::tolerance;
using testing::values_of;

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kBfloat16};

TEST(CudaErrors, AMissingDeviceIsSaidSo) {
  EXPECT_THROW(make_cuda_context(cuda_device_count()), ConfigError);
  EXPECT_THROW(make_cuda_context(-1), ConfigError);
}

TEST(CudaErrors, AMissingKernelIsSaidSo) {
  Context context(Backend::kCuda, Arena::make_host(), 1);
  const Array x = random_array(context, {2, 3}, DType::kFloat32, 1);
  try {
    sum_spread(context, {2, 3, 1}, x);
    FAIL() << "a kernel ran that is not there";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("no CUDA kernel for sum_spread"), std::string::npos)
        << error.what();
  }
}

class Cuda : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device, or a build without CUDA kernels";
    device_.emplace(make_cuda_context(0));
  }

  Array up(const Array& x) { return upload(*device_, x); }
  std::vector<double> down(const Array& x) {
    return x.defined() ? download_values(*device_, x) : std::vector<double>();
  }

  Context host_ = Context::make_host(Backend::kReference, 1);
  std::optional<Context> device_;
};

TEST_F(Cuda, Contractions) {
  struct Case {
    const char* text;
    Shape a, b;
  };
  const Case cases[] = {{"bhwk,nk->bhwn", {2, 3, 5, 37}, {19, 37}},
                        {"bhwn,nk->bhwk", {2, 3, 5, 19}, {19, 37}},
                        {"bhwn,bhwk->nk", {2, 3, 5, 19}, {2, 3, 5, 37}},
                        {"bhwc,thw->btc", {2, 5, 7, 24}, {11, 5, 7}},
                        {"btc,bhwc->thw", {2, 11, 24}, {2, 5, 7, 24}},
                        {"bthd,bshd->bhts", {2, 9, 3, 16}, {2, 13, 3, 16}},
                        {"bhts,bshd->bthd", {2, 3, 9, 13}, {2, 13, 3, 16}},
                        {"ijk,jk->kji", {6, 4, 3}, {4, 3}},
                        {"ij,j->i", {6, 4}, {4}},
                        {"i,i->", {70}, {70}},
                        {"bk,nk->bn", {3, 0}, {4, 0}},
                        {"i,j->ji", {6}, {5}}};
  for (const Case& test : cases) {
    for (const DType type : kTypes) {
      SCOPED_TRACE(test.text + std::string(" ") + std::string(name(type)));
      const auto spec = ContractionSpec::parse(test.text);
      const Array a = random_array(host_, test.a, type, 1), b = random_array(host_, test.b, type, 2);
      const std::vector<double> wanted = values_of(contract(host_, spec, a, b, type));
      const Array c = contract(*device_, spec, up(a), up(b), type);
      expect_near(down(c), wanted, tolerance(type, 100, 8));
      if (type == DType::kBfloat16) continue;
      Array into = up(contract(host_, spec, a, b, type));
      contract_add(*device_, spec, up(a), up(b), into);
      std::vector<double> twice = wanted;
      for (double& value : twice) value *= 2;
      expect_near(down(into), twice, tolerance(type, 100, 16));
    }
  }
}

TEST_F(Cuda, LayerNorm) {
  for (const DType type : kTypes) {
    for (const Shape& shape : {Shape{2, 3, 5}, Shape{70, 384}, Shape{3, 1031}, Shape{0, 8}}) {
      const Array x = random_array(host_, shape, type, 1), dy = random_array(host_, shape, type, 2);
      const Array gamma = random_array(host_, {shape.back()}, type, 3),
                  beta = random_array(host_, {shape.back()}, type, 4);
      NormStatistics wanted, found;
      const Array y = layer_norm_forward(host_, x, gamma, beta, 1e-5, wanted);
      expect_near(down(layer_norm_forward(*device_, up(x), up(gamma), up(beta), 1e-5, found)), values_of(y),
                  tolerance(type, 64, 4));
      expect_near(down(found.mean), values_of(wanted.mean), tolerance(type, 64));
      const NormGradients gradients = layer_norm_backward(host_, dy, x, gamma, wanted);
      const NormGradients on_device = layer_norm_backward(*device_, up(dy), up(x), up(gamma), found);
      expect_near(down(on_device.dx), values_of(gradients.dx), tolerance(type, 64, 8));
      expect_near(down(on_device.dgamma), values_of(gradients.dgamma), tolerance(DType::kFloat32, 200, 4));
      expect_near(down(on_device.dbeta), values_of(gradients.dbeta), tolerance(DType::kFloat32, 200, 4));
    }
  }
}

TEST_F(Cuda, RmsNorm) {
  for (const DType type : kTypes) {
    const Array x = random_array(host_, {70, 384}, type, 1), dy = random_array(host_, {70, 384}, type, 2),
                gamma = random_array(host_, {384}, type, 3);
    NormStatistics wanted, found;
    const Array y = rms_norm_forward(host_, x, gamma, 1e-5, wanted);
    expect_near(down(rms_norm_forward(*device_, up(x), up(gamma), 1e-5, found)), values_of(y),
                tolerance(type, 64, 4));
    const NormGradients gradients = rms_norm_backward(host_, dy, x, gamma, wanted);
    const NormGradients on_device = rms_norm_backward(*device_, up(dy), up(x), up(gamma), found);
    expect_near(down(on_device.dx), values_of(gradients.dx), tolerance(type, 64, 8));
    expect_near(down(on_device.dgamma), values_of(gradients.dgamma), tolerance(DType::kFloat32, 200, 4));
  }
}

TEST_F(Cuda, Optimizer) {
  for (const DType type : {DType::kFloat32, DType::kFloat64}) {
    Array p = random_array(host_, {5000}, type, 1), m = random_array(host_, {5000}, type, 2, 0, 1);
    Array v = random_array(host_, {5000}, type, 3, 0, 1);
    const Array g = random_array(host_, {5000}, type, 4);
    Array dp = up(p), dm = up(m), dv = up(v);
    const AdamwStep step{.learning_rate = 0.01, .weight_decay = 0.1, .step = 3, .gradient_scale = 0.5};
    adamw(host_, step, p, g, m, v);
    adamw(*device_, step, dp, up(g), dm, dv);
    expect_near(down(dp), values_of(p), tolerance(type, 8));
    expect_near(down(dm), values_of(m), tolerance(type, 8));
    expect_near(down(dv), values_of(v), tolerance(type, 8));
    exponential_average(host_, 0.9, m, p);
    exponential_average(*device_, 0.9, dm, dp);
    expect_near(down(dm), values_of(m), tolerance(type, 8));
    EXPECT_NEAR(sum_of_squares(*device_, dp), sum_of_squares(host_, p), 1e-6 * sum_of_squares(host_, p));
  }
}

TEST_F(Cuda, CopiesAndElementwise) {
  for (const DType type : kTypes) {
    const Array x = random_array(host_, {4, 5, 6}, type, 1), y = random_array(host_, {4, 5, 6}, type, 2);
    const Box box = {{1, 0, 2}, {2, 5, 3}};
    EXPECT_EQ(down(extract_box(*device_, up(x), box)), values_of(extract_box(host_, x, box)));
    EXPECT_EQ(down(permute(*device_, up(x), std::array{2, 0, 1})),
              values_of(permute(host_, x, std::array{2, 0, 1})));
    expect_near(down(add(*device_, up(x), up(y))), values_of(add(host_, x, y)), tolerance(type, 1, 2));
    for (const DType other : kTypes) {
      expect_near(down(cast(*device_, up(x), other)), values_of(cast(host_, x, other)), 1e-12);
    }
    EXPECT_EQ(down(filled(*device_, {7}, type, 1.5)), std::vector<double>(7, 1.5));
  }
}

}  // namespace
}  // namespace jigsaw
