#include "array/raw_memory.h"
#include "kernels/cuda/constants.h"
#include "kernels/cuda/field.cuh"
#include "kernels/front/resampling_kernels.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// Taps of the target's points along each dim, and for each point of the source which targets read it: those
/// from `begin` on and before `end` (some in between may not).
struct Reader {
  std::int64_t begin = 0, end = 0;
};
struct Taps {
  FieldPlaces source, target;
  const ResamplingTap* taps[3];
  const Reader* readers[3];

  /// What a target's point takes of a source's point along a dim.
  __device__ double share(int dim, std::int64_t target_at, std::int64_t source_at) const {
    const ResamplingTap& tap = taps[dim][target_at];
    return (tap.low == source_at ? 1.0 - tap.share : 0.0) + (tap.high == source_at ? tap.share : 0.0);
  }
};

template <typename T>
struct Forward {
  Taps all;
  const Element<T>* x;
  Element<T>* y;
  __device__ void operator()(std::int64_t i) const {
    using R = Accumulator<T>;
    std::int64_t place[3], point[3];
    const std::int64_t channel = i % all.target.channels,
                       sample = all.target.split(i / all.target.channels, place);
    R sum = 0;
    for (int ends = 0; ends < 8; ++ends) {
      double weight = 1;
      for (int dim = 0; dim < 3; ++dim) {
        const ResamplingTap& tap = all.taps[dim][place[dim]];
        const bool high = (ends >> (2 - dim) & 1) != 0;
        point[dim] = high ? tap.high : tap.low;
        weight *= high ? tap.share : 1.0 - tap.share;
      }
      if (weight == 0.0) continue;
      sum += static_cast<R>(weight) *
             load<R>(x[all.source.point(sample, point) * all.source.channels + channel]);
    }
    y[i] = stored<Element<T>>(sum);
  }
};

/// Each point of the source gathers from the targets that read it.
template <typename T>
struct Backward {
  Taps all;
  const Element<T>* dy;
  Element<T>* dx;
  __device__ void operator()(std::int64_t i) const {
    std::int64_t point[3], place[3];
    const std::int64_t channel = i % all.source.channels,
                       sample = all.source.split(i / all.source.channels, point);
    const Reader d = all.readers[0][point[0]], h = all.readers[1][point[1]], w = all.readers[2][point[2]];
    double sum = 0;  // one point may be read by a whole grid
    for (place[0] = d.begin; place[0] < d.end; ++place[0]) {
      const double outer = all.share(0, place[0], point[0]);
      for (place[1] = h.begin; place[1] < h.end; ++place[1]) {
        const double plane = outer * all.share(1, place[1], point[1]);
        for (place[2] = w.begin; place[2] < w.end; ++place[2]) {
          const double weight = plane * all.share(2, place[2], point[2]);
          if (weight == 0.0) continue;
          sum += weight * load<double>(dy[all.target.point(sample, place) * all.target.channels + channel]);
        }
      }
    }
    dx[i] = stored<Element<T>>(sum);
  }
};

/// Taps only rise along a dim, so that a point's readers lie one beside the other.
std::vector<Reader> readers_of(const std::vector<ResamplingTap>& taps, std::int64_t points) {
  std::vector<Reader> readers(static_cast<std::size_t>(points));
  for (std::size_t at = 0; at < taps.size(); ++at) {
    for (const std::int64_t point : {taps[at].low, taps[at].high}) {
      Reader& reader = readers[static_cast<std::size_t>(point)];
      if (reader.end == 0) reader.begin = static_cast<std::int64_t>(at);
      reader.end = static_cast<std::int64_t>(at) + 1;
    }
  }
  return readers;
}

/// The tables are small, and equal at every step.
Taps taps_of(Context& context, const Resampling& resampling, const Shape& source, const Shape& target) {
  Taps all{field_places(source), field_places(target), {}, {}};
  for (int dim = 0; dim < 3; ++dim) {
    const int given = dim - 3 + resampling.target.extent.rank();
    const std::vector<ResamplingTap> taps =
        given < 0 ? std::vector<ResamplingTap>(1) : resampling_taps(resampling, given);
    const std::vector<Reader> readers = readers_of(taps, all.source.space.d[dim]);
    all.taps[dim] = constants(context, std::span<const ResamplingTap>(taps));
    all.readers[dim] = constants(context, std::span<const Reader>(readers));
  }
  return all;
}

class ResamplingOnDevice : public ResamplingKernels {
 public:
  void forward(Context& context, const Resampling& resampling, const Array& x, Array& y) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_elements(
          context, y.count(),
          Forward<T>{taps_of(context, resampling, x.shape(), y.shape()), elements<T>(x), elements<T>(y)});
    });
  }

  void backward(Context& context, const Resampling& resampling, const Array& dy, Array& dx) const override {
    visit(dy.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_elements(context, dx.count(),
                   Backward<T>{taps_of(context, resampling, dx.shape(), dy.shape()), elements<T>(dy),
                               elements<T>(dx)});
    });
  }
};

}  // namespace

template <>
const ResamplingKernels& kernels() {
  static const ResamplingOnDevice instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cuda
