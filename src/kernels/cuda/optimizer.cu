#include <vector>

#include "array/raw_memory.h"
#include "kernels/cuda/constants.h"
#include "kernels/cuda/device.cuh"
#include "kernels/front/optimizer_kernels.h"
#include "kernels/loss.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// A block takes a piece of a run: kPiece elements of it, or what is left.
constexpr std::int64_t kPiece = 4096;
/// Elements that a thread of an update has on their way from memory at a time.
constexpr int kAtOnce = 4;

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

/// Elements of the arrays of an update. Where there is a copy it becomes what the values are.
template <typename T>
struct Updated {
  T* p;
  const T* g;
  __nv_bfloat16* copy;

  __device__ void put(std::int64_t i, T value) const {
    p[i] = value;
    if (copy != nullptr) copy[i] = stored<__nv_bfloat16>(value);
  }
};

/// How the elements of a run decay: by a factor of their own, or in their gradients.
template <typename T>
struct Decay {
  T factor, in_gradient;

  __device__ Decay(bool decoupled, double learning_rate, double weight_decay)
      : factor(static_cast<T>(decoupled ? 1.0 - learning_rate * weight_decay : 1.0)),
        in_gradient(static_cast<T>(decoupled ? 0.0 : weight_decay)) {}
};

/// What AdamW makes of an element, in the type that its arrays have: read() takes what it is made from,
/// write() puts what becomes of it. Numbers that all elements share the first thread of a block works out.
template <typename T>
struct Adamw {
  Updated<T> of;
  T *m, *v;
  T beta1, beta2, rest1, rest2, eps;
  double decay1, decay2;
  bool decoupled;

  struct Shared {
    T scale, root2;
    double rate_factor, correction1;
  };
  __device__ Shared shared(const double* numbers) const {
    const double updates = numbers[UpdateNumbers::kUpdates];
    return {static_cast<T>(numbers[UpdateNumbers::kGradientScale]),
            static_cast<T>(1.0 / sqrt(1.0 - pow(decay2, updates))), numbers[UpdateNumbers::kRateFactor],
            1.0 - pow(decay1, updates)};
  }
  struct OfRun {
    Decay<T> decay;
    T rate;
  };
  __device__ OfRun of_run(const Shared& all, const PlacedRun& run) const {
    const double learning_rate = run.learning_rate * all.rate_factor;
    return {{decoupled, learning_rate, run.weight_decay}, static_cast<T>(learning_rate / all.correction1)};
  }
  struct Old {
    T p, g, m, v;
  };
  __device__ Old read(std::int64_t i) const { return {of.p[i], of.g[i], m[i], v[i]}; }
  __device__ void write(const Shared& all, const OfRun& run, std::int64_t i, const Old& old) const {
    const T slope = old.g * all.scale + run.decay.in_gradient * old.p;
    const T first = beta1 * old.m + rest1 * slope;
    const T second = beta2 * old.v + rest2 * slope * slope;
    m[i] = first;
    v[i] = second;
    of.put(i, old.p * run.decay.factor - run.rate * first / (sqrt(second) * all.root2 + eps));
  }
};

template <typename T>
struct Sgd {
  Updated<T> of;
  T *v, kept;
  bool nesterov, decoupled;

  struct Shared {
    T scale;
    double rate_factor;
  };
  __device__ Shared shared(const double* numbers) const {
    return {static_cast<T>(numbers[UpdateNumbers::kGradientScale]), numbers[UpdateNumbers::kRateFactor]};
  }
  struct OfRun {
    Decay<T> decay;
    T rate;
  };
  __device__ OfRun of_run(const Shared& all, const PlacedRun& run) const {
    const double learning_rate = run.learning_rate * all.rate_factor;
    return {{decoupled, learning_rate, run.weight_decay}, static_cast<T>(learning_rate)};
  }
  struct Old {
    T p, g, v;
  };
  __device__ Old read(std::int64_t i) const { return {of.p[i], of.g[i], v[i]}; }
  __device__ void write(const Shared& all, const OfRun& run, std::int64_t i, const Old& old) const {
    const T gradient = all.scale * old.g + run.decay.in_gradient * old.p;
    const T velocity = kept * old.v + gradient;
    v[i] = velocity;
    of.put(i, run.decay.factor * old.p - run.rate * (nesterov ? gradient + kept * velocity : velocity));
  }
};

template <typename T>
struct Follow {
  Updated<T> of;

  struct Shared {};
  __device__ Shared shared(const double*) const { return {}; }
  struct OfRun {
    T rate;
  };
  __device__ OfRun of_run(const Shared&, const PlacedRun& run) const {
    return {static_cast<T>(run.learning_rate)};
  }
  struct Old {
    T p, g;
  };
  __device__ Old read(std::int64_t i) const { return {of.p[i], of.g[i]}; }
  __device__ void write(const Shared&, const OfRun& run, std::int64_t i, const Old& old) const {
    of.put(i, old.p - run.rate * old.g);
  }
};

/// Applies one of these rules to all runs, unless the step is skipped. A thread reads kAtOnce elements before
/// it writes the first of them: arrays of a rule may be the same memory to the compiler, which reads no
/// element ahead of what was written before.
template <typename Rule>
__global__ void update_runs(Runs runs, const double* numbers, Rule rule) {
  if (numbers[UpdateNumbers::kApplies] == 0) return;
  __shared__ typename Rule::Shared all;
  if (threadIdx.x == 0) all = rule.shared(numbers);
  __syncthreads();
  for (std::int64_t piece = blockIdx.x; piece < runs.pieces; piece += gridDim.x) {
    const PlacedRun& run = runs.of(piece);
    const Piece of(run, piece);
    const typename Rule::OfRun of_run = rule.of_run(all, run);
    std::int64_t i = of.begin + threadIdx.x;
    for (; i + (kAtOnce - 1) * kThreads < of.end; i += kAtOnce * kThreads) {
      typename Rule::Old old[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) old[k] = rule.read(i + k * kThreads);
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) rule.write(all, of_run, i + k * kThreads, old[k]);
    }
    for (; i < of.end; i += kThreads) rule.write(all, of_run, i, rule.read(i));
  }
}

template <typename T>
struct Average {
  const double* numbers;
  T* average;
  const T* x;
  double decay;
  __device__ void operator()(std::int64_t i) const {
    if (numbers[UpdateNumbers::kApplies] == 0) return;
    const double updates = numbers[UpdateNumbers::kUpdates];
    const double keep = fmin(decay, (1.0 + updates) / (10.0 + updates));  // average_decay()
    average[i] = static_cast<T>(keep) * average[i] + static_cast<T>(1.0 - keep) * x[i];
  }
};

/// One thread of one block.
__global__ void decide_numbers(GradientTerms terms, const double* loss, const double* squares,
                               double* numbers) {
  if (threadIdx.x > 0) return;
  const double sum = loss[MeanParts::kSum], weight = loss[MeanParts::kWeight], square = *squares;
  const double scale = terms.full_weight / weight, norm = sqrt(square) * scale;
  const bool applies = weight > 0 && isfinite(sum / weight) && isfinite(norm);
  const bool clips = terms.clip_norm > 0 && norm > terms.clip_norm;
  numbers[UpdateNumbers::kSum] = sum;
  numbers[UpdateNumbers::kWeight] = weight;
  numbers[UpdateNumbers::kEmpty] = loss[MeanParts::kEmpty];
  numbers[UpdateNumbers::kSquares] = square;
  numbers[UpdateNumbers::kApplies] = applies ? 1 : 0;
  numbers[UpdateNumbers::kGradientScale] = scale * (clips ? terms.clip_norm / (norm + 1e-6) : 1.0);
  numbers[UpdateNumbers::kUpdates] += applies ? 1 : 0;
}

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

/// Σ of each run's pieces, each by a block.
__global__ void add_pieces(Runs runs, const double* sums, double* of_runs) {
  for (std::int64_t run = blockIdx.x; run < runs.count; run += gridDim.x) {
    const std::int64_t end = run + 1 < runs.count ? runs.runs[run + 1].first_piece : runs.pieces;
    double own = 0;
    for (std::int64_t piece = runs.runs[run].first_piece + threadIdx.x; piece < end; piece += kThreads)
      own += sums[piece];
    own = block_sum(own);
    if (threadIdx.x == 0) of_runs[run] = own;
  }
}

/// sum += each of these, one after the other, by one thread.
__global__ void add_in_order(const double* values, std::int64_t count, double* sum) {
  if (threadIdx.x > 0) return;
  double all = *sum;
  for (std::int64_t i = 0; i < count; ++i) all += values[i];
  *sum = all;
}

class Optimizer : public OptimizerKernels {
 public:
  void decide(Context& context, const GradientTerms& terms, const Array& loss, const Array& squares,
              Array& numbers) const override {
    start_kernel(context, 1, decide_numbers, terms, loss.data<double>(), squares.data<double>(),
                 numbers.data<double>());
  }

  void adamw(Context& context, const AdamwOptions& options, std::span<const TrainedRun> runs,
             const Array& numbers, Array& parameter, const Array& gradient, Array& moment1, Array& moment2,
             Array& copy) const override {
    visit_master(parameter.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const auto as = [](double value) { return static_cast<T>(value); };
      update<Adamw<T>>(
          context, runs, numbers,
          {updated<T>(parameter, gradient, copy), moment1.data<T>(), moment2.data<T>(), as(options.beta1),
           as(options.beta2), as(1.0 - options.beta1), as(1.0 - options.beta2), as(options.eps),
           options.beta1, options.beta2, options.decoupled});
    });
  }

  void sgd(Context& context, const Momentum& momentum, std::span<const TrainedRun> runs, const Array& numbers,
           Array& parameter, const Array& gradient, Array& velocity, Array& copy) const override {
    visit_master(parameter.dtype(), [&](auto zero) {
      using T = decltype(zero);
      update<Sgd<T>>(context, runs, numbers,
                     {updated<T>(parameter, gradient, copy), velocity.data<T>(),
                      static_cast<T>(momentum.kept), momentum.nesterov, momentum.decoupled});
    });
  }

  void follow(Context& context, std::span<const TrainedRun> runs, const Array& numbers, Array& statistic,
              const Array& gradient, Array& copy) const override {
    visit_master(statistic.dtype(), [&](auto zero) {
      using T = decltype(zero);
      update<Follow<T>>(context, runs, numbers, {updated<T>(statistic, gradient, copy)});
    });
  }

  void exponential_average(Context& context, double decay, const Array& numbers, Array& average,
                           const Array& parameter) const override {
    visit_master(average.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_elements(context, average.count(),
                   Average<T>{numbers.data<double>(), average.data<T>(), parameter.data<T>(), decay});
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
    Array of_runs(context, {placed.count}, DType::kFloat64, Purpose::kWorkspace);
    start_kernel(context, blocks_for(placed.count), add_pieces, placed, sums.data<double>(),
                 of_runs.data<double>());
    start_kernel(context, 1, add_in_order, of_runs.data<double>(), placed.count, sum.data<double>());
  }

 private:
  template <typename T>
  static Updated<T> updated(Array& values, const Array& gradient, Array& copy) {
    return {values.data<T>(), gradient.data<T>(), copy.defined() ? elements<BFloat16>(copy) : nullptr};
  }
  template <typename Rule>
  static void update(Context& context, std::span<const TrainedRun> runs, const Array& numbers,
                     const Rule& rule) {
    const Runs placed = runs_of(context, runs);
    start_kernel(context, blocks_for(placed.pieces), update_runs<Rule>, placed, numbers.data<double>(), rule);
  }
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
