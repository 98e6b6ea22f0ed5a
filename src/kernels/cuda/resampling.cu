#include <vector>

#include "array/raw_memory.h"
#include "kernels/cuda/constants.h"
#include "kernels/cuda/field.cuh"
#include "kernels/cuda/packet.cuh"
#include "kernels/front/resampling_kernels.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// The two points of the source that a place of the target reads along a dim: their offsets in the field, and
/// weights.
struct alignas(16) Ends {
  std::int64_t at[2];
  double weight[2];
};

template <typename T>
struct Forward {
  using R = Accumulator<T>;
  static constexpr int kCount = kPacket<Element<T>>;
  FieldPlaces target;
  std::int64_t sample;  ///< elements of a sample of the source
  const Ends* ends[3];  ///< by place
  const Element<T>* x;
  Element<T>* y;
  bool fits() const { return target.channels % kCount == 0 && begin_packets<kCount>(x, y); }
  template <int kOnce>
  __device__ void at(std::int64_t i) const {
    std::int64_t place[3], channel;
    const std::int64_t first = target.split(i, place, channel) * sample + channel;
    const Ends d = ends[0][place[0]], h = ends[1][place[1]], w = ends[2][place[2]];
    R sum[kOnce] = {};
    for (int corner = 0; corner < 8; ++corner) {
      const int a = corner >> 2, b = corner >> 1 & 1, c = corner & 1;
      const double plane = d.weight[a] * h.weight[b];
      if (plane == 0.0 || w.weight[c] == 0.0) continue;
      R value[kOnce];
      read_packet(x, first + d.at[a] + h.at[b] + w.at[c], value);
      const R weight = static_cast<R>(plane * w.weight[c]);
      for (int k = 0; k < kOnce; ++k) sum[k] += weight * value[k];
    }
    write_packet(y, i, sum);
  }
};

/// The places of the target that read a point of the source along a dim: `count` neighbours, of which some
/// may have weight 0. `at` is the offset of the first in the field, `weights` the number of its weight.
struct Readers {
  std::int64_t at = 0, count = 0, weights = 0;
};

/// Each point of the source gathers from the places that read it.
template <typename T>
struct Backward {
  static constexpr int kCount = kPacket<Element<T>>;
  FieldPlaces source;
  std::int64_t sample;        ///< elements of a sample of the target
  Three step;                 ///< elements of the target from a place to the next
  const Readers* readers[3];  ///< by point
  const double* weights[3];
  const Element<T>* dy;
  Element<T>* dx;
  bool fits() const { return source.channels % kCount == 0 && begin_packets<kCount>(dy, dx); }
  template <int kOnce>
  __device__ void at(std::int64_t i) const {
    std::int64_t point[3], channel;
    const std::int64_t first = source.split(i, point, channel) * sample + channel;
    const Readers d = readers[0][point[0]], h = readers[1][point[1]], w = readers[2][point[2]];
    double sum[kOnce] = {};  // one point may be read by a whole grid
    for (std::int64_t a = 0; a < d.count; ++a) {
      for (std::int64_t b = 0; b < h.count; ++b) {
        const double plane = weights[0][d.weights + a] * weights[1][h.weights + b];
        std::int64_t from = first + d.at + a * step[0] + h.at + b * step[1] + w.at;
#pragma unroll 1
        for (std::int64_t c = 0; c < w.count; ++c, from += step[2]) {
          const double weight = plane * weights[2][w.weights + c];
          if (weight == 0.0) continue;
          double slope[kOnce];
          read_packet(dy, from, slope);
          for (int k = 0; k < kOnce; ++k) sum[k] += weight * slope[k];
        }
      }
    }
    write_packet(dx, i, sum);
  }
};

/// Those of the target along one of three dims.
std::vector<ResamplingTap> taps_of(const Resampling& resampling, int dim) {
  const int given = dim - 3 + resampling.target.extent.rank();
  return given < 0 ? std::vector<ResamplingTap>(1) : resampling_taps(resampling, given);
}

/// @param stride  elements of the source from a point to the next along the dim
std::vector<Ends> ends_of(const std::vector<ResamplingTap>& taps, std::int64_t stride) {
  std::vector<Ends> ends;
  for (const ResamplingTap& tap : taps)
    ends.push_back({{tap.low * stride, tap.high * stride}, {1.0 - tap.share, tap.share}});
  return ends;
}

/// Taps only rise along a dim, so that a point's readers lie one beside the other.
/// @param stride  elements of the target from a place to the next along the dim
std::vector<Readers> readers_of(const std::vector<ResamplingTap>& taps, std::int64_t points,
                                std::int64_t stride, std::vector<double>& weights) {
  std::vector<Readers> readers(static_cast<std::size_t>(points));
  for (std::int64_t place = 0; place < std::ssize(taps); ++place) {
    const ResamplingTap& tap = taps[static_cast<std::size_t>(place)];
    for (const std::int64_t point : {tap.low, tap.high}) {
      Readers& all = readers[static_cast<std::size_t>(point)];
      if (all.count == 0) all.at = place;
      all.count = place - all.at + 1;
    }
  }
  for (std::int64_t point = 0; point < points; ++point) {
    Readers& all = readers[static_cast<std::size_t>(point)];
    all.weights = std::ssize(weights);
    for (std::int64_t place = all.at; place < all.at + all.count; ++place) {
      const ResamplingTap& tap = taps[static_cast<std::size_t>(place)];
      weights.push_back((tap.low == point ? 1.0 - tap.share : 0.0) + (tap.high == point ? tap.share : 0.0));
    }
    all.at *= stride;
  }
  return readers;
}

/// The tables that kernels read are small, and equal at every step.
class ResamplingOnDevice : public ResamplingKernels {
 public:
  void forward(Context& context, const Resampling& resampling, const Array& x, Array& y) const override {
    const FieldPlaces source = field_places(x.shape());
    const Three stride = strides_of(source);
    const Ends* ends[3];
    for (int dim = 0; dim < 3; ++dim) {
      const std::vector<Ends> all = ends_of(taps_of(resampling, dim), stride.d[dim]);
      ends[dim] = constants(context, std::span<const Ends>(all));
    }
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_packets(context, y.count(),
                  Forward<T>{field_places(y.shape()),
                             source.points * source.channels,
                             {ends[0], ends[1], ends[2]},
                             elements<T>(x),
                             elements<T>(y)});
    });
  }

  void backward(Context& context, const Resampling& resampling, const Array& dy, Array& dx) const override {
    const FieldPlaces source = field_places(dx.shape()), target = field_places(dy.shape());
    const Three stride = strides_of(target);
    const Readers* readers[3];
    const double* weights[3];
    for (int dim = 0; dim < 3; ++dim) {
      std::vector<double> of_readers;
      const std::vector<Readers> all =
          readers_of(taps_of(resampling, dim), source.space.d[dim], stride.d[dim], of_readers);
      readers[dim] = constants(context, std::span<const Readers>(all));
      weights[dim] = constants(context, std::span<const double>(of_readers));
    }
    visit(dy.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_packets(context, dx.count(),
                  Backward<T>{source,
                              target.points * target.channels,
                              stride,
                              {readers[0], readers[1], readers[2]},
                              {weights[0], weights[1], weights[2]},
                              elements<T>(dy),
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
