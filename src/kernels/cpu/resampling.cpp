#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "array/parallel.h"
#include "array/raw_memory.h"
#include "kernels/cpu/gathered_sums.h"
#include "kernels/cpu/types.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/cpu/vectorize.h"
#include "kernels/field_extents.h"
#include "kernels/front/resampling_kernels.h"

namespace jigsaw::inline kernels::cpu {

namespace {

/// A point of the other grid along one dim, and its weight.
struct Link {
  std::int64_t index;
  float weight;
};
using Links = std::vector<std::vector<Link>>;

/// Along each of three dims: what each target point reads, and who reads each source point. Weights are not
/// zero.
struct Geometry {
  Geometry(const Resampling& resampling, const Shape& from, const Shape& to) : source(from), target(to) {
    const int missing = 3 - resampling.target.extent.rank();
    for (int dim = 0; dim < 3; ++dim) {
      const auto d = static_cast<std::size_t>(dim);
      const std::vector<ResamplingTap> taps =
          dim < missing ? std::vector<ResamplingTap>(1) : resampling_taps(resampling, dim - missing);
      reads[d].resize(taps.size());
      readers[d].resize(static_cast<std::size_t>(source.space[d]));
      for (std::size_t point = 0; point < taps.size(); ++point) {
        const ResamplingTap& tap = taps[point];
        link(d, point, tap.low, tap.low == tap.high ? 1.0 : 1.0 - tap.share);
        if (tap.low != tap.high) link(d, point, tap.high, tap.share);
      }
    }
  }

  void link(std::size_t dim, std::size_t to, std::int64_t from, double weight) {
    if (weight == 0.0) return;
    reads[dim][to].push_back({from, static_cast<float>(weight)});
    readers[dim][static_cast<std::size_t>(from)].push_back(
        {static_cast<std::int64_t>(to), static_cast<float>(weight)});
  }

  FieldExtents source, target;
  std::array<Links, 3> reads, readers;
};

/// made[row] = Σ weights · given: for each row of points of `made`, those of `given` that `links` name along
/// the first two dims, and along the last one `last` of each of its points, which moves sums to `made`
/// points. With `transposed`, `last` is listed by points of `given`. Sums are formed in type `Sum`.
template <typename Sum, typename T>
void weighted_rows(Context& context, const FieldExtents& made, const FieldExtents& given, const Links& first,
                   const Links& second, const Links& last, bool transposed, const T* from, T* to) {
  const std::int64_t rows = made.samples * made.space[0] * made.space[1], channels = made.channels;
  const std::int64_t length = made.space[2] * channels;
  for_ranges(threads_for(context, rows, length), rows, 1, [&](std::int64_t begin, std::int64_t end, int) {
    std::vector<Sum> buffer(static_cast<std::size_t>(length));
    Sum* const sums = buffer.data();
    vectorized([&, begin, end] {
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t sample = row / (made.space[0] * made.space[1]);
        std::fill_n(sums, length, Sum{0});
        for (const Link& d : first[static_cast<std::size_t>(row / made.space[1] % made.space[0])])
          for (const Link& h : second[static_cast<std::size_t>(row % made.space[1])]) {
            const T* const points = from + given.point(sample, d.index, h.index, 0) * channels;
            for (std::size_t w = 0; w < last.size(); ++w)
              for (const Link& link : last[w]) {
                const auto listed = static_cast<std::int64_t>(w);
                const T* const x = points + (transposed ? listed : link.index) * channels;
                Sum* const y = sums + (transposed ? link.index : listed) * channels;
                const float weight = d.weight * h.weight * link.weight;
                for (std::int64_t c = 0; c < channels; ++c) y[c] += weight * static_cast<float>(x[c]);
              }
          }
        for (std::int64_t i = 0; i < length; ++i)
          to[row * length + i] = rounded<T>(static_cast<float>(sums[i]));
      }
    });
  });
}

/// The nearest points are copied as they are.
template <typename T>
void copied_points(Context& context, const Geometry& g, const T* from, T* to) {
  const FieldExtents& made = g.target;
  const std::int64_t rows = made.samples * made.space[0] * made.space[1], channels = made.channels;
  for_ranges(threads_for(context, rows, made.space[2] * channels), rows, 1,
             [&](std::int64_t begin, std::int64_t end, int) {
               for (std::int64_t row = begin; row < end; ++row) {
                 const Link& d = g.reads[0][static_cast<std::size_t>(row / made.space[1] % made.space[0])][0];
                 const Link& h = g.reads[1][static_cast<std::size_t>(row % made.space[1])][0];
                 const std::int64_t sample = row / (made.space[0] * made.space[1]);
                 T* y = to + row * made.space[2] * channels;
                 for (std::int64_t w = 0; w < made.space[2]; ++w, y += channels) {
                   const std::int64_t point = g.source.point(
                       sample, d.index, h.index, g.reads[2][static_cast<std::size_t>(w)][0].index);
                   std::memcpy(y, from + point * channels, static_cast<std::size_t>(channels) * sizeof(T));
                 }
               }
             });
}

class ResamplingRows : public ResamplingKernels {
 public:
  void forward(Context& context, const Resampling& resampling, const Array& x, Array& y) const override {
    const Geometry g(resampling, x.shape(), y.shape());
    visit_fast(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      if (is_nearest(resampling.interpolation)) {
        copied_points(context, g, x.data<T>(), y.data<T>());
      } else {
        weighted_rows<float>(context, g.target, g.source, g.reads[0], g.reads[1], g.reads[2], false,
                             x.data<T>(), y.data<T>());
      }
    });
  }

  void backward(Context& context, const Resampling& resampling, const Array& dy, Array& dx) const override {
    const Geometry g(resampling, dx.shape(), dy.shape());
    visit_fast(dy.dtype(), [&](auto zero) {
      using T = decltype(zero);
      visit_sums(g.readers, [&](auto sum) {
        weighted_rows<decltype(sum)>(context, g.source, g.target, g.readers[0], g.readers[1], g.reads[2],
                                     true, dy.data<T>(), dx.data<T>());
      });
    });
  }
};

}  // namespace

template <>
const ResamplingKernels& kernels() {
  static const ResamplingRows instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cpu
