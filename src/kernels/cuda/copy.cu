#include <utility>

#include "array/raw_memory.h"
#include "kernels/cuda/constants.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/region.h"
#include "kernels/front/copy_kernels.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// Where an element of a cell lies in one of the arrays: it begins at the cell's first.
struct Place {
  std::int64_t at;
  const std::int64_t* stride;
};
/// Moves places on to element number `i` of their cell.
template <typename... Places>
__device__ void advance(const BoxCell& cell, std::int64_t i, Places&... places) {
  for (std::int64_t dim = cell.rank - 1; dim > 0; --dim) {
    const std::int64_t index = take_digit(i, cell.divisor[dim]);
    ((places.at += index * places.stride[dim]), ...);
  }
  ((places.at += i * places.stride[0]), ...);
}

/// Words of `together` elements of `size` bytes.
template <typename Word>
struct Words {
  std::byte* target;
  std::int64_t together, size;

  /// Moves the word that begins with element number `i` of a cell; `source` is the array of its term.
  __device__ void move(const BoxCell& cell, const BoxTerm& term, const std::byte* source,
                       std::int64_t i) const {
    Place to{cell.first, cell.stride}, from{term.first, term.stride};
    advance(cell, i, to, from);
    *word(to) = *reinterpret_cast<const Word*>(source + from.at * size);
  }
  __device__ Word* word(const Place& to) const { return reinterpret_cast<Word*>(target + to.at * size); }
};

/// Sixteen bytes at a time.
struct alignas(16) Quad {
  std::uint64_t low = 0, high = 0;
};

/// Calls f with the largest words in which `together` elements, or a share of them, can be moved between
/// arrays that begin at `begins`, the bits of all their addresses.
template <typename F>
void with_words(std::byte* target, std::int64_t together, std::int64_t size, std::uintptr_t begins,
                const F& f) {
  std::int64_t bytes = size;
  while (bytes < 16 && bytes / size < together && begins % (2 * static_cast<std::uintptr_t>(bytes)) == 0)
    bytes *= 2;
  switch (bytes) {
    case 2:
      return f(Words<std::uint16_t>{target, bytes / size, size});
    case 4:
      return f(Words<std::uint32_t>{target, bytes / size, size});
    case 8:
      return f(Words<std::uint64_t>{target, bytes / size, size});
    default:
      return f(Words<Quad>{target, bytes / size, size});
  }
}

/// A cell alone, of one term.
template <typename Word>
struct MoveRegion {
  Region region;
  Words<Word> words;
  const std::byte* source;

  __device__ void operator()(std::int64_t i) const {
    words.move(region.cell, region.term, source, i * words.together);
  }
};

/// The same, added to what is there.
template <typename E>
struct AddRegion {
  Region region;
  const E* source;
  E* target;

  __device__ void operator()(std::int64_t i) const {
    using R = std::conditional_t<std::is_same_v<E, double>, double, float>;
    Place to{region.cell.first, region.cell.stride}, from{region.term.first, region.term.stride};
    advance(region.cell, i, to, from);
    target[to.at] = stored<E>(load<R>(target[to.at]) + load<R>(source[from.at]));
  }
};

/// With as few dims as there can be; there is at least one.
Region merged(Region region) {
  if (region.cell.rank == 0) {
    region.cell.rank = region.cell.extent[0] = region.cell.stride[0] = region.term.stride[0] = 1;
  }
  merge_dims(region.cell, std::span(&region.term, 1), false);
  return region;
}

Region region_of(const Array& source, const Box& from, const Array& target, const Box& to) {
  const Shape read = source.shape().strides(), write = target.shape().strides();
  Region region;
  for (int dim = 0; dim < from.extent.rank(); ++dim) {
    region.add_dim(from.extent[dim], read[dim], write[dim]);
    region.term.first += from.begin[dim] * read[dim];
    region.cell.first += to.begin[dim] * write[dim];
  }
  return region;
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
};

/// Each word is one of one term, or zero.
template <typename Word>
struct MoveTable {
  Cells table;
  Words<Word> words;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t element = i * words.together;
    const BoxCell& cell = table.cell_of(element);
    const std::int64_t at = element - cell.before;
    if (cell.terms == 0) {
      Place to{cell.first, cell.stride};
      advance(cell, at, to);
      *words.word(to) = Word{};
      return;
    }
    const BoxTerm& term = table.terms[cell.first_term];
    words.move(cell, term, table.sources[term.source], at);
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
      Place from{term.first, term.stride};
      advance(cell, at, from);
      R value = load<R>(source[from.at]);
      if (term.channel != BoxTable::kAsItIs) {
        const std::int64_t channel = term.channel + at % cell.extent[cell.rank - 1];
        value *= static_cast<R>(table.factor[channel]);
        if (table.offset != nullptr) value += static_cast<R>(table.offset[channel]);
      }
      sum = t == 0 ? value : sum + value;
    }
    Place to{cell.first, cell.stride};
    advance(cell, at, to);
    target[to.at] = stored<E>(sum);
  }
};

class Copy : public CopyKernels {
 public:
  void copy_box(Context& context, const Array& source, const Box& from, Array& target,
                const Box& to) const override {
    move_region(context, region_of(source, from, target, to), size_of(source.dtype()), source.raw(),
                target.raw());
  }

  void add_box(Context& context, const Array& source, const Box& from, Array& target,
               const Box& to) const override {
    const Region region = merged(region_of(source, from, target, to));
    visit(source.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_elements(context, region.cell.count,
                   AddRegion<Element<T>>{region, elements<T>(source), elements<T>(target)});
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
    auto begins = reinterpret_cast<std::uintptr_t>(target.raw());
    for (const Array& source : sources) begins |= reinterpret_cast<std::uintptr_t>(source.raw());
    with_words(target.raw(), all.together, size_of(target.dtype()), begins, [&](const auto& words) {
      for_elements(context, all.count / words.together, MoveTable{cells, words});
    });
  }

  void permute(Context& context, const Array& x, std::span<const int> order, Array& y) const override {
    const Shape read = x.shape().strides(), write = y.shape().strides();
    Region region;
    for (int dim = 0; dim < y.rank(); ++dim)
      region.add_dim(y.shape()[dim], read[order[static_cast<std::size_t>(dim)]], write[dim]);
    move_region(context, region, size_of(x.dtype()), x.raw(), y.raw());
  }
};

}  // namespace

void Region::add_dim(std::int64_t extent, std::int64_t read, std::int64_t write) {
  cell.count *= extent;
  if (extent == 1) return;
  cell.extent[cell.rank] = extent;
  cell.stride[cell.rank] = write;
  term.stride[cell.rank++] = read;
}

void move_region(const Context& context, const Region& region, std::int64_t size, const std::byte* source,
                 std::byte* target) {
  const Region whole = merged(region);
  const auto begins = reinterpret_cast<std::uintptr_t>(source) | reinterpret_cast<std::uintptr_t>(target);
  const std::int64_t together =
      elements_together(whole.cell, std::span(&whole.term, 1), BoxCells::kMostTogether);
  with_words(target, together, size, begins, [&](const auto& words) {
    for_elements(context, whole.cell.count / words.together, MoveRegion{whole, words, source});
  });
}

template <>
const CopyKernels& kernels() {
  static const Copy instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cuda
