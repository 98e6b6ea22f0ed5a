#include <algorithm>
#include <vector>

#include "array/parallel.h"
#include "array/raw_memory.h"
#include "kernels/cpu/class_loss.h"
#include "kernels/cpu/types.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/cpu/vectorize.h"
#include "kernels/front/loss_kernels.h"

namespace jigsaw::inline kernels::cpu {

namespace {

struct Extents {
  Extents(const Array& prediction, const Array& target)
      : samples(target.shape()[0]),
        members(samples == 0 ? 1 : prediction.shape()[0] / samples),
        points(target.shape().count(1, target.rank() - 1)),
        channels(target.shape().back()) {}
  /// How far predictions of members stand apart.
  std::int64_t apart() const { return points * channels; }
  std::int64_t samples, members, points, channels;
};

/// Calls f with zeros of the types of prediction (f32, bf16) and target (f32, f64).
template <typename F>
void visit_types(const Array& prediction, const Array& target, const F& f) {
  visit_fast(prediction.dtype(), [&](auto p_zero) {
    if (target.dtype() == DType::kFloat64) {
      f(p_zero, double{});
    } else {
      f(p_zero, float{});
    }
  });
}

/// Adds one point's channels to numerator[c] and denominator[c].
template <typename P, typename T>
inline void add_point(const ErrorMeasure& measure, std::int64_t channels, const P* prediction,
                      const T* target, double weight, double* numerator, double* denominator) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const auto wanted = static_cast<double>(target[c]);
    const double error = static_cast<double>(static_cast<float>(prediction[c])) - wanted;
    const bool valid = wanted == wanted;
    numerator[c] += valid ? weight * measure.value(error) : 0.0;
    denominator[c] += valid ? weight : 0.0;
  }
}

template <typename P>
inline double wide(P value) {
  return static_cast<double>(static_cast<float>(value));
}

/// The same of the members of an ensemble, the first of which is at `prediction`.
template <typename P, typename T>
inline void add_members(const ErrorMeasure& measure, const Extents& all, const P* prediction, const T* target,
                        double weight, double* numerator, double* denominator) {
  const double each = weight / static_cast<double>(all.members),
               of_pair = weight * measure.pair_weight(all.members);
  for (std::int64_t j = 0; j < all.members; ++j) {
    const P* const own = prediction + j * all.apart();
    for (std::int64_t c = 0; c < all.channels; ++c) {
      const auto wanted = static_cast<double>(target[c]);
      numerator[c] += wanted == wanted ? each * measure.value(wide(own[c]) - wanted) : 0.0;
    }
    for (std::int64_t k = j + 1; of_pair != 0 && k < all.members; ++k) {
      const P* const other = prediction + k * all.apart();
      for (std::int64_t c = 0; c < all.channels; ++c) {
        const auto wanted = static_cast<double>(target[c]);
        const double apart = wide(own[c]) - wide(other[c]);
        numerator[c] -= wanted == wanted ? of_pair * (apart < 0 ? -apart : apart) : 0.0;
      }
    }
  }
  for (std::int64_t c = 0; c < all.channels; ++c) {
    const auto wanted = static_cast<double>(target[c]);
    denominator[c] += wanted == wanted ? weight : 0.0;
  }
}

class Loss : public LossKernels {
 public:
  /// Threads take ranges of a sample's points; their sums are added in the order of the threads.
  void sums(Context& context, const ErrorMeasure& measure, const Array& prediction, const Array& target,
            const Array& weight, LossSums& sums) const override {
    const Extents extents(prediction, target);
    const std::int64_t channels = extents.channels, width = 2 * channels;
    const int threads = threads_for(context, extents.points, extents.members * channels);
    std::vector<double> partial(static_cast<std::size_t>(threads * width));
    for (std::int64_t sample = 0; sample < extents.samples; ++sample) {
      std::ranges::fill(partial, 0.0);
      visit_types(prediction, target, [&](auto p_zero, auto t_zero) {
        const auto* const p =
            prediction.data<decltype(p_zero)>() + sample * extents.members * extents.apart();
        const auto* const t = target.data<decltype(t_zero)>() + sample * extents.apart();
        const double* const w = weight.data<double>();
        for_ranges(threads, extents.points, 1, [&](std::int64_t begin, std::int64_t end, int thread) {
          double* const mine = partial.data() + thread * width;
          vectorized([=] {
            for (std::int64_t point = begin; point < end; ++point) {
              if (extents.members == 1) {
                add_point(measure, channels, p + point * channels, t + point * channels, w[point], mine,
                          mine + channels);
              } else {
                add_members(measure, extents, p + point * channels, t + point * channels, w[point], mine,
                            mine + channels);
              }
            }
          });
        });
      });
      for (std::int64_t i = 0; i < width; ++i) {
        double total = 0;
        for (int thread = 0; thread < threads; ++thread)
          total += partial[static_cast<std::size_t>(thread * width + i)];
        Array& to = i < channels ? sums.numerator : sums.denominator;
        to.data<double>()[sample * channels + i % channels] = total;
      }
    }
  }

  void gradient(Context& context, const ErrorMeasure& measure, const Array& prediction, const Array& target,
                const Array& weight, const Array& factor, Array& gradient) const override {
    const Extents extents(prediction, target);
    const std::int64_t channels = extents.channels, rows = extents.samples * extents.members * extents.points;
    visit_types(prediction, target, [&](auto p_zero, auto t_zero) {
      using P = decltype(p_zero);
      using T = decltype(t_zero);
      for_ranges(threads_for(context, rows, extents.members * channels), rows, 1,
                 [&](std::int64_t begin, std::int64_t end, int) {
                   vectorized([&, begin, end] {
                     for (std::int64_t row = begin; row < end; ++row) {
                       const std::int64_t sample = row / extents.points / extents.members,
                                          point = row % extents.points;
                       const double w = weight.data<double>()[point];
                       const double* const factors = factor.data<double>() + sample * channels;
                       const T* const t = target.data<T>() + (sample * extents.points + point) * channels;
                       P* const to = gradient.data<P>() + row * channels;
                       if (extents.members == 1) {
                         gradient_point(measure, channels, prediction.data<P>() + row * channels, t, w,
                                        factors, to);
                       } else {
                         const std::int64_t first = sample * extents.members * extents.points + point;
                         gradient_of_member(measure, extents, prediction.data<P>() + row * channels,
                                            prediction.data<P>() + first * channels, t, w, factors, to);
                       }
                     }
                   });
                 });
    });
  }

  void class_sums(Context& context, const Array& logits, const Array& labels, const Array& weight,
                  ClassSums& sums) const override {
    cpu::class_sums(context, logits, labels, weight, sums);
  }
  void class_gradient(Context& context, const Array& logits, const Array& labels, const Array& weight,
                      const Array& factors, Array& gradient) const override {
    cpu::class_gradient(context, logits, labels, weight, factors, gradient);
  }

 private:
  template <typename P, typename T>
  static void gradient_point(const ErrorMeasure& measure, std::int64_t channels, const P* prediction,
                             const T* target, double weight, const double* factor, P* gradient) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const auto wanted = static_cast<double>(target[c]);
      const double error = static_cast<double>(static_cast<float>(prediction[c])) - wanted;
      const double value = factor[c] * weight * measure.slope(error);
      gradient[c] = rounded<P>(static_cast<float>(wanted == wanted ? value : 0.0));
    }
  }

  /// The same of one of the members, the first of which is at `members`.
  template <typename P, typename T>
  static void gradient_of_member(const ErrorMeasure& measure, const Extents& all, const P* prediction,
                                 const P* members, const T* target, double weight, const double* factor,
                                 P* gradient) {
    const double each = weight / static_cast<double>(all.members),
                 of_pair = weight * measure.pair_weight(all.members);
    for (std::int64_t c = 0; c < all.channels; ++c) {
      const auto wanted = static_cast<double>(target[c]);
      const double own = wide(prediction[c]);
      double above = 0;  // members below less those above
      for (std::int64_t k = 0; of_pair != 0 && k < all.members; ++k) {
        const double other = wide(members[k * all.apart() + c]);
        above += own > other ? 1.0 : own < other ? -1.0 : 0.0;
      }
      const double value = factor[c] * (each * measure.slope(own - wanted) - of_pair * above);
      gradient[c] = rounded<P>(static_cast<float>(wanted == wanted ? value : 0.0));
    }
  }
};

}  // namespace

template <>
const LossKernels& kernels() {
  static const Loss instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cpu
