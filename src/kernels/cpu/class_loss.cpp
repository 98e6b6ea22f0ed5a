#include "kernels/cpu/class_loss.h"

#include <cmath>
#include <vector>

#include "array/parallel.h"
#include "array/raw_memory.h"
#include "kernels/cpu/types.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/cpu/vectorize.h"

namespace jigsaw::inline kernels::cpu {

namespace {

/// Points of a block, which the loops over it run along as vectors.
constexpr std::int64_t kBlock = 64;

/// The softmax of a block of points: class by class, the points of each side by side.
struct Block {
  explicit Block(std::int64_t classes) : p(static_cast<std::size_t>(classes * kBlock)) {}

  std::vector<float> p;
  float largest[kBlock] = {}, log_sum[kBlock] = {}, likeliest[kBlock] = {};
  float label[kBlock] = {};    ///< -1 where the point does not count
  double weight[kBlock] = {};  ///< 0 there
  float* of(std::int64_t k) { return p.data() + k * kBlock; }
};

/// Fills the first n points of a block from their logits, labels and weights.
template <typename P, typename L>
inline void fill(Block& block, std::int64_t n, std::int64_t classes, const P* logits, const L* labels,
                 const double* weight) {
  for (std::int64_t i = 0; i < n; ++i) {
    const bool valid = labels[i] == labels[i];
    block.label[i] = valid ? static_cast<float>(labels[i]) : -1.0F;
    block.weight[i] = valid ? weight[i] : 0.0;
  }
  for (std::int64_t k = 0; k < classes; ++k) {
    float* const p = block.of(k);
    for (std::int64_t i = 0; i < n; ++i) p[i] = static_cast<float>(logits[i * classes + k]);
  }
  for (std::int64_t i = 0; i < n; ++i) {
    block.largest[i] = block.p[static_cast<std::size_t>(i)];
    block.likeliest[i] = 0.0F;
  }
  for (std::int64_t k = 1; k < classes; ++k) {
    const float* const p = block.of(k);
    for (std::int64_t i = 0; i < n; ++i) {
      const bool larger = p[i] > block.largest[i];
      block.largest[i] = larger ? p[i] : block.largest[i];
      block.likeliest[i] = larger ? static_cast<float>(k) : block.likeliest[i];
    }
  }
  float sum[kBlock] = {};
  for (std::int64_t k = 0; k < classes; ++k) {
    float* const p = block.of(k);
    for (std::int64_t i = 0; i < n; ++i) {
      const float power = (p[i] - block.largest[i]) * 1.442695041F;  // log2(e)
      p[i] = exp2_negative(power > -125.0F ? power : -125.0F);
      sum[i] += p[i];
    }
  }
  for (std::int64_t i = 0; i < n; ++i) block.log_sum[i] = std::log(sum[i]);
  for (std::int64_t k = 0; k < classes; ++k) {
    float* const p = block.of(k);
    for (std::int64_t i = 0; i < n; ++i) p[i] /= sum[i];
  }
}

/// Adds the first n points of a block to sums[kind · classes + k].
template <typename P>
inline void add(Block& block, std::int64_t n, std::int64_t classes, const P* logits, double* sums) {
  for (std::int64_t k = 0; k < classes; ++k) {
    const float* const p = block.of(k);
    const auto number = static_cast<float>(k);
    double surprise = 0, labelled = 0, intersection = 0, predicted = 0, hits = 0, chosen = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const double w = block.weight[i], own = block.label[i] == number ? w : 0.0;
      const float logit = static_cast<float>(logits[i * classes + k]);
      surprise += own * static_cast<double>(block.log_sum[i] + (block.largest[i] - logit));
      labelled += own;
      intersection += own * static_cast<double>(p[i]);
      predicted += w * static_cast<double>(p[i]);
      hits += block.likeliest[i] == number ? own : 0.0;
      chosen += block.likeliest[i] == number ? w : 0.0;
    }
    sums[ClassSums::kSurprise * classes + k] += surprise;
    sums[ClassSums::kLabelled * classes + k] += labelled;
    sums[ClassSums::kIntersection * classes + k] += intersection;
    sums[ClassSums::kPredicted * classes + k] += predicted;
    sums[ClassSums::kHits * classes + k] += hits;
    sums[ClassSums::kChosen * classes + k] += chosen;
  }
}

/// Writes the gradient of the first n points of a block; factors[kind · stride + k] as in class_gradient().
template <typename P>
inline void differentiate(Block& block, std::int64_t n, std::int64_t classes, const double* factors,
                          std::int64_t stride, P* gradient) {
  const double* const surprise = factors;
  const double* const overlap = factors + stride;
  const double* const predicted = overlap + stride;
  float mean[kBlock] = {}, own[kBlock] = {};
  for (std::int64_t k = 0; k < classes; ++k) {
    const float* const p = block.of(k);
    const auto number = static_cast<float>(k);
    for (std::int64_t i = 0; i < n; ++i) {
      const bool labelled = block.label[i] == number;
      mean[i] += p[i] * static_cast<float>(predicted[k] + (labelled ? overlap[k] : 0.0));
      own[i] = labelled ? static_cast<float>(surprise[k]) : own[i];
    }
  }
  for (std::int64_t k = 0; k < classes; ++k) {
    const float* const p = block.of(k);
    const auto number = static_cast<float>(k);
    for (std::int64_t i = 0; i < n; ++i) {
      const bool labelled = block.label[i] == number;
      const auto slope = static_cast<float>(predicted[k] + (labelled ? overlap[k] : 0.0));
      const float value = own[i] * (p[i] - (labelled ? 1.0F : 0.0F)) + p[i] * (slope - mean[i]);
      gradient[i * classes + k] = rounded<P>(static_cast<float>(block.weight[i]) * value);
    }
  }
}

/// Calls f with zeros of the types of logits (f32, bf16) and labels (f32, f64).
template <typename F>
void visit_types(const Array& logits, const Array& labels, const F& f) {
  visit_fast(logits.dtype(), [&](auto p_zero) {
    if (labels.dtype() == DType::kFloat64) {
      f(p_zero, double{});
    } else {
      f(p_zero, float{});
    }
  });
}

/// Calls use(block, points in it, its first point, thread) for the blocks of a sample, filled.
template <typename P, typename L, typename F>
void for_blocks(int threads, std::int64_t points, std::int64_t classes, const P* logits, const L* labels,
                const double* weight, const F& use) {
  for_ranges(threads, points, kBlock, [&](std::int64_t begin, std::int64_t end, int thread) {
    Block block(classes);
    vectorized([&, begin, end, thread] {
      for (std::int64_t first = begin; first < end; first += kBlock) {
        const std::int64_t n = std::min(kBlock, end - first);
        fill(block, n, classes, logits + first * classes, labels + first, weight + first);
        use(block, n, first, thread);
      }
    });
  });
}

}  // namespace

void class_sums(Context& context, const Array& logits, const Array& labels, const Array& weight,
                ClassSums& sums) {
  const std::int64_t classes = logits.shape().back(), samples = logits.shape()[0];
  const std::int64_t points = logits.shape().count(1, logits.rank() - 1), width = ClassSums::kKinds * classes;
  const int threads = threads_for(context, points, classes);
  std::vector<double> partial(static_cast<std::size_t>(threads * width));
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    std::ranges::fill(partial, 0.0);
    visit_types(logits, labels, [&](auto p_zero, auto l_zero) {
      const auto* const x = logits.data<decltype(p_zero)>() + sample * points * classes;
      for_blocks(threads, points, classes, x, labels.data<decltype(l_zero)>() + sample * points,
                 weight.data<double>(), [&](Block& block, std::int64_t n, std::int64_t first, int thread) {
                   add(block, n, classes, x + first * classes, partial.data() + thread * width);
                 });
    });
    for (std::int64_t i = 0; i < width; ++i) {
      double total = 0;
      for (int thread = 0; thread < threads; ++thread)
        total += partial[static_cast<std::size_t>(thread * width + i)];
      sums.all.data<double>()[(i / classes * samples + sample) * classes + i % classes] = total;
    }
  }
}

void class_gradient(Context& context, const Array& logits, const Array& labels, const Array& weight,
                    const Array& factors, Array& gradient) {
  const std::int64_t classes = logits.shape().back(), samples = logits.shape()[0];
  const std::int64_t points = logits.shape().count(1, logits.rank() - 1);
  const int threads = threads_for(context, points, classes);
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    visit_types(logits, labels, [&](auto p_zero, auto l_zero) {
      using P = decltype(p_zero);
      P* const to = gradient.data<P>() + sample * points * classes;
      for_blocks(threads, points, classes, logits.data<P>() + sample * points * classes,
                 labels.data<decltype(l_zero)>() + sample * points, weight.data<double>(),
                 [&](Block& block, std::int64_t n, std::int64_t first, int) {
                   differentiate(block, n, classes, factors.data<double>() + sample * classes,
                                 samples * classes, to + first * classes);
                 });
    });
  }
}

}  // namespace jigsaw::inline kernels::cpu
