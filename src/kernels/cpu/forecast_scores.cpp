#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "array/parallel.h"
#include "array/raw_memory.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/types.h"
#include "kernels/cpu/vectorize.h"
#include "kernels/front/forecast_scores_kernels.h"

namespace jigsaw::inline kernels::cpu {

namespace {

/// Numbers of the channels of a row, as if no function were undone; those of which one is, apart.
struct RowScales {
  RowScales(const Rows& rows, std::span<const StateChannel> channels) {
    const auto each = [&](const auto& number) {
      std::vector<double> numbers;
      for (const StateChannel& channel : channels) numbers.push_back(number(channel));
      return rows.repeated(numbers.data());
    };
    increment = each([](const StateChannel& channel) { return channel.increment ? 1.0 : 0.0; });
    mean = each([](const StateChannel& channel) { return channel.mean; });
    deviation = each([](const StateChannel& channel) { return channel.deviation; });
    low = each([](const StateChannel& channel) { return channel.low; });
    high = each([](const StateChannel& channel) { return channel.high; });
    for (std::size_t c = 0; c < channels.size(); ++c) {
      if (channels[c].function != ValueFunction::kNone) others.push_back(c);
    }
  }

  std::vector<double> increment, mean, deviation, low, high;
  std::vector<std::size_t> others;  ///< channels with a function
};

template <typename T>
inline void states_of_row(const RowScales& scales, std::int64_t length, const T* values, const double* origin,
                          double* states) {
  const double *const increment = scales.increment.data(), *const mean = scales.mean.data(),
                      *const deviation = scales.deviation.data(), *const low = scales.low.data(),
                      *const high = scales.high.data();
#pragma GCC ivdep  // no array overlaps another
  for (std::int64_t i = 0; i < length; ++i) {
    const double base = increment[i] != 0 ? origin[i] : mean[i];
    const double state = base + deviation[i] * static_cast<double>(static_cast<float>(values[i]));
    const double above = state < low[i] ? low[i] : state;
    states[i] = above > high[i] ? high[i] : above;
  }
}

/// Sums of rows by element of a row, [kScoreSums][width]: each is a vector's own.
class RowSums {
 public:
  RowSums(const Rows& rows, double* sums) : rows_(rows), sums_(sums) {}

  /// Adds a row of which no element is beyond the sample.
  /// @param weights  of its elements.
  template <bool kReference, bool kClimate>
  void add(std::int64_t length, const double* weights, const double* forecast, const double* truth,
           const double* reference, const float* climate) const {
    double *const weight_sum = of(ScoreSum::kWeight), *const squares = of(ScoreSum::kSquares),
                  *const absolute = of(ScoreSum::kAbsolute), *const errors = of(ScoreSum::kErrors),
                  *const reference_weight = of(ScoreSum::kReferenceWeight),
                  *const reference_squares = of(ScoreSum::kReferenceSquares),
                  *const reference_absolute = of(ScoreSum::kReferenceAbsolute),
                  *const product = of(ScoreSum::kProduct), *const of_forecast = of(ScoreSum::kForecast),
                  *const of_truth = of(ScoreSum::kTruth), *const truths = of(ScoreSum::kTruthValues),
                  *const climate_weight = of(ScoreSum::kClimateWeight);
#pragma GCC ivdep  // no array overlaps another
    for (std::int64_t i = 0; i < length; ++i) {
      const bool counts = weights[i] != 0 && truth[i] == truth[i];
      const double weight = counts ? weights[i] : 0.0, error = counts ? forecast[i] - truth[i] : 0.0;
      weight_sum[i] += weight;
      squares[i] += weight * error * error;
      absolute[i] += weight * std::abs(error);
      errors[i] += weight * error;
      truths[i] += counts ? weight * truth[i] : 0.0;
      if constexpr (kReference) {
        const double off = reference[i] - truth[i];
        const bool there = counts && off == off;
        reference_weight[i] += there ? weight : 0.0;
        reference_squares[i] += there ? weight * off * off : 0.0;
        reference_absolute[i] += there ? weight * std::abs(off) : 0.0;
      }
      if constexpr (kClimate) {
        const auto mean = static_cast<double>(climate[i]);
        const bool known = counts && mean == mean;
        const double f = known ? forecast[i] - mean : 0.0, o = known ? truth[i] - mean : 0.0;
        climate_weight[i] += known ? weight : 0.0;
        product[i] += weight * f * o;
        of_forecast[i] += weight * f * f;
        of_truth[i] += weight * o * o;
      }
    }
  }

 private:
  double* of(ScoreSum kind) const {
    return sums_ + static_cast<std::int64_t>(kind) * rows_.width;
  }
  const Rows& rows_;
  double* sums_;
};

/// The weights of a row's elements. @return  whether any is not 0.
bool spread_weights(const Rows& rows, const double* weights, std::int64_t row, std::vector<double>& spread) {
  const std::int64_t first = row * rows.fold, points = std::min(rows.fold, rows.points - first);
  bool any = false;
  for (std::int64_t point = 0; point < points; ++point) {
    const double weight = weights[first + point];
    any = any || weight != 0;
    std::fill_n(spread.begin() + point * rows.channels, rows.channels, weight);
  }
  return any;
}

/// Runs of rows whose sums are formed apart, then added in order; how many depends on the rows alone.
std::int64_t slabs_of(const Rows& rows) {
  constexpr std::int64_t kSlab = 256, kMost = 64;
  return std::clamp<std::int64_t>((rows.count() + kSlab - 1) / kSlab, 1, kMost);
}

/// Ranks of the truth in a row of a sample: of each element how many members lie below, NaN where one is
/// NaN, and how many are equal.
struct RowRanks {
  explicit RowRanks(const Rows& rows)
      : below(static_cast<std::size_t>(rows.width)), equal(static_cast<std::size_t>(rows.width)) {}

  /// @param forecasts  of the first member; each is `stride` elements behind the one before.
  void find(std::int64_t length, const double* forecasts, std::int64_t stride, std::int64_t members,
            const double* truth) {
    std::ranges::fill(below, 0.0);
    std::ranges::fill(equal, 0.0);
    double *const lower = below.data(), *const same = equal.data();
    for (std::int64_t j = 0; j < members; ++j, forecasts += stride) {
#pragma GCC ivdep  // no array overlaps another
      for (std::int64_t i = 0; i < length; ++i) {
        const double state = forecasts[i];
        lower[i] += state == state ? (state < truth[i] ? 1.0 : 0.0) : state;
        same[i] += state == truth[i] ? 1.0 : 0.0;
      }
    }
  }
  /// Adds an element's weight to the ranks from 0 to `members`, each `stride` elements behind the one before.
  void add(std::int64_t i, double weight, std::int64_t members, double* sums, std::int64_t stride) const {
    const double lower = below[static_cast<std::size_t>(i)], same = equal[static_cast<std::size_t>(i)];
    const bool known = lower == lower;
    const std::int64_t first = known ? static_cast<std::int64_t>(lower) : 0,
                       last = known ? first + static_cast<std::int64_t>(same) : members;
    const double part = known ? weight / (same + 1) : lower;
    for (std::int64_t k = first; k <= last; ++k) sums[k * stride] += part;
  }

  std::vector<double> below, equal;
};

/// What members and truth are with regard to thresholds of a row's elements: 2 · (members + 1) kinds as
/// exceedance_sums() has them, NaN where a member is NaN, and below 0 where nothing counts.
struct RowKinds {
  explicit RowKinds(const Rows& rows) : kinds(static_cast<std::size_t>(rows.width)) {}

  /// @param forecasts  of the first member; each is `stride` elements behind the one before.
  void find(std::int64_t length, const double* forecasts, std::int64_t stride, std::int64_t members,
            const double* truth, const double* thresholds) {
    double* const kind = kinds.data();
    const auto behind = static_cast<double>(members + 1);
#pragma GCC ivdep  // no array overlaps another
    for (std::int64_t i = 0; i < length; ++i) kind[i] = truth[i] >= thresholds[i] ? 0.0 : behind;
    for (std::int64_t j = 0; j < members; ++j, forecasts += stride) {
#pragma GCC ivdep  // no array overlaps another
      for (std::int64_t i = 0; i < length; ++i) {
        const double state = forecasts[i];
        kind[i] += state == state ? (state >= thresholds[i] ? 1.0 : 0.0) : state;
      }
    }
#pragma GCC ivdep  // no array overlaps another
    for (std::int64_t i = 0; i < length; ++i) {
      const bool counts = truth[i] == truth[i] && thresholds[i] == thresholds[i];
      kind[i] = counts ? kind[i] : -1.0;
    }
  }
  /// Adds an element's weight to its kind, of so many, each `stride` elements behind the one before.
  void add(std::int64_t i, double weight, std::int64_t count, double* sums, std::int64_t stride) const {
    const double kind = kinds[static_cast<std::size_t>(i)];
    if (kind == kind) {
      sums[static_cast<std::int64_t>(kind) * stride] += weight;
    } else {
      for (std::int64_t k = 0; k < count; ++k) sums[k * stride] += kind;
    }
  }

  std::vector<double> kinds;
};

/// Means over members of `length` elements, and the mean squares of what members are apart from them.
/// @param forecasts  of the first member; each is `stride` elements behind the one before.
inline void find_members(std::int64_t length, const double* forecasts, std::int64_t stride,
                         std::int64_t members, double* means, double* squares) {
  const double share = 1 / static_cast<double>(members);
  std::fill_n(means, length, 0.0);
  std::fill_n(squares, length, 0.0);
  for (const double* of = forecasts; of != forecasts + members * stride; of += stride) {
#pragma GCC ivdep  // no array overlaps another
    for (std::int64_t i = 0; i < length; ++i) means[i] += of[i] * share;
  }
  for (const double* of = forecasts; of != forecasts + members * stride; of += stride) {
#pragma GCC ivdep  // no array overlaps another
    for (std::int64_t i = 0; i < length; ++i) squares[i] += (of[i] - means[i]) * (of[i] - means[i]) * share;
  }
}

/// Adds one time to moments from element `first` on. @param means, squares  over members, of these elements.
inline void add_time(std::int64_t length, const double* means, const double* squares, const double* truth,
                     std::int64_t first, TimeMoments& moments) {
  double *const counts = moments.count.data<double>() + first,
                *const forecast_mean = moments.forecast_mean.data<double>() + first,
                *const forecast_squares = moments.forecast_squares.data<double>() + first,
                *const truth_mean = moments.truth_mean.data<double>() + first,
                *const truth_squares = moments.truth_squares.data<double>() + first;
#pragma GCC ivdep  // no array overlaps another
  for (std::int64_t i = 0; i < length; ++i) {
    const bool there = truth[i] == truth[i];
    const double count = counts[i] + 1, share = there ? 1 / count : 0.0, rest = (count - 1) * share;
    const double off = there ? means[i] - forecast_mean[i] : 0.0,
                 apart = there ? truth[i] - truth_mean[i] : 0.0;
    counts[i] = there ? count : counts[i];
    forecast_mean[i] += off * share;
    forecast_squares[i] += (there ? squares[i] : 0.0) + off * off * rest;
    truth_mean[i] += apart * share;
    truth_squares[i] += apart * apart * rest;
  }
}

/// A sample's fields.
struct SampleFields {
  SampleFields(const ScoredStates& states, std::int64_t first)
      : forecast(states.forecast.data<double>() + first),
        truth(states.truth.data<double>() + first),
        reference(states.reference.defined() ? states.reference.data<double>() + first : nullptr),
        climate(states.climatology.defined() ? states.climatology.data<float>() + first : nullptr) {}
  const double *forecast, *truth, *reference;
  const float* climate;
};

class ForecastScores : public ForecastScoresKernels {
 public:
  void states(Context& context, const Array& values, const Array& origin,
              std::span<const StateChannel> channels, Array& states) const override {
    const auto width = std::ssize(channels);
    const Rows rows(states.count() / width, width);
    const RowScales scales(rows, channels);
    visit_fast(values.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T* const from = values.data<T>();
      const double* const starts = origin.data<double>();
      double* const to = states.data<double>();
      for_ranges(threads_for(context, rows.count(), rows.width), rows.count(), 1,
                 [&](std::int64_t begin, std::int64_t end, int) {
                   vectorized([&, begin, end] {
                     for (std::int64_t row = begin; row < end; ++row) {
                       const std::int64_t first = row * rows.width;
                       states_of_row(scales, rows.length(row), from + first, starts + first, to + first);
                     }
                   });
                   const std::int64_t last = std::min(states.count(), end * rows.width);
                   for (const std::size_t c : scales.others) {
                     for (std::int64_t i = begin * rows.width + static_cast<std::int64_t>(c); i < last;
                          i += width)
                       to[i] = channels[c].state(static_cast<double>(static_cast<float>(from[i])), starts[i]);
                   }
                 });
    });
  }

  void hide_missing(Context& context, const Array& origin, Array& states, Array& not_finite) const override {
    const std::int64_t width = not_finite.count();
    std::ranges::fill(not_finite.span<double>(), 0.0);
    if (states.count() == 0) return;
    const Rows rows(states.count() / width, width);
    const int threads = threads_for(context, rows.count(), rows.width);
    std::vector<double> counts(static_cast<std::size_t>(threads * rows.width), 0.0);
    for_ranges(threads, rows.count(), 1, [&](std::int64_t begin, std::int64_t end, int thread) {
      vectorized([&, begin, end, count = counts.data() + thread * rows.width] {
        for (std::int64_t row = begin; row < end; ++row) {
          const double* const start = origin.data<double>() + row * rows.width;
          double* const state = states.data<double>() + row * rows.width;
          const std::int64_t length = rows.length(row);
#pragma GCC ivdep  // no array overlaps another
          for (std::int64_t i = 0; i < length; ++i) {
            const bool there = start[i] == start[i], finite = state[i] - state[i] == 0;
            count[i] += there && !finite ? 1.0 : 0.0;
            state[i] = there ? state[i] : start[i];
          }
        }
      });
    });
    for (std::size_t i = 0; i < counts.size(); ++i)
      not_finite.data<double>()[static_cast<std::int64_t>(i) % rows.width % width] += counts[i];
  }

  /// Of each slab and region the sums by element of a row; then over slabs and the points of a row, in order.
  void sums(Context& context, const ScoredStates& states, const Array& weights, Array& sums) const override {
    const std::int64_t samples = sums.shape()[1], regions = sums.shape()[2], channels = sums.shape()[3];
    if (sums.count() == 0) return;
    const Rows rows(weights.shape()[1], channels);
    const std::int64_t slabs = slabs_of(rows), each = kScoreSums * rows.width;
    const int threads = threads_for(context, slabs, rows.count() / slabs * rows.width * regions);
    std::vector<double> partial(static_cast<std::size_t>(slabs * regions * each));
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      std::ranges::fill(partial, 0.0);
      const SampleFields fields(states, sample * rows.points * channels);
      for_ranges(threads, slabs, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t slab = begin; slab < end; ++slab)
          add_slab(rows, {rows.count() * slab / slabs, rows.count() * (slab + 1) / slabs}, fields, weights,
                   partial.data() + slab * regions * each);
      });
      for (std::int64_t number = 0; number < kScoreSums * regions * channels; ++number) {
        const std::int64_t channel = number % channels, region = number / channels % regions,
                           kind = number / channels / regions;
        const double* part = partial.data() + region * each + kind * rows.width;
        double total = 0;
        for (std::int64_t slab = 0; slab < slabs; ++slab, part += regions * each) {
          for (std::int64_t i = channel; i < rows.width; i += channels) total += part[i];
        }
        sums.data<double>()[((kind * samples + sample) * regions + region) * channels + channel] = total;
      }
    }
  }

  void truth_ranks(Context& context, const Array& forecasts, const Array& truth, const Array& weights,
                   Array& sums) const override {
    const std::int64_t members = sums.shape()[0] - 1;
    sum_kinds(context, members + 1, forecasts, members, truth, weights, sums,
              [&](const Rows& rows, const auto& range, const double* first, const double* wanted,
                  double* to) { add_ranks(rows, range, first, wanted, members, weights, to); });
  }

  void exceedances(Context& context, const Array& forecasts, const Array& truth,
                   std::span<const double> thresholds, const Array& weights, Array& sums) const override {
    const std::int64_t channels = sums.shape()[3], count = std::ssize(thresholds) / channels,
                       members = sums.shape()[0] / (2 * count) - 1;
    sum_kinds(
        context, members * count, forecasts, members, truth, weights, sums,
        [&](const Rows& rows, const auto& range, const double* first, const double* wanted, double* to) {
          add_exceedances(rows, range, first, wanted, members, thresholds, weights, to);
        });
  }

  void moments(Context& context, const Array& forecasts, const Array& truth,
               TimeMoments& moments) const override {
    constexpr std::int64_t kBlock = 1024;
    const std::int64_t each = truth.count(), members = forecasts.shape()[0];
    for_ranges(
        threads_for(context, each, members), each, kBlock, [&](std::int64_t begin, std::int64_t end, int) {
          std::array<double, kBlock> means{}, squares{};
          for (; begin < end; begin += kBlock) {
            const std::int64_t length = std::min(kBlock, end - begin);
            vectorized([&, begin] {
              find_members(length, forecasts.data<double>() + begin, each, members, means.data(),
                           squares.data());
              add_time(length, means.data(), squares.data(), truth.data<double>() + begin, begin, moments);
            });
          }
        });
  }

 private:
  /// Of each slab the sums of all kinds, regions and channels; then over slabs, in order.
  /// @param work  of an element of a row.
  /// @param add  adds rows [range[0], range[1]) of a sample to sums [kinds][regions][channels], from the
  ///             sample's first forecast and its truth.
  template <typename Add>
  static void sum_kinds(Context& context, std::int64_t work, const Array& forecasts, std::int64_t members,
                        const Array& truth, const Array& weights, Array& sums, const Add& add) {
    const std::int64_t kinds = sums.shape()[0], samples = sums.shape()[1],
                       each = sums.shape()[2] * sums.shape()[3];
    if (sums.count() == 0) return;
    constexpr std::int64_t kMostSums = std::int64_t{1} << 22;
    const Rows rows(weights.shape()[1], sums.shape()[3]);
    const std::int64_t field = rows.points * rows.channels,
                       slabs = std::clamp<std::int64_t>(kMostSums / (kinds * each), 1, slabs_of(rows));
    const int threads = threads_for(context, slabs, rows.count() / slabs * rows.width * work);
    std::vector<double> partial(static_cast<std::size_t>(slabs * kinds * each));
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      std::ranges::fill(partial, 0.0);
      const double* const first = forecasts.data<double>() + sample * members * field;
      const double* const wanted = truth.data<double>() + sample * field;
      for_ranges(threads, slabs, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t slab = begin; slab < end; ++slab)
          add(rows, std::array{rows.count() * slab / slabs, rows.count() * (slab + 1) / slabs}, first, wanted,
              partial.data() + slab * kinds * each);
      });
      for (std::int64_t i = 0; i < kinds * each; ++i) {
        double total = 0;
        for (std::int64_t slab = 0; slab < slabs; ++slab)
          total += partial[static_cast<std::size_t>(slab * kinds * each + i)];
        sums.data<double>()[(i / each * samples + sample) * each + i % each] = total;
      }
    }
  }
  /// Rows [range[0], range[1]) into the sums [members + 1][regions][channels].
  static void add_ranks(const Rows& rows, const std::array<std::int64_t, 2>& range, const double* forecasts,
                        const double* truth, std::int64_t members, const Array& weights, double* sums) {
    const std::int64_t regions = weights.shape()[0], channels = rows.channels;
    RowRanks ranks(rows);
    for (std::int64_t row = range[0]; row < range[1]; ++row) {
      const std::int64_t first = row * rows.width, length = rows.length(row);
      vectorized(
          [&] { ranks.find(length, forecasts + first, rows.points * channels, members, truth + first); });
      for (std::int64_t i = 0; i < length; ++i) {
        if (truth[first + i] != truth[first + i]) continue;
        for (std::int64_t r = 0; r < regions; ++r) {
          const double weight = weights.data<double>()[r * rows.points + row * rows.fold + i / channels];
          if (weight != 0)
            ranks.add(i, weight, members, sums + r * channels + i % channels, regions * channels);
        }
      }
    }
  }
  /// Rows [range[0], range[1]) into the sums [thresholds][2 · (members + 1)][regions][channels].
  static void add_exceedances(const Rows& rows, const std::array<std::int64_t, 2>& range,
                              const double* forecasts, const double* truth, std::int64_t members,
                              std::span<const double> thresholds, const Array& weights, double* sums) {
    const std::int64_t regions = weights.shape()[0], channels = rows.channels, kinds = 2 * (members + 1);
    RowKinds found(rows);
    for (std::int64_t t = 0; t < std::ssize(thresholds) / channels; ++t, sums += kinds * regions * channels) {
      const std::vector<double> of_row = rows.repeated(thresholds.data() + t * channels);
      for (std::int64_t row = range[0]; row < range[1]; ++row) {
        const std::int64_t first = row * rows.width, length = rows.length(row);
        vectorized([&] {
          found.find(length, forecasts + first, rows.points * channels, members, truth + first,
                     of_row.data());
        });
        for (std::int64_t i = 0; i < length; ++i) {
          if (found.kinds[static_cast<std::size_t>(i)] < 0) continue;
          for (std::int64_t r = 0; r < regions; ++r) {
            const double weight = weights.data<double>()[r * rows.points + row * rows.fold + i / channels];
            if (weight != 0)
              found.add(i, weight, kinds, sums + r * channels + i % channels, regions * channels);
          }
        }
      }
    }
  }
  /// Rows [range[0], range[1]) into the sums [regions][kScoreSums][width].
  static void add_slab(const Rows& rows, const std::array<std::int64_t, 2>& range, const SampleFields& fields,
                       const Array& weights, double* sums) {
    if (fields.reference != nullptr && fields.climate != nullptr) {
      add_rows<true, true>(rows, range, fields, weights, sums);
    } else if (fields.reference != nullptr) {
      add_rows<true, false>(rows, range, fields, weights, sums);
    } else if (fields.climate != nullptr) {
      add_rows<false, true>(rows, range, fields, weights, sums);
    } else {
      add_rows<false, false>(rows, range, fields, weights, sums);
    }
  }
  template <bool kReference, bool kClimate>
  static void add_rows(const Rows& rows, const std::array<std::int64_t, 2>& range, const SampleFields& fields,
                       const Array& weights, double* sums) {
    const std::int64_t regions = weights.shape()[0];
    std::vector<double> spread(static_cast<std::size_t>(rows.width));
    vectorized([&] {
      for (std::int64_t row = range[0]; row < range[1]; ++row) {
        const std::int64_t first = row * rows.width;
        for (std::int64_t region = 0; region < regions; ++region) {
          if (!spread_weights(rows, weights.data<double>() + region * rows.points, row, spread)) continue;
          RowSums(rows, sums + region * kScoreSums * rows.width)
              .template add<kReference, kClimate>(rows.length(row), spread.data(), fields.forecast + first,
                                                  fields.truth + first,
                                                  kReference ? fields.reference + first : nullptr,
                                                  kClimate ? fields.climate + first : nullptr);
        }
      }
    });
  }
};

}  // namespace

template <>
const ForecastScoresKernels& kernels() {
  static const ForecastScores instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cpu
