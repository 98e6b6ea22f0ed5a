#include <cmath>
#include <vector>

#include "array/raw_memory.h"
#include "kernels/cuda/constants.h"
#include "kernels/cuda/device.cuh"
#include "kernels/front/optimizer_kernels.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// A block takes a piece of a run: kPiece elements of it, or what is left.
constexpr std::int64_t kPiece = 4096;

/// A run as it stands in a device's memory.
struct PlacedRun {
  std::int64_t at, count;
  std::int64_t first_piece;  ///< of all runs' pieces, the number of its first
  double learning_rate, weight_decay;
};

/// All runs of a flat buffer that have elements.
struct Runs {
  const PlacedRun* runs;
  std::int64_t count, pieces;

  /// The run in which a piece lies.
  __device__ const PlacedRun& of(std::int64_t piece) const {
    std::int64_t low = 0, high = count;
    while (high - low > 1) {
      const std::int64_t middle = (low + high) / 2;
      (runs[middle].first_piece <= piece ? low : high) = middle;
    }
    return runs[low];
  }
};

/// The table goes up once: it is the same in each step.
Runs runs_of(Context& context, std::span<const TrainedRun> all) {
  std::vector<PlacedRun> placed;
  std::int64_t pieces = 0;
  for (const TrainedRun& run : all) {
    if (run.count == 0) continue;
    placed.push_back({run.at, run.count, pieces, run.learning_rate, run.weight_decay});
    pieces += (run.count + kPiece - 1) / kPiece;
  }
  return {constants(context, std::span<const PlacedRun>(placed)), std::ssize(placed), pieces};
}

/// Elements of a piece.
struct Piece {
  std::int64_t begin, end;

  __device__ Piece(const PlacedRun& run, std::int64_t piece) {
    begin = run.at + (piece - run.first_piece) * kPiece;
    const std::int64_t last = run.at + run.count;
    end = begin + kPiece < last ? begin + kPiece : last;
  }
};

template <typename T>
struct Adamw {
  T *p, *m, *v;
  const T* g;
  T scale, beta1, beta2, rest1, rest2, root2, eps;
  double rate_factor, correction1;
};

template <typename T>
__global__ void update_runs(Runs runs, Adamw<T> all) {
  for (std::int64_t piece = blockIdx.x; piece < runs.pieces; piece += gridDim.x) {
    const PlacedRun& run = runs.of(piece);
    const Piece of(run, piece);
    const double learning_rate = run.learning_rate * all.rate_factor;
    const T keep = static_cast<T>(1.0 - learning_rate * run.weight_decay),
            rate = static_cast<T>(learning_rate / all.correction1);
    for (std::int64_t i = of.begin + threadIdx.x; i < of.end; i += kThreads) {
      const T slope = all.g[i] * all.scale;
      const T m = all.beta1 * all.m[i] + all.rest1 * slope;
      const T v = all.beta2 * all.v[i] + all.rest2 * slope * slope;
      all.m[i] = m;
      all.v[i] = v;
      all.p[i] = all.p[i] * keep - rate * m / (sqrt(v) * all.root2 + all.eps);
    }
  }
}

template <typename T>
struct Average {
  T* average;
  const T* x;
  T keep, rest;
  __device__ void operator()(std::int64_t i) const { average[i] = keep * average[i] + rest * x[i]; }
};

/// Σ x² of each piece.
template <typename E>
__global__ void square_pieces(Runs runs, const E* x, double* sums) {
  for (std::int64_t piece = blockIdx.x; piece < runs.pieces; piece += gridDim.x) {
    const Piece of(runs.of(piece), piece);
    double sum = 0;
    for (std::int64_t i = of.begin + threadIdx.x; i < of.end; i += kThreads) {
      const auto value = load<double>(x[i]);
      sum += value * value;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) sums[piece] = sum;
  }
}

/// sum += Σ of each run's pieces, one run after the other, by one block.
__global__ void add_pieces(Runs runs, const double* sums, double* sum) {
  for (std::int64_t run = 0; run < runs.count; ++run) {
    const std::int64_t end = run + 1 < runs.count ? runs.runs[run + 1].first_piece : runs.pieces;
    double own = 0;
    for (std::int64_t piece = runs.runs[run].first_piece + threadIdx.x; piece < end; piece += kThreads)
      own += sums[piece];
    own = block_sum(own);
    if (threadIdx.x == 0) *sum += own;
  }
}

class Optimizer : public OptimizerKernels {
 public:
  void adamw(Context& context, const AdamwStep& step, std::span<const TrainedRun> runs, Array& parameter,
             const Array& gradient, Array& moment1, Array& moment2) const override {
    const Runs placed = runs_of(context, runs);
    const double correction1 = 1.0 - std::pow(step.beta1, static_cast<double>(step.step));
    const double correction2 = 1.0 - std::pow(step.beta2, static_cast<double>(step.step));
    visit_master(parameter.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const auto as = [](double value) { return static_cast<T>(value); };
      start_kernel(context, blocks_for(placed.pieces), update_runs<T>, placed,
                   Adamw<T>{parameter.data<T>(), moment1.data<T>(), moment2.data<T>(), gradient.data<T>(),
                            as(step.gradient_scale), as(step.beta1), as(step.beta2), as(1.0 - step.beta1),
                            as(1.0 - step.beta2), as(1.0 / std::sqrt(correction2)), as(step.eps),
                            step.rate_factor, correction1});
    });
  }

  void exponential_average(Context& context, double decay, Array& average,
                           const Array& parameter) const override {
    visit_master(average.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_elements(context, average.count(),
                   Average<T>{average.data<T>(), parameter.data<T>(), static_cast<T>(decay),
                              static_cast<T>(1.0 - decay)});
    });
  }

  void squares_of_runs(Context& context, std::span<const TrainedRun> runs, const Array& x,
                       Array& sum) const override {
    const Runs placed = runs_of(context, runs);
    Array sums(context, {placed.pieces}, DType::kFloat64, Purpose::kWorkspace);
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      start_kernel(context, blocks_for(placed.pieces), square_pieces<Element<T>>, placed, elements<T>(x),
                   sums.data<double>());
    });
    start_kernel(context, 1, add_pieces, placed, sums.data<double>(), sum.data<double>());
  }

 private:
  /// f32 or f64, the types of master parameters.
  template <typename F>
  static void visit_master(DType dtype, const F& f) {
    if (dtype == DType::kFloat64) return f(double{});
    f(float{});
  }
};

}  // namespace

template <>
const OptimizerKernels& kernels() {
  static const Optimizer instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cuda
