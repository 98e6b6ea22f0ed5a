#include <algorithm>
#include <vector>

#include "array/parallel.h"
#include "array/raw_memory.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/types.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/cpu/vectorize.h"
#include "kernels/front/channel_statistics_kernels.h"

namespace jigsaw::inline kernels::cpu {

namespace {

/// Elements that one pass reads from memory and the next from the cache.
constexpr std::int64_t kBlockElements = 8192;

/// Adds up rows [begin, end) by element of a row.
template <typename F>
inline void sum_rows(const Rows& rows, std::int64_t begin, std::int64_t end, float* sums, const F& f) {
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t first = row * rows.width, length = rows.length(row);
    for (std::int64_t i = 0; i < length; ++i) sums[i] += f(first + i, i);
  }
}

/// Moments of the channels over the points of some blocks, put together block by block (Chan et al.).
struct RunningMoments {
  explicit RunningMoments(std::int64_t channels)
      : mean(static_cast<std::size_t>(channels), 0.0), m2(static_cast<std::size_t>(channels), 0.0) {}

  void add(double more, const double* other_mean, const double* other_m2) {
    if (more == 0) return;
    const double total = count + more, share = more / total, weight = count * share;
    for (std::size_t c = 0; c < mean.size(); ++c) {
      const double delta = other_mean[c] - mean[c];
      mean[c] += delta * share;
      m2[c] += other_m2[c] + delta * delta * weight;
    }
    count = total;
  }

  double count = 0;
  std::vector<double> mean, m2;
};

/// Moments of the rows [begin, end) of one sample: in each block of them first the mean, then the deviations.
template <typename T>
RunningMoments moments_of_rows(const Rows& rows, const T* x, std::int64_t begin, std::int64_t end) {
  RunningMoments all(rows.channels);
  const auto channels = static_cast<std::size_t>(rows.channels);
  const std::int64_t step = std::max<std::int64_t>(1, kBlockElements / std::max<std::int64_t>(rows.width, 1));
  std::vector<float> sums(static_cast<std::size_t>(rows.width)), centre(sums);
  std::vector<double> mean(channels), m2(channels);
  for (std::int64_t first = begin; first < end; first += step) {
    const std::int64_t last = std::min(end, first + step);
    const auto count = static_cast<double>(std::min(rows.points, last * rows.fold) - first * rows.fold);
    const auto fold = [&](std::vector<double>& per_channel) {
      std::ranges::fill(per_channel, 0.0);
      for (std::size_t i = 0; i < sums.size(); ++i) per_channel[i % channels] += static_cast<double>(sums[i]);
    };
    std::ranges::fill(sums, 0.0F);
    vectorized([&, total = sums.data()] {
      sum_rows(rows, first, last, total,
               [x](std::int64_t at, std::int64_t) { return static_cast<float>(x[at]); });
    });
    fold(mean);
    for (std::size_t i = 0; i < centre.size(); ++i)
      centre[i] = static_cast<float>(mean[i % channels] / count);
    std::ranges::fill(sums, 0.0F);
    vectorized([&, total = sums.data(), around = centre.data()] {
      sum_rows(rows, first, last, total, [x, around](std::int64_t at, std::int64_t i) {
        const float deviation = static_cast<float>(x[at]) - around[i];
        return deviation * deviation;
      });
    });
    fold(m2);
    for (std::size_t c = 0; c < channels; ++c) mean[c] = static_cast<double>(centre[c]);
    all.add(count, mean.data(), m2.data());
  }
  return all;
}

/// y[i] = f(element, i in the row), for all rows of all samples; `prepare(sample)` gives f.
template <typename T, typename F>
void map_rows(Context& context, Array& y, const F& prepare) {
  const Rows rows(y.shape()[1], y.shape()[2]);
  if (y.count() == 0) return;
  for (std::int64_t sample = 0; sample < y.shape()[0]; ++sample) {
    const std::int64_t offset = sample * rows.points * rows.channels;
    const auto f = prepare(rows, sample);
    T* const to = y.data<T>() + offset;
    for_ranges(threads_for(context, rows.count(), rows.width), rows.count(), 1,
               [&](std::int64_t begin, std::int64_t end, int) {
                 vectorized([&, begin, end, to] {
                   for (std::int64_t row = begin; row < end; ++row) {
                     const std::int64_t first = row * rows.width, length = rows.length(row);
                     const auto of_row = f(offset + first);
#pragma GCC ivdep  // no array overlaps another
                     for (std::int64_t i = 0; i < length; ++i) to[first + i] = rounded<T>(of_row(i));
                   }
                 });
               });
  }
}

/// A map's numbers for the elements of a row.
struct RowNumbers {
  const float *centre, *factor, *shift;

  float deviation(float x, std::int64_t i) const { return x - centre[i]; }
  /// What the activation gets.
  float linear(float deviation, std::int64_t i) const { return deviation * factor[i] + shift[i]; }
  /// The gradient of that, of the result's.
  template <Activation activation>
  float slope(float dy, float deviation, std::int64_t i) const {
    if constexpr (activation == Activation::kNone) return dy;
    return dy * activation_derivative<activation>(linear(deviation, i));
  }
};

/// The map of a sample, over and over for the elements of a row.
class RowMap {
 public:
  RowMap(const Rows& rows, const ChannelMap& map, std::int64_t sample)
      : centre_(rows.repeated(map.centre.data<float>() + sample * rows.channels)),
        factor_(rows.repeated(map.factor.data<float>() + sample * rows.channels)),
        shift_(map.shift.defined() ? rows.repeated(map.shift.data<float>())
                                   : std::vector<float>(static_cast<std::size_t>(rows.width), 0.0F)) {}
  RowNumbers numbers() const { return {centre_.data(), factor_.data(), shift_.data()}; }

 private:
  std::vector<float> centre_, factor_, shift_;
};

class ChannelStatistics : public ChannelStatisticsKernels {
 public:
  /// Threads take ranges of rows; their moments are put together in the order of the threads.
  void moments(Context& context, const Array& x, Moments& moments) const override {
    const Rows rows(x.shape()[1], x.shape()[2]);
    visit_fast(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for (std::int64_t sample = 0; sample < x.shape()[0] && rows.channels > 0; ++sample) {
        const int threads = std::max(1, threads_for(context, rows.count(), rows.width));
        std::vector<RunningMoments> parts(static_cast<std::size_t>(threads), RunningMoments(rows.channels));
        const T* const from = x.data<T>() + sample * rows.points * rows.channels;
        for_ranges(threads, rows.count(), 1, [&](std::int64_t begin, std::int64_t end, int thread) {
          parts[static_cast<std::size_t>(thread)] = moments_of_rows(rows, from, begin, end);
        });
        for (std::size_t thread = 1; thread < parts.size(); ++thread) {
          parts[0].add(parts[thread].count, parts[thread].mean.data(), parts[thread].m2.data());
        }
        const auto put = [&](const std::vector<double>& numbers, Array& to) {
          std::ranges::transform(numbers, to.data<float>() + sample * rows.channels,
                                 [](double number) { return static_cast<float>(number); });
        };
        put(parts[0].mean, moments.mean);
        put(parts[0].m2, moments.m2);
      }
    });
  }

  void apply(Context& context, const Array& x, const ChannelMap& map, Array& y) const override {
    visit_fast(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      with_activation(map.activation, [&](auto known) {
        constexpr Activation kActivation = known();
        map_rows<T>(context, y, [&](const Rows& rows, std::int64_t sample) {
          return [xs = x.data<T>(), all = RowMap(rows, map, sample)](std::int64_t first) {
            return [from = xs + first, at = all.numbers()](std::int64_t i) {
              return activated<kActivation>(at.linear(at.deviation(static_cast<float>(from[i]), i), i));
            };
          };
        });
      });
    });
  }

  void gradient_sums(Context& context, const Array& dy, const Array& x, const ChannelMap& map,
                     Array& sums) const override {
    const Rows rows(x.shape()[1], x.shape()[2]);
    const std::int64_t numbers = x.shape()[0] * rows.channels;
    visit_fast(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for (std::int64_t sample = 0; sample < x.shape()[0] && rows.channels > 0; ++sample) {
        const std::int64_t offset = sample * rows.points * rows.channels;
        const int threads = std::max(1, threads_for(context, rows.count(), rows.width));
        const RowMap all(rows, map, sample);
        std::vector<double> totals(static_cast<std::size_t>(2 * rows.channels * threads), 0.0);
        with_activation(map.activation, [&](auto known) {
          constexpr Activation kActivation = known();
          for_ranges(threads, rows.count(), 1, [&](std::int64_t begin, std::int64_t end, int thread) {
            add_gradient_sums<kActivation>(rows, dy.data<T>() + offset, x.data<T>() + offset, all.numbers(),
                                           begin, end, totals.data() + thread * 2 * rows.channels);
          });
        });
        for (std::int64_t i = 0; i < 2 * rows.channels; ++i) {
          double total = 0;
          for (int thread = 0; thread < threads; ++thread) {
            total += totals[static_cast<std::size_t>(thread * 2 * rows.channels + i)];
          }
          sums.data<float>()[i / rows.channels * numbers + sample * rows.channels + i % rows.channels] =
              static_cast<float>(total);
        }
      }
    });
  }

  void gradient(Context& context, const Array& dy, const Array& x, const ChannelMap& map, const Array& b,
                const Array& c, Array& dx) const override {
    visit_fast(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      with_activation(map.activation, [&](auto known) {
        constexpr Activation kActivation = known();
        map_rows<T>(context, dx, [&](const Rows& rows, std::int64_t sample) {
          const std::int64_t at_sample = sample * rows.channels;
          return [xs = x.data<T>(), slopes = dy.data<T>(), all = RowMap(rows, map, sample),
                  bs = rows.repeated(b.data<float>() + at_sample),
                  cs = rows.repeated(c.data<float>() + at_sample)](std::int64_t first) {
            return [from = xs + first, slope = slopes + first, at = all.numbers(), g = bs.data(),
                    s = cs.data()](std::int64_t i) {
              const float deviation = at.deviation(static_cast<float>(from[i]), i);
              return at.factor[i] *
                         at.template slope<kActivation>(static_cast<float>(slope[i]), deviation, i) +
                     g[i] * deviation + s[i];
            };
          };
        });
      });
    });
  }

 private:
  /// Σ dz, then Σ dz·(x − centre) of rows [begin, end): in float32 within a block, in float64 over blocks.
  template <Activation activation, typename T>
  static void add_gradient_sums(const Rows& rows, const T* dy, const T* x, const RowNumbers& at,
                                std::int64_t begin, std::int64_t end, double* totals) {
    const std::int64_t step = std::max<std::int64_t>(1, kBlockElements / rows.width);
    std::vector<float> sums(static_cast<std::size_t>(2 * rows.width));
    for (std::int64_t first = begin; first < end; first += step) {
      std::ranges::fill(sums, 0.0F);
      const std::int64_t last = std::min(end, first + step);
      vectorized([&, plain = sums.data(), product = sums.data() + rows.width] {
        for (std::int64_t row = first; row < last; ++row) {
          const T *const slopes = dy + row * rows.width, *const xs = x + row * rows.width;
          const std::int64_t length = rows.length(row);
#pragma GCC ivdep  // no array overlaps another
          for (std::int64_t i = 0; i < length; ++i) {
            const float deviation = at.deviation(static_cast<float>(xs[i]), i),
                        slope = at.slope<activation>(static_cast<float>(slopes[i]), deviation, i);
            plain[i] += slope;
            product[i] += slope * deviation;
          }
        }
      });
      for (std::int64_t i = 0; i < 2 * rows.width; ++i) {
        totals[i / rows.width * rows.channels + i % rows.width % rows.channels] +=
            static_cast<double>(sums[static_cast<std::size_t>(i)]);
      }
    }
  }
};

}  // namespace

template <>
const ChannelStatisticsKernels& kernels() {
  static const ChannelStatistics instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cpu
