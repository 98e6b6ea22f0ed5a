// Speed of the kernels, one JSON object a line: products in GFLOP/s and as a share of the processor's own
// fused-multiply-add rate, memory-bound kernels in GB/s (bytes as the tally counts them) and as a share of a
// triad, all measured in the same run. On a GPU (kernels_bench_cuda, in builds with CUDA) shares are of a
// large bf16 product and of a copy, both measured there, and memory-bound kernels get larger arrays, of which
// its cache holds nothing from one call to the next.
//
//   kernels_bench [threads | cuda] [only names that contain this]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "array/host_view.h"
#include "array/parallel.h"
#include "array/transfer.h"
#include "kernels/attention.h"
#include "kernels/channel_statistics.h"
#include "kernels/contraction.h"
#include "kernels/convolution.h"
#include "kernels/copy.h"
#include "kernels/cpu/vector_tile.h"
#include "kernels/cpu/vectorize.h"
#include "kernels/cuda_context.h"
#include "kernels/flush_to_zero.h"
#include "kernels/loss.h"
#include "kernels/normalization.h"
#include "kernels/optimizer.h"
#include "kernels/pointwise.h"
#include "kernels/pooling.h"
#include "kernels/resampling.h"

namespace jigsaw {
namespace {

using Clock = std::chrono::steady_clock;

/// Seconds of the fastest call, after one that warms up: what the machine can do when nobody disturbs it. Of
/// a device that of ten calls, for which the host waits once.
double seconds(const Context& context, const std::function<void()>& call) {
  const int calls = context.runtime() == nullptr ? 1 : 10;
  const auto all_calls = [&] {
    for (int i = 0; i < calls; ++i) call();
    if (context.runtime() != nullptr) context.runtime()->synchronise(context.stream());
  };
  all_calls();
  std::vector<double> times;
  const auto start = Clock::now();
  while (times.size() < 5 ||
         (std::chrono::duration<double>(Clock::now() - start).count() < 0.3 && times.size() < 50)) {
    const auto before = Clock::now();
    all_calls();
    times.push_back(std::chrono::duration<double>(Clock::now() - before).count() / calls);
  }
  return std::ranges::min(times);
}

/// Numbers of both signs, none of them like its neighbours.
Array numbers(const Context& context, const Shape& shape, DType dtype) {
  Array host(context.host(), shape, DType::kFloat32);
  const HostView<float> elements(host);
  for (std::size_t i = 0; i < elements.size(); ++i)
    elements[i] = static_cast<float>(i * 2654435761U % 1000) * 0.002F - 1.0F;
  Context to = context;
  return cast(to, upload(context, host), dtype);
}

/// GFLOP/s of a large product on a device.
double product_rate(Context& context, DType dtype) {
  constexpr std::int64_t kSide = 8192;
  const Array a = numbers(context, {kSide, kSide}, dtype), b = numbers(context, {kSide, kSide}, dtype);
  const auto spec = ContractionSpec::parse("mk,nk->mn");
  return 2e-9 * kSide * kSide * kSide / seconds(context, [&] { contract(context, spec, a, b, dtype); });
}

/// GB/s, read and written, of a copy within a device.
double copy_rate(Context& context) {
  constexpr std::int64_t kCount = 1 << 28;
  const Array from = filled(context, {kCount}, DType::kFloat32, 1.5);
  Array to(context, {kCount}, DType::kFloat32);
  return 2.0 * kCount * sizeof(float) / 1e9 /
         seconds(context, [&] { copy_elements(context, from, 0, to, 0, kCount); });
}

/// GFLOP/s of independent multiply-adds in registers, on all threads: the ceiling of every product.
double multiply_add_rate(const Context& context) {
  const int threads = context.threads();
  constexpr std::int64_t kRounds = 4'000'000, kChains = 12;
  std::vector<float> results(static_cast<std::size_t>(threads) * 64);
  std::int64_t width = 0;
  const double time = seconds(context, [&] {
    run_on_threads(threads, [&](int thread) {
      cpu::vectorized_lanes([&](auto lanes) {
        using Vector = typename cpu::Lanes<lanes.value>::Vector;
        Vector sums[kChains];
        // None begins at 1, which stays 1: the compiler would leave that chain out.
        for (std::int64_t chain = 0; chain < kChains; ++chain) {
          sums[chain] = Vector{} + (static_cast<float>(chain) + 0.5F);
        }
        for (std::int64_t round = 0; round < kRounds; ++round) {
          for (Vector& sum : sums) sum = sum * 0.999F + 0.001F;
        }
        for (const Vector& sum : sums) {
          results[static_cast<std::size_t>(thread) * 64] += cpu::Lanes<lanes.value>::sum(sum);
        }
        if (thread == 0) width = lanes.value;
      });
    });
  });
  return static_cast<double>(threads * kRounds * kChains * 2 * width) / time / 1e9;
}

/// GB/s of a = b + s·c over arrays far larger than the caches.
double triad_rate(const Context& context) {
  constexpr std::int64_t kCount = 1 << 25;
  std::vector<float> a(kCount, 1.0F), b(kCount, 2.0F), c(kCount, 3.0F);
  const double time = seconds(context, [&] {
    for_ranges(context.threads(), kCount, 1024, [&](std::int64_t begin, std::int64_t end, int) {
      cpu::vectorized([to = a.data(), x = b.data(), y = c.data(), begin, end] {
        for (std::int64_t i = begin; i < end; ++i) to[i] = x[i] + 0.5F * y[i];
      });
    });
  });
  return 3.0 * kCount * sizeof(float) / time / 1e9;
}

class Bench {
 public:
  Bench(Context context, std::string filter) : context_(std::move(context)), filter_(std::move(filter)) {
    if (context_.runtime() != nullptr) {
      peak_ = product_rate(context_, DType::kBfloat16);
      triad_ = copy_rate(context_);
      std::cout << nlohmann::json{{"name", "machine"},
                                  {"gpu", cuda_device(0).name},
                                  {"product_bf16_gflops", peak_},
                                  {"product_f32_gflops", product_rate(context_, DType::kFloat32)},
                                  {"copy_gb_s", triad_}}
                << std::endl;
      return;
    }
    set_flush_to_zero(context_.threads());
    peak_ = multiply_add_rate(context_);
    triad_ = triad_rate(context_);
    std::cout << nlohmann::json{{"name", "machine"},
                                {"threads", context_.threads()},
                                {"fma_gflops", peak_},
                                {"triad_gb_s", triad_}}
              << std::endl;
  }

  Context& context() { return context_; }

  Array array(const Shape& shape, DType dtype = DType::kFloat32) { return numbers(context_, shape, dtype); }

  /// How many times an array of so many bytes is to be there for a memory-bound kernel: once on the host; on
  /// a device, which is called many times in a row, so that it is several times as large as the cache of an
  /// H200.
  std::int64_t repetitions(std::int64_t bytes) const {
    constexpr std::int64_t kBeyondCaches = 256 << 20;
    return context_.runtime() == nullptr ? 1 : (kBeyondCaches + bytes - 1) / bytes;
  }

  /// A product; `weight` says that the second operand is kept packed.
  void product(const std::string& name, const std::string& text, const Shape& a, const Shape& b, bool weight,
               DType dtype = DType::kFloat32) {
    if (skipped(name)) return;
    const auto spec = ContractionSpec::parse(text);
    const Array x = array(a, dtype), y = array(b, dtype);
    if (weight) keep_packed(context_, y);
    context_.tally() = {};
    contract(context_, spec, x, y, dtype);
    const double flops = context_.tally().flops;
    const double time = seconds(context_, [&] { contract(context_, spec, x, y, dtype); });
    forget_packed_weights(context_);
    std::cout << nlohmann::json{{"name", name},
                                {"spec", text},
                                {"type", jigsaw::name(dtype)},
                                {"ms", time * 1e3},
                                {"gflops", flops / time / 1e9},
                                {"of_peak", flops / time / 1e9 / peak_}}
              << std::endl;
  }

  /// A kernel that is bound by arithmetic.
  void arithmetic(const std::string& name, const std::function<void()>& call) {
    if (skipped(name)) return;
    context_.tally() = {};
    call();
    const double flops = context_.tally().flops;
    const double time = seconds(context_, call);
    std::cout << nlohmann::json{{"name", name},
                                {"ms", time * 1e3},
                                {"gflops", flops / time / 1e9},
                                {"of_peak", flops / time / 1e9 / peak_}}
              << std::endl;
  }

  /// A memory-bound kernel.
  void kernel(const std::string& name, const std::function<void()>& call) {
    if (skipped(name)) return;
    call();
    context_.tally() = {};
    call();
    const double bytes = context_.tally().bytes;
    const double time = seconds(context_, call);
    std::cout << nlohmann::json{{"name", name},
                                {"ms", time * 1e3},
                                {"mb", bytes / 1e6},
                                {"gb_s", bytes / time / 1e9},
                                {"of_triad", bytes / time / 1e9 / triad_}}
              << std::endl;
  }

  bool skipped(const std::string& name) const { return name.find(filter_) == std::string::npos; }

 private:
  Context context_;
  std::string filter_;
  double peak_ = 0, triad_ = 0;
};

void bench_products(Bench& bench) {
  const std::int64_t sizes[][3] = {{4096, 384, 1536}, {4096, 1536, 384},  {4096, 768, 3072},
                                   {4096, 3072, 768}, {16200, 256, 1024}, {1024, 1024, 1024}};
  for (const auto& [m, k, n] : sizes) {
    const std::string size = std::to_string(m) + "," + std::to_string(k) + "," + std::to_string(n);
    bench.product("linear XW " + size, "mk,nk->mn", {m, k}, {n, k}, true);
    bench.product("linear dYW " + size, "mn,nk->mk", {m, n}, {n, k}, true);
    bench.product("linear dYtX " + size, "mn,mk->nk", {m, n}, {m, k}, false);
  }
  const std::int64_t mixers[][4] = {{1024, 45, 90, 384}, {256, 90, 180, 256}};
  for (const auto& [t, h, w, c] : mixers) {
    const std::string size = std::to_string(t) + "," + std::to_string(h * w) + "," + std::to_string(c);
    bench.product("tokens forward " + size, "bhwc,thw->btc", {1, h, w, c}, {t, h, w}, true);
    bench.product("tokens dX " + size, "btc,thw->bhwc", {1, t, c}, {t, h, w}, true);
    bench.product("tokens dW " + size, "btc,bhwc->thw", {1, t, c}, {1, h, w, c}, false);
    bench.product("tokens batch 4 " + size, "bhwc,thw->btc", {4, h, w, c}, {t, h, w}, true);
  }
  bench.product("attention scores 1024x6x64", "bthd,bshd->bhts", {1, 1024, 6, 64}, {1, 1024, 6, 64}, false);
  bench.product("attention values 1024x6x64", "bhts,bshd->bthd", {1, 6, 1024, 1024}, {1, 1024, 6, 64}, false);
  bench.product("linear bf16 XW 4096,768,3072", "mk,nk->mn", {4096, 768}, {3072, 768}, true,
                DType::kBfloat16);
  bench.product("linear bf16 dYtX 4096,768,3072", "mn,mk->nk", {4096, 3072}, {4096, 768}, false,
                DType::kBfloat16);
}

struct AttentionCase {
  std::int64_t tokens, heads, size;
  DType dtype = DType::kFloat32;
  Shape windows = {}, window = {};  ///< windows of a grid, with bias and dropout; none: whole attention
};

/// Self-attention from a packed projection. Operations as in attention.cpp: 2 products forward, 5 backward.
void bench_attention(Bench& bench, const std::string& name, const AttentionCase& of) {
  Context& context = bench.context();
  if (bench.skipped(name)) return;
  const std::int64_t batches = of.windows.count();
  const Array qkv = bench.array({batches, of.tokens, 3, of.heads, of.size}, of.dtype),
              dy = bench.array({batches, of.tokens, of.heads, of.size}, of.dtype);
  const Array dqkv(context, qkv.shape(), of.dtype);
  AttentionOptions options{.scale = 1 / std::sqrt(static_cast<double>(of.size))};
  Array dbias;
  if (of.window.rank() > 0) {
    const Shape plane{of.heads, of.tokens, of.tokens};
    options.bias = bench.array(plane, DType::kFloat32);
    dbias = Array(context, plane, DType::kFloat32);
    Shape grid;
    for (int dim = 0; dim < of.window.rank(); ++dim) grid.append(of.windows[dim] * of.window[dim]);
    const TokenPlaces places{grid, Box::whole(grid), of.window};
    options.dropout =
        AttentionDropout{0.1, RandomStream(1, RandomPurpose::kDropout, "path"), {}, 0, places, places};
  }
  AttentionResult result;
  const auto forward = [&] {
    result = attention_forward(context, {qkv, 0}, {qkv, 1}, {qkv, 2}, options, of.dtype);
  };
  const auto backward = [&] {
    attention_backward(context, {qkv, 0}, {qkv, 1}, {qkv, 2}, result.output, dy, result.log_sum_exp, {},
                       options, {dqkv, 0}, {dqkv, 1}, {dqkv, 2}, dbias);
  };
  bench.arithmetic(name + " forward", forward);
  bench.arithmetic(name + " backward", backward);
  bench.arithmetic(name + " forward and backward", [&] { forward(), backward(); });
}

void bench_attentions(Bench& bench) {
  const DType bf16 = DType::kBfloat16;
  bench_attention(bench, "attention 4050x12x64", {4050, 12, 64});
  bench_attention(bench, "attention bf16 4050x12x64", {4050, 12, 64, bf16});
  bench_attention(bench, "attention 1024x8x96", {1024, 8, 96});
  bench_attention(bench, "attention 77x96x24", {77, 96, 24});
  // As configs/era5_swin.json has them.
  bench_attention(bench, "windows 13x15x84x16x64", {84, 16, 64, DType::kFloat32, {13, 15}, {7, 12}});
  bench_attention(bench, "windows bf16 13x15x84x16x64", {84, 16, 64, bf16, {13, 15}, {7, 12}});
}

/// A convolution [1, h, w, c] → [1, h, w, o] of 3 × 3 points on a field that is padded already.
void bench_convolution(Bench& bench, std::int64_t h, std::int64_t w, std::int64_t c, std::int64_t o,
                       std::int64_t groups, DType dtype = DType::kFloat32) {
  std::ostringstream name;
  name << "convolution " << c << "-" << o << (groups > 1 ? " depthwise " : " ") << h << "x" << w
       << (dtype == DType::kBfloat16 ? " bf16" : "");
  if (bench.skipped(name.str())) return;
  Context& context = bench.context();
  const Convolution convolution = {{{3, 3}, {1, 1}, {1, 1}}, groups};
  const Array x = bench.array({1, h + 2, w + 2, c}, dtype),
              weight = bench.array({o, c / groups, 3, 3}, dtype), dy = bench.array({1, h, w, o}, dtype);
  keep_packed(context, weight);
  bench.arithmetic(name.str() + " forward",
                   [&] { convolution_forward(context, convolution, x, weight, {}, dtype); });
  bench.arithmetic(name.str() + " backward data", [&] {
    convolution_backward_data(context, convolution, dy, weight, {h + 2, w + 2}, dtype);
  });
  bench.arithmetic(name.str() + " backward weight",
                   [&] { convolution_backward_weight(context, convolution, dy, x, DType::kFloat32); });
  forget_packed_weights(context);
}

/// What stands around convolutions in a U-Net.
void bench_fields(Bench& bench) {
  bench_convolution(bench, 180, 360, 64, 64, 1);
  bench_convolution(bench, 180, 360, 32, 32, 1);
  bench_convolution(bench, 180, 360, 69, 32, 1);
  bench_convolution(bench, 22, 45, 256, 256, 1);
  bench_convolution(bench, 180, 360, 64, 64, 64);
  bench_convolution(bench, 180, 360, 64, 64, 1, DType::kBfloat16);
  if (bench.skipped("field")) return;
  Context& context = bench.context();
  const Shape space = {180, 360}, half = {90, 180};
  const std::int64_t samples = bench.repetitions(space.count() * 64 * 4);
  const Array x = bench.array({samples, 180, 360, 64}), y = bench.array({samples, 90, 180, 64});
  const Pooling pooling = {{{2, 2}, {2, 2}, {1, 1}}, Box::whole(space)};
  Array winners;
  bench.kernel("field max pool", [&] { max_pool_forward(context, pooling, x, winners); });
  bench.kernel("field max pool backward", [&] { max_pool_backward(context, pooling, y, winners, space); });
  bench.kernel("field average pool", [&] { average_pool_forward(context, pooling, x); });
  bench.kernel("field average pool backward", [&] { average_pool_backward(context, pooling, y, space); });
  for (const auto& [name, mode] :
       {std::pair("nearest", Interpolation::kNearest), {"bilinear", Interpolation::kLinear}}) {
    const Resampling up = {mode, half, space, {true, true, true}, {}, half, Box::whole(space)};
    bench.kernel(std::string("field ") + name, [&] { resample_forward(context, up, y); });
    bench.kernel(std::string("field ") + name + " backward", [&] { resample_backward(context, up, x); });
  }
  const Array points = x.reshaped({1, samples * space.count(), 64});
  const Moments moments = channel_moments(context, points);
  const Array& m = moments.mean;
  bench.kernel("field channel moments", [&] { channel_moments(context, points); });
  const ChannelMap map{m, m, {}, Activation::kSilu};
  bench.kernel("field channel apply, silu", [&] { channel_apply(context, points, map); });
  bench.kernel("field channel gradient sums, silu",
               [&] { channel_gradient_sums(context, points, points, map); });
  bench.kernel("field channel gradient, silu", [&] { channel_gradient(context, points, points, map, m, m); });
}

void bench_chain(Bench& bench, const Array& x) {
  Context& context = bench.context();
  const std::int64_t rows = x.shape()[0], c = x.shape()[1];
  const Array bias = bench.array({c});
  const Dropout dropout{
      0.1, RandomStream(1, RandomPurpose::kDropout, "bench"), {}, {1, rows, c}, Box::whole({1, rows, c})};
  const PointwiseChain gelu{Activation::kGelu, {}, {rows, c, 1}};
  const PointwiseChain both{Activation::kGelu, dropout, {rows, c, 1}};
  bench.kernel("bias GELU", [&] { pointwise_forward(context, gelu, x, bias, {}); });
  bench.kernel("bias GELU backward", [&] { pointwise_backward(context, gelu, x, bias, x); });
  bench.kernel("bias GELU dropout residual", [&] { pointwise_forward(context, both, x, bias, x); });
  bench.kernel("bias GELU dropout backward", [&] { pointwise_backward(context, both, x, bias, x); });
  for (const auto& [name, activation] : {std::pair("ReLU", Activation::kRelu),
                                         {"SiLU", Activation::kSilu},
                                         {"tanh", Activation::kTanh},
                                         {"sigmoid", Activation::kSigmoid}}) {
    const PointwiseChain chain{activation, {}, {rows, c, 1}};
    bench.kernel(std::string("bias ") + name, [&] { pointwise_forward(context, chain, x, bias, {}); });
    bench.kernel(std::string("bias ") + name + " backward",
                 [&] { pointwise_backward(context, chain, x, bias, x); });
  }
  bench.kernel("bias residual", [&] { pointwise_forward(context, {.spread = {rows, c, 1}}, x, bias, x); });
}

void bench_memory(Bench& bench) {
  Context& context = bench.context();
  // Of bf16 numbers, too.
  const std::int64_t c = 768, rows = 16200 * bench.repetitions(16200 * c * 2);
  const Array x = bench.array({rows, c}), gamma = bench.array({c}),
              half = bench.array({rows, c}, DType::kBfloat16);
  bench_chain(bench, x);
  NormStatistics statistics;
  layer_norm_forward(context, x, gamma, gamma, 1e-5, statistics);
  bench.kernel("layer_norm", [&] { layer_norm_forward(context, x, gamma, gamma, 1e-5, statistics); });
  bench.kernel("layer_norm backward", [&] { layer_norm_backward(context, x, x, gamma, statistics); });
  bench.kernel("layer_norm bf16", [&] { layer_norm_forward(context, half, gamma, gamma, 1e-5, statistics); });
  bench.kernel("rms_norm", [&] { rms_norm_forward(context, x, gamma, 1e-6, statistics); });
  bench.kernel("rms_norm backward", [&] { rms_norm_backward(context, x, x, gamma, statistics); });
  bench.kernel("sum_spread rows", [&] { sum_spread(context, {rows, c, 1}, x); });
  bench.kernel("sum_spread runs", [&] { sum_spread(context, {1, rows, c}, x); });
  bench.kernel("add", [&] { add(context, x, x); });
  bench.kernel("cast to bf16", [&] { cast(context, x, DType::kBfloat16); });
  bench.kernel("permute", [&] { permute(context, x, std::array{1, 0}); });
  bench.kernel("extract_box half columns", [&] { extract_box(context, x, {{0, 0}, {rows, c / 2}}); });
  BoxTable columns;
  for (std::int64_t part = 0; part < 4; ++part)
    columns.copy(0, {0, {rows, c}, {{0, part * c / 4}, {rows, c / 4}}},
                 {part * rows * c / 4, {rows, c / 4}, Box::whole({rows, c / 4})});
  bench.kernel("copy_boxes columns in four parts", [&] {
    Array packed(context, {rows * c}, x.dtype());
    copy_boxes(context, columns, std::span(&x, 1), packed);
  });

  Array p = bench.array({rows * c}), m = filled(context, p.shape(), p.dtype(), 0),
        v = filled(context, p.shape(), p.dtype(), 0);
  const Array gradient = bench.array({rows * c});
  const TrainedRun run{0, rows * c, 1e-3, 0.1};
  const Array numbers = filled(context, {UpdateNumbers::kKinds}, DType::kFloat64, 1.0);
  bench.kernel("adamw", [&] { adamw(context, {}, std::span(&run, 1), numbers, p, gradient, m, v); });
  Array sum = filled(context, {1}, DType::kFloat64, 0.0);
  bench.kernel("sum_of_squares", [&] { add_squares_of_runs(context, std::span(&run, 1), p, sum); });

  constexpr std::int64_t kPoints = 180 * 360;
  const std::int64_t samples = bench.repetitions(kPoints * 69 * 4);
  const Array field = bench.array({samples, 180, 360, 69}),
              weight = filled(context, {kPoints}, DType::kFloat64, 1.0);
  const Array factor = filled(context, {samples, 69}, DType::kFloat64, 1.0);
  bench.kernel("loss_sums", [&] { loss_sums(context, ErrorNorm::kSquared, field, field, weight); });
  bench.kernel("loss_gradient",
               [&] { loss_gradient(context, ErrorNorm::kSquared, field, field, weight, factor); });
}

}  // namespace
}  // namespace jigsaw

int main(int argc, char** argv) {
  using jigsaw::Context;
  const bool gpu = argc > 1 && std::string(argv[1]) == "cuda";
  const int threads = argc > 1 ? std::atoi(argv[1]) : static_cast<int>(std::thread::hardware_concurrency());
  jigsaw::Bench bench(
      gpu ? jigsaw::make_cuda_context(0) : Context::make_host(jigsaw::Backend::kCpu, std::max(threads, 1)),
      argc > 2 ? argv[2] : "");
  jigsaw::bench_products(bench);
  jigsaw::bench_attentions(bench);
  jigsaw::bench_fields(bench);
  jigsaw::bench_memory(bench);
}
