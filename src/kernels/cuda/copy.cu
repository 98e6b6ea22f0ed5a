#include <utility>

#include "array/raw_memory.h"
#include "kernels/cuda/constants.h"
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

/// A table on the device, and the arrays at hand.
struct Cells {
  const BoxCell* cells;
  const BoxTerm* terms;
  std::int64_t number;  ///< of cells
  const std::byte* sources[BoxTable::kMostSources];
  const double *factor, *offset;  ///< by channel

  /// The cell of element number `i` of all.
  __device__ const BoxCell& cell_of(std::int64_t i) const {
    std::int64_t low = 0, high = number;
    while (high - low > 1) {
      const std::int64_t middle = (low + high) / 2;
      (cells[middle].before <= i ? low : high) = middle;
    }
    return cells[low];
  }
  /// Element number `at` of a cell in an array with these strides.
  __device__ static std::int64_t place_of(const BoxCell& cell, std::int64_t at, std::int64_t first,
                                          const std::int64_t* stride) {
    for (std::int64_t dim = cell.rank - 1; dim > 0; --dim) {
      first += at % cell.extent[dim] * stride[dim];
      at /= cell.extent[dim];
    }
    return first + at * stride[0];
  }
};

/// Moves words of `together` elements: each is one of one term, or zero.
template <typename Word>
struct MoveWords {
  Cells table;
  Word* target;
  std::int64_t together;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t element = i * together;
    const BoxCell& cell = table.cell_of(element);
    const std::int64_t at = element - cell.before;
    Word& word = target[Cells::place_of(cell, at, cell.first, cell.stride) / together];
    if (cell.terms == 0) {
      word = Word{};
      return;
    }
    const BoxTerm& term = table.terms[cell.first_term];
    word = reinterpret_cast<const Word*>(
        table.sources[term.source])[Cells::place_of(cell, at, term.first, term.stride) / together];
  }
};

/// The sum of an element's terms, in their order.
template <typename E>
struct SumTerms {
  Cells table;
  E* target;

  __device__ void operator()(std::int64_t i) const {
    using R = std::conditional_t<std::is_same_v<E, double>, double, float>;
    const BoxCell& cell = table.cell_of(i);
    const std::int64_t at = i - cell.before;
    R sum = 0;
    for (std::int64_t t = 0; t < cell.terms; ++t) {
      const BoxTerm& term = table.terms[cell.first_term + t];
      const auto* const source = reinterpret_cast<const E*>(table.sources[term.source]);
      R value = load<R>(source[Cells::place_of(cell, at, term.first, term.stride)]);
      if (term.channel != BoxTable::kAsItIs) {
        const std::int64_t channel = term.channel + at % cell.extent[cell.rank - 1];
        value *= static_cast<R>(table.factor[channel]);
        if (table.offset != nullptr) value += static_cast<R>(table.offset[channel]);
      }
      sum = t == 0 ? value : sum + value;
    }
    target[Cells::place_of(cell, at, cell.first, cell.stride)] = stored<E>(sum);
  }
};

/// Sixteen bytes at a time.
struct alignas(16) Quad {
  std::uint64_t low = 0, high = 0;
};

/// Bytes of the largest words in which a table can be moved between these arrays.
std::int64_t word_bytes(const BoxCells& all, std::int64_t size, std::span<const Array> sources,
                        const Array& target) {
  auto begins = reinterpret_cast<std::uintptr_t>(target.raw());
  for (const Array& source : sources) begins |= reinterpret_cast<std::uintptr_t>(source.raw());
  std::int64_t bytes = size;
  while (bytes < 16 && bytes / size < all.together && begins % (2 * static_cast<std::uintptr_t>(bytes)) == 0)
    bytes *= 2;
  return bytes;
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

  void copy_boxes(Context& context, const BoxTable& table, std::span<const Array> sources, Array& target,
                  const ChannelChange& change) const override {
    const BoxCells& all = table.cells();
    Cells cells{};
    cells.cells = constants(context, std::span(std::as_const(all.cells)));
    cells.terms = constants(context, std::span(std::as_const(all.terms)));
    cells.number = std::ssize(all.cells);
    for (std::size_t i = 0; i < sources.size(); ++i) cells.sources[i] = sources[i].raw();
    if (change.factor.defined()) cells.factor = change.factor.data<double>();
    if (change.offset.defined()) cells.offset = change.offset.data<double>();
    if (!all.moves) {
      return visit(target.dtype(), [&](auto zero) {
        using T = decltype(zero);
        for_elements(context, all.count, SumTerms<Element<T>>{cells, elements<T>(target)});
      });
    }
    const std::int64_t size = size_of(target.dtype()), bytes = word_bytes(all, size, sources, target);
    const auto run = [&](auto word) {
      using Word = decltype(word);
      for_elements(context, all.count * size / bytes,
                   MoveWords<Word>{cells, reinterpret_cast<Word*>(target.raw()), bytes / size});
    };
    switch (bytes) {
      case 2:
        return run(std::uint16_t{});
      case 4:
        return run(std::uint32_t{});
      case 8:
        return run(std::uint64_t{});
      default:
        return run(Quad{});
    }
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
