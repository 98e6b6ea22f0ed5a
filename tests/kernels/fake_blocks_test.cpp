// Kernels that stride over what is beyond their grid, where the fake CUDA runtime runs a few of their blocks.
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "base/text.h"
#include "kernels/attention.h"
#include "kernels/fake_cuda_finds.h"
#include "support/error_of.h"
#include "support/tolerance.h"

namespace jigsaw {
namespace {

namespace fake_cuda = testing::fake_cuda;
using testing::array_of;
using testing::error_of;
using testing::expect_near;
using testing::random_array;
using testing::tolerance;
using testing::values_of;

class FakeCudaBlocks : public testing::FakeCudaFinds {
 protected:
  void TearDown() override {
    fake_cuda::machine().most_blocks_y = fake_cuda::Machine().most_blocks_y;
    fake_cuda::machine().most_blocks_z = fake_cuda::Machine().most_blocks_z;
    FakeCudaFinds::TearDown();
  }
};

constexpr std::int64_t kBatches = 5, kHeads = 7, kSize = 8, kKeys = 2;

/// Attention of one query to two keys and its gradients, by their definition. q and dy are [B, heads, d], kv
/// and dkv [B, keys, keys or values, heads, d], the bias [heads, keys].
struct Expected {
  std::vector<double> y, log_sum_exp, dq, dkv, dbias;

  Expected(double scale, const std::vector<double>& q, const std::vector<double>& kv,
           const std::vector<double>& dy, const std::vector<double>& bias)
      : y(q.size()), dq(q.size()), dkv(kv.size()), dbias(bias.size()) {
    for (std::int64_t b = 0; b < kBatches; ++b) {
      for (std::int64_t h = 0; h < kHeads; ++h) {
        const std::int64_t at = (b * kHeads + h) * kSize;
        const auto place = [&](std::int64_t key, std::int64_t slot, std::int64_t i) {
          return static_cast<std::size_t>((((b * kKeys + key) * 2 + slot) * kHeads + h) * kSize + i);
        };
        double score[kKeys], up[kKeys] = {};
        for (std::int64_t n = 0; n < kKeys; ++n) {
          score[n] = bias[static_cast<std::size_t>(h * kKeys + n)];
          for (std::int64_t i = 0; i < kSize; ++i) {
            const auto own = static_cast<std::size_t>(at + i);
            score[n] += scale * q[own] * kv[place(n, 0, i)];
            up[n] += dy[own] * kv[place(n, 1, i)];
          }
        }
        const double sum = std::exp(score[0]) + std::exp(score[1]),
                     weight[kKeys] = {std::exp(score[0]) / sum, std::exp(score[1]) / sum},
                     row_sum = weight[0] * up[0] + weight[1] * up[1];
        log_sum_exp.push_back(std::log(sum));
        for (std::int64_t n = 0; n < kKeys; ++n) {
          const double slope = weight[n] * (up[n] - row_sum);
          dbias[static_cast<std::size_t>(h * kKeys + n)] += slope;
          for (std::int64_t i = 0; i < kSize; ++i) {
            const auto own = static_cast<std::size_t>(at + i);
            y[own] += weight[n] * kv[place(n, 1, i)];
            dq[own] += scale * slope * kv[place(n, 0, i)];
            dkv[place(n, 0, i)] = scale * slope * q[own];
            dkv[place(n, 1, i)] = weight[n] * dy[own];
          }
        }
      }
    }
  }
};

/// Of bf16 weights and slopes are rounded, too.
double limit_of(DType type, const std::vector<double>& wanted) {
  double largest = 0;
  for (const double number : wanted) largest = std::max(largest, std::abs(number));
  return tolerance(type, 64, 2 * largest);
}

/// A grid has at most 65,535 blocks along y and z.
TEST_F(FakeCudaBlocks, DoTheWorkOfMoreHeadsAndBatchesThanTheyAre) {
  for (const DType type : {DType::kFloat32, DType::kBfloat16}) {
    for (const bool biased : {false, true}) {
      SCOPED_TRACE(concat(name(type), biased ? ", with a bias" : ""));
      const HeadRows q{random_array(context_, {kBatches, 1, 1, kHeads, kSize}, type, 1), 0};
      const Array kv = random_array(context_, {kBatches, kKeys, 2, kHeads, kSize}, type, 2),
                  dy = random_array(context_, {kBatches, 1, kHeads, kSize}, type, 3);
      AttentionOptions options;
      options.scale = 0.46;
      std::vector<double> bias(kHeads * kKeys, 0.0);
      if (biased) {
        options.bias = random_array(context_, {kHeads, 1, kKeys}, DType::kFloat32, 4);
        bias = values_of(options.bias);
      }
      const Expected wanted(options.scale, values_of(q.array), values_of(kv), values_of(dy), bias);
      // Along z lie slabs of the batches, too, whose gradients of the bias are added up: as many as blocks.
      fake_cuda::machine().most_blocks_y = 3;
      fake_cuda::machine().most_blocks_z = biased ? fake_cuda::Machine().most_blocks_z : 2;
      const AttentionResult result = attention_forward(context_, q, {kv, 0}, {kv, 1}, options, type);
      const HeadRows dq{Array(context_, q.array.shape(), type), 0};
      const Array dkv(context_, kv.shape(), type);
      const Array dbias = biased ? Array(context_, options.bias.shape(), DType::kFloat32) : Array();
      attention_backward(context_, q, {kv, 0}, {kv, 1}, result.output, dy, result.log_sum_exp, {}, options,
                         dq, {dkv, 0}, {dkv, 1}, dbias);
      expect_near(values_of(result.output), wanted.y, limit_of(type, wanted.y));
      expect_near(values_of(result.log_sum_exp), wanted.log_sum_exp, tolerance(DType::kFloat32, 64, 4));
      expect_near(values_of(dq.array), wanted.dq, limit_of(type, wanted.dq));
      expect_near(values_of(dkv), wanted.dkv, limit_of(type, wanted.dkv));
      if (biased) expect_near(values_of(dbias), wanted.dbias, limit_of(type, wanted.dbias));
    }
  }
}

/// Launches of more heads, or batches, than a grid has blocks along y or z are such as CUDA takes. They do
/// not run, for work before them fails: it would take minutes.
TEST_F(FakeCudaBlocks, AreNoMoreThanAGridHas) {
  constexpr std::int64_t kMany = 70'000;
  for (const DType type : {DType::kFloat32, DType::kBfloat16}) {
    for (const Shape& rows : {Shape{1, 1, 1, kMany, 1}, Shape{kMany, 1, 1, 1, 1}}) {
      SCOPED_TRACE(concat(name(type), " ", rows));
      const HeadRows x{random_array(context_, rows, type, 1), 0};
      const Array dy = random_array(context_, {rows[0], 1, rows[3], 1}, type, 2);
      const HeadRows dq{Array(context_, rows, type), 0}, dk{Array(context_, rows, type), 0},
          dv{Array(context_, rows, type), 0};
      context_.runtime()->synchronise(Stream::kCompute);
      const std::int64_t run = fake_cuda::kernels_run();
      fake_cuda::fail_next(cudaErrorIllegalAddress);
      AttentionResult result;
      EXPECT_EQ(error_of([&] {
                  result = attention_forward(context_, x, x, x, {}, type);
                  attention_backward(context_, x, x, x, result.output, dy, result.log_sum_exp, {}, {}, dq, dk,
                                     dv, {});
                }),
                "");
      EXPECT_NE(error_of([&] { values_of(dv.array); }), "");
      EXPECT_EQ(fake_cuda::kernels_run(), run);
      fake_cuda::fail_next(cudaSuccess);
    }
  }
}

}  // namespace
}  // namespace jigsaw
