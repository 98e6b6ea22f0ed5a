#include <algorithm>
#include <limits>
#include <vector>

#include "array/parallel.h"
#include "array/raw_memory.h"
#include "kernels/cpu/gathered_sums.h"
#include "kernels/cpu/types.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/cpu/vectorize.h"
#include "kernels/field_extents.h"
#include "kernels/front/pooling_kernels.h"

namespace jigsaw::inline kernels::cpu {

namespace {

/// Points [begin, end) of the window that are valid at one place, along one dim.
struct Taps {
  std::int64_t begin = 0, end = 0;
  std::int64_t count() const { return end - begin; }
};

/// A place, and the point of its window, that reads a grid point, along one dim.
struct Reader {
  std::int64_t place, tap;
};

/// The places of a pooling's window along each of three dims, and who reads each grid point.
struct Geometry {
  Geometry(const Pooling& pooling, const Shape& x_shape, const Shape& y_shape)
      : x(x_shape),
        y(y_shape),
        window(triple(pooling.window.extent, 1)),
        stride(triple(pooling.window.stride, 1)),
        dilation(triple(pooling.window.dilation, 1)),
        counted(pooling.count_padding ? pooling.window.extent.count() : 0) {
    const Triple begin = triple(pooling.valid.begin, 0), extent = triple(pooling.valid.extent, 1);
    for (std::size_t dim = 0; dim < 3; ++dim) {
      readers[dim].resize(static_cast<std::size_t>(x.space[dim]));
      for (std::int64_t place = 0; place < y.space[dim]; ++place) {
        Taps valid = {window[dim], window[dim]};
        for (std::int64_t tap = 0; tap < window[dim]; ++tap) {
          const std::int64_t point = place * stride[dim] + tap * dilation[dim];
          if (point < begin[dim] || point >= begin[dim] + extent[dim]) continue;
          if (valid.count() == 0) valid.begin = tap;
          valid.end = tap + 1;
          readers[dim][static_cast<std::size_t>(point)].push_back({place, tap});
        }
        if (valid.begin == window[dim]) valid = {};
        taps[dim].push_back(valid);
      }
    }
  }

  const Taps& at(std::size_t dim, std::int64_t place) const {
    return taps[dim][static_cast<std::size_t>(place)];
  }
  /// One over the number of points that an average divides by.
  float share(std::int64_t d, std::int64_t h, std::int64_t w) const {
    const std::int64_t count = counted > 0 ? counted : at(0, d).count() * at(1, h).count() * at(2, w).count();
    return 1.0F / static_cast<float>(std::max<std::int64_t>(count, 1));
  }

  FieldExtents x, y;
  Triple window, stride, dilation;
  std::int64_t counted;  ///< points that every average divides by; 0: the valid ones
  std::array<std::vector<Taps>, 3> taps;
  std::array<std::vector<std::vector<Reader>>, 3> readers;
};

/// A row of points of a field along its last spatial dim.
struct RowIndex {
  std::int64_t sample, d, h;
};

/// Calls f(row, buffer of a row's sums) on threads, vectorised; rows of `of`.
template <typename Sum, typename F>
void for_rows(Context& context, const FieldExtents& of, const F& f) {
  const std::int64_t rows = of.samples * of.space[0] * of.space[1], length = of.space[2] * of.channels;
  for_ranges(threads_for(context, rows, length), rows, 1, [&](std::int64_t begin, std::int64_t end, int) {
    std::vector<Sum> values(static_cast<std::size_t>(2 * std::max(length, of.channels)));
    vectorized([&, begin, end] {
      for (std::int64_t row = begin; row < end; ++row) {
        f(RowIndex{row / (of.space[0] * of.space[1]), row / of.space[1] % of.space[0], row % of.space[1]},
          values.data());
      }
    });
  });
}

/// Calls f(number of the window's point, first element of x there) for each valid point of a place.
template <typename F>
inline void for_points(const Geometry& g, const RowIndex& row, std::int64_t w, const F& f) {
  const Taps &td = g.at(0, row.d), &th = g.at(1, row.h), &tw = g.at(2, w);
  for (std::int64_t i = td.begin; i < td.end; ++i)
    for (std::int64_t j = th.begin; j < th.end; ++j)
      for (std::int64_t k = tw.begin; k < tw.end; ++k) {
        const std::int64_t point =
            g.x.point(row.sample, row.d * g.stride[0] + i * g.dilation[0],
                      row.h * g.stride[1] + j * g.dilation[1], w * g.stride[2] + k * g.dilation[2]);
        f((i * g.window[1] + j) * g.window[2] + k, point * g.x.channels);
      }
}

/// Calls f(number of the window's point, element of y, element in x's row, place) for each place that reads a
/// point of a row of x.
template <typename F>
inline void for_readers(const Geometry& g, const RowIndex& row, const F& f) {
  for (const Reader& d : g.readers[0][static_cast<std::size_t>(row.d)])
    for (const Reader& h : g.readers[1][static_cast<std::size_t>(row.h)])
      for (std::int64_t w = 0; w < g.y.space[2]; ++w) {
        const std::int64_t place = g.y.point(row.sample, d.place, h.place, w) * g.y.channels;
        for (std::int64_t k = g.at(2, w).begin; k < g.at(2, w).end; ++k) {
          f((d.tap * g.window[1] + h.tap) * g.window[2] + k, place,
            (w * g.stride[2] + k * g.dilation[2]) * g.x.channels, Triple{d.place, h.place, w});
        }
      }
}

template <typename Sum, typename T>
inline void store_row(const Sum* values, std::int64_t count, T* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = rounded<T>(static_cast<float>(values[i]));
}

template <typename T, typename W>
void max_forward_typed(Context& context, const Geometry& g, const T* x, W* winners, T* y) {
  const std::int64_t channels = g.y.channels;
  for_rows<float>(context, g.y, [&](const RowIndex& row, float* values) {
    float *const best = values, *const winner = values + channels;
    for (std::int64_t w = 0; w < g.y.space[2]; ++w) {
      std::fill_n(best, channels, -std::numeric_limits<float>::infinity());
      std::fill_n(winner, channels, 0.0F);
      bool first = true;
      for_points(g, row, w, [&](std::int64_t number, std::int64_t from) {
        const T* const xs = x + from;
        const auto me = static_cast<float>(number);
        for (std::int64_t c = 0; c < channels; ++c) {
          const auto value = static_cast<float>(xs[c]);
          const bool wins = first || value > best[c] || (value != value && best[c] == best[c]);
          best[c] = wins ? value : best[c];
          winner[c] = wins ? me : winner[c];
        }
        first = false;
      });
      const std::int64_t to = g.y.point(row.sample, row.d, row.h, w) * channels;
      store_row(best, channels, y + to);
      store_row(winner, channels, winners + to);
    }
  });
}

template <typename Sum, typename T, typename W>
void max_backward_typed(Context& context, const Geometry& g, const T* dy, const W* winners, T* dx) {
  const std::int64_t channels = g.x.channels, length = g.x.space[2] * channels;
  for_rows<Sum>(context, g.x, [&](const RowIndex& row, Sum* sums) {
    std::fill_n(sums, length, Sum{0});
    for_readers(g, row, [&](std::int64_t number, std::int64_t place, std::int64_t at, const Triple&) {
      const T* const slopes = dy + place;
      const W* const winner = winners + place;
      const auto me = static_cast<float>(number);
      Sum* const to = sums + at;
      for (std::int64_t c = 0; c < channels; ++c) {
        to[c] += static_cast<float>(winner[c]) == me ? static_cast<float>(slopes[c]) : 0.0F;
      }
    });
    store_row(sums, length, dx + g.x.point(row.sample, row.d, row.h, 0) * channels);
  });
}

/// A window may be a whole grid: sums in float32 are of a few points only, and go on into float64.
template <typename T>
void average_forward_typed(Context& context, const Geometry& g, const T* x, T* y) {
  constexpr int kPoints = 32;
  const std::int64_t channels = g.y.channels;
  for_rows<float>(context, g.y, [&](const RowIndex& row, float* sums) {
    std::vector<double> totals(static_cast<std::size_t>(channels));
    const auto flush = [&totals, sums] {
      for (std::size_t c = 0; c < totals.size(); ++c) totals[c] += static_cast<double>(sums[c]);
      std::fill_n(sums, totals.size(), 0.0F);
    };
    for (std::int64_t w = 0; w < g.y.space[2]; ++w) {
      std::fill_n(sums, channels, 0.0F);
      std::ranges::fill(totals, 0.0);
      int points = 0;
      for_points(g, row, w, [&](std::int64_t, std::int64_t from) {
        const T* const xs = x + from;
        for (std::int64_t c = 0; c < channels; ++c) sums[c] += static_cast<float>(xs[c]);
        if (++points % kPoints == 0) flush();
      });
      if (points >= kPoints) flush();
      const float share = g.share(row.d, row.h, w);
      T* const to = y + g.y.point(row.sample, row.d, row.h, w) * channels;
      for (std::int64_t c = 0; c < channels; ++c) {
        const auto sum =
            points >= kPoints ? static_cast<float>(totals[static_cast<std::size_t>(c)]) : sums[c];
        to[c] = rounded<T>(sum * share);
      }
    }
  });
}

template <typename Sum, typename T>
void average_backward_typed(Context& context, const Geometry& g, const T* dy, T* dx) {
  const std::int64_t channels = g.x.channels, length = g.x.space[2] * channels;
  for_rows<Sum>(context, g.x, [&](const RowIndex& row, Sum* sums) {
    std::fill_n(sums, length, Sum{0});
    for_readers(g, row, [&](std::int64_t, std::int64_t place, std::int64_t at, const Triple& index) {
      const float share = g.share(index[0], index[1], index[2]);
      const T* const slopes = dy + place;
      Sum* const to = sums + at;
      for (std::int64_t c = 0; c < channels; ++c) to[c] += static_cast<float>(slopes[c]) * share;
    });
    store_row(sums, length, dx + g.x.point(row.sample, row.d, row.h, 0) * channels);
  });
}

class PoolingRows : public PoolingKernels {
 public:
  void max_forward(Context& context, const Pooling& pooling, const Array& x, Array& winners,
                   Array& y) const override {
    const Geometry geometry(pooling, x.shape(), y.shape());
    visit_fast(x.dtype(), [&](auto zero) {
      visit_fast(winners.dtype(), [&](auto winner) {
        using T = decltype(zero);
        max_forward_typed(context, geometry, x.data<T>(), winners.data<decltype(winner)>(), y.data<T>());
      });
    });
  }

  void max_backward(Context& context, const Pooling& pooling, const Array& dy, const Array& winners,
                    Array& dx) const override {
    const Geometry geometry(pooling, dx.shape(), dy.shape());
    visit_fast(dy.dtype(), [&](auto zero) {
      visit_fast(winners.dtype(), [&](auto winner) {
        using T = decltype(zero);
        visit_sums(geometry.readers, [&](auto sum) {
          max_backward_typed<decltype(sum)>(context, geometry, dy.data<T>(), winners.data<decltype(winner)>(),
                                            dx.data<T>());
        });
      });
    });
  }

  void average_forward(Context& context, const Pooling& pooling, const Array& x, Array& y) const override {
    const Geometry geometry(pooling, x.shape(), y.shape());
    visit_fast(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      average_forward_typed(context, geometry, x.data<T>(), y.data<T>());
    });
  }

  void average_backward(Context& context, const Pooling& pooling, const Array& dy, Array& dx) const override {
    const Geometry geometry(pooling, dx.shape(), dy.shape());
    visit_fast(dy.dtype(), [&](auto zero) {
      using T = decltype(zero);
      visit_sums(geometry.readers, [&](auto sum) {
        average_backward_typed<decltype(sum)>(context, geometry, dy.data<T>(), dx.data<T>());
      });
    });
  }
};

}  // namespace

template <>
const PoolingKernels& kernels() {
  static const PoolingRows instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cpu
