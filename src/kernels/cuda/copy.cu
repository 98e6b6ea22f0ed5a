#include "array/raw_memory.h"
#include "kernels/cuda/device.cuh"
#include "kernels/front/copy_kernels.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// Extents of a region and the strides, in elements, of what is read and written.
struct Region {
  int rank = 0;
  std::int64_t extent[Shape::kMaxRank] = {}, read[Shape::kMaxRank] = {}, write[Shape::kMaxRank] = {};
  std::int64_t first_read = 0, first_write = 0;
};

/// write[…] = read[…], or += where it adds.
template <typename E, bool kAdd>
struct Move {
  Region region;
  const E* read;
  E* write;

  __device__ void operator()(std::int64_t i) const {
    std::int64_t from = region.first_read, to = region.first_write;
    for (int dim = region.rank - 1; dim >= 0; --dim) {
      const std::int64_t index = i % region.extent[dim];
      from += index * region.read[dim];
      to += index * region.write[dim];
      i /= region.extent[dim];
    }
    if constexpr (kAdd) {
      using R = std::conditional_t<std::is_same_v<E, double>, double, float>;
      write[to] = stored<E>(load<R>(write[to]) + load<R>(read[from]));
    } else {
      write[to] = read[from];
    }
  }
};

Region region_of(const Shape& source, const Box& from, const Shape& target, const Box& to) {
  Region region;
  region.rank = from.extent.rank();
  for (int dim = 0; dim < region.rank; ++dim) {
    region.extent[dim] = from.extent[dim];
    region.read[dim] = source.strides()[dim];
    region.write[dim] = target.strides()[dim];
    region.first_read += from.begin[dim] * region.read[dim];
    region.first_write += to.begin[dim] * region.write[dim];
  }
  return region;
}

/// Copies elements of any type by their size.
void move(Context& context, const Region& region, std::int64_t count, const Array& source, Array& target) {
  const auto run = [&](auto zero) {
    using Bits = decltype(zero);
    for_elements(context, count, Move<Bits, false>{region, source.data<Bits>(), target.data<Bits>()});
  };
  switch (size_of(source.dtype())) {
    case 2:
      return run(std::uint16_t{});
    case 4:
      return run(std::uint32_t{});
    default:
      return run(std::uint64_t{});
  }
}

class Copy : public CopyKernels {
 public:
  void copy_box(Context& context, const Array& source, const Box& from, Array& target,
                const Box& to) const override {
    move(context, region_of(source.shape(), from, target.shape(), to), from.extent.count(), source, target);
  }

  void add_box(Context& context, const Array& source, const Box& from, Array& target,
               const Box& to) const override {
    const Region region = region_of(source.shape(), from, target.shape(), to);
    visit(source.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_elements(context, from.extent.count(),
                   Move<Element<T>, true>{region, elements<T>(source), elements<T>(target)});
    });
  }

  void permute(Context& context, const Array& x, std::span<const int> order, Array& y) const override {
    Region region;
    region.rank = y.rank();
    for (int dim = 0; dim < y.rank(); ++dim) {
      region.extent[dim] = y.shape()[dim];
      region.read[dim] = x.shape().strides()[order[static_cast<std::size_t>(dim)]];
      region.write[dim] = y.shape().strides()[dim];
    }
    move(context, region, y.count(), x, y);
  }
};

}  // namespace

template <>
const CopyKernels& kernels() {
  static const Copy instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cuda
