#include <algorithm>
#include <cstring>
#include <vector>

#include "array/parallel.h"
#include "array/raw_memory.h"
#include "kernels/cpu/box_rows.h"
#include "kernels/cpu/types.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/cpu/vectorize.h"
#include "kernels/front/copy_kernels.h"

namespace jigsaw::inline kernels::cpu {

namespace {

/// One dim of a permutation: how far a step moves in x and in y.
struct Axis {
  std::int64_t extent, x, y;
};

/// The dims of y, outermost first, without those of one element, and with those merged that are neighbours in
/// x too.
std::vector<Axis> permutation_axes(const Array& x, std::span<const int> order, const Array& y) {
  std::vector<Axis> axes;
  for (int dim = 0; dim < y.rank(); ++dim) {
    const Axis axis = {y.shape()[dim], x.shape().strides()[order[static_cast<std::size_t>(dim)]],
                       y.shape().strides()[dim]};
    if (axis.extent == 1) continue;
    if (!axes.empty() && axes.back().x == axis.x * axis.extent) {
      axes.back() = {axes.back().extent * axis.extent, axis.x, axis.y};
    } else {
      axes.push_back(axis);
    }
  }
  return axes;
}

/// Offsets of a combination of outer indices.
struct Offsets {
  std::int64_t x = 0, y = 0;
};
Offsets offsets_of(const std::vector<Axis>& axes, std::int64_t index) {
  Offsets offsets;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    offsets.x += index % axis->extent * axis->x;
    offsets.y += index % axis->extent * axis->y;
    index /= axis->extent;
  }
  return offsets;
}

std::int64_t count_of(const std::vector<Axis>& axes) {
  std::int64_t count = 1;
  for (const Axis& axis : axes) count *= axis.extent;
  return count;
}

/// y[i·rows.y + j] = x[i + j·columns.x] for a tile: reads run along x, writes along y, both within the cache.
template <typename Bits>
void transpose_tile(const Bits* x, Bits* y, const Axis& rows, const Axis& columns, std::int64_t first_row,
                    std::int64_t first_column) {
  constexpr std::int64_t kTile = 32;
  const std::int64_t last_row = std::min(rows.extent, first_row + kTile);
  const std::int64_t last_column = std::min(columns.extent, first_column + kTile);
  for (std::int64_t i = first_row; i < last_row; ++i) {
    for (std::int64_t j = first_column; j < last_column; ++j) y[i * rows.y + j] = x[i + j * columns.x];
  }
}

/// `columns` is contiguous in y, `rows` in x; the other axes are outer.
template <typename Bits>
void transpose(Context& context, const Bits* x, Bits* y, const std::vector<Axis>& outer, const Axis& rows,
               const Axis& columns) {
  constexpr std::int64_t kTile = 32;
  const std::int64_t row_tiles = (rows.extent + kTile - 1) / kTile;
  const std::int64_t column_tiles = (columns.extent + kTile - 1) / kTile;
  const std::int64_t tasks = count_of(outer) * row_tiles;
  for_ranges(threads_for(context, tasks, kTile * columns.extent), tasks, 1,
             [&](std::int64_t begin, std::int64_t end, int) {
               for (std::int64_t task = begin; task < end; ++task) {
                 const Offsets at = offsets_of(outer, task / row_tiles);
                 for (std::int64_t tile = 0; tile < column_tiles; ++tile) {
                   transpose_tile(x + at.x, y + at.y, rows, columns, task % row_tiles * kTile, tile * kTile);
                 }
               }
             });
}

template <typename Bits>
void permute_bits(Context& context, const Array& x, std::span<const int> order, Array& y) {
  std::vector<Axis> outer = permutation_axes(x, order, y);
  const Axis columns = outer.empty() ? Axis{1, 1, 1} : outer.back();
  if (!outer.empty()) outer.pop_back();
  if (columns.x == 1) {
    const std::int64_t rows = count_of(outer);
    for_ranges(threads_for(context, rows, columns.extent), rows, 1,
               [&](std::int64_t begin, std::int64_t end, int) {
                 for (std::int64_t row = begin; row < end; ++row) {
                   const Offsets at = offsets_of(outer, row);
                   std::copy_n(x.data<Bits>() + at.x, columns.extent, y.data<Bits>() + at.y);
                 }
               });
    return;
  }
  const auto contiguous = std::ranges::find_if(outer, [](const Axis& axis) { return axis.x == 1; });
  const Axis rows = contiguous != outer.end() ? *contiguous : Axis{1, 1, 1};
  if (contiguous != outer.end()) outer.erase(contiguous);
  transpose(context, x.data<Bits>(), y.data<Bits>(), outer, rows, columns);
}

template <typename T>
void add_part(const T* from, T* to, std::int64_t n) {
  vectorized([=] {
    for (std::int64_t i = 0; i < n; ++i)
      to[i] = rounded<T>(static_cast<float>(to[i]) + static_cast<float>(from[i]));
  });
}

/// Rows of a cell that stand evenly apart, and which elements of each.
struct RowRun {
  std::int64_t row, rows, begin, length;
};

/// Calls f(cell, run) for runs that make up the elements [begin, end) of all cells.
template <typename F>
void for_each_run(const BoxCells& all, std::int64_t begin, std::int64_t end, const F& f) {
  auto cell = std::ranges::upper_bound(all.cells, begin, {}, &BoxCell::before) - 1;
  for (; begin < end; ++cell) {
    const std::int64_t length = cell->extent[cell->rank - 1],
                       evenly = cell->rank > 1 ? cell->extent[cell->rank - 2] : 1,
                       stop = std::min(end - cell->before, cell->count);
    for (std::int64_t at = begin - cell->before; at < stop;) {
      RowRun run{at / length, 1, at % length, 0};
      run.length = std::min(length - run.begin, stop - at);
      if (run.length == length) run.rows = std::min(evenly - run.row % evenly, (stop - at) / length);
      f(*cell, run);
      at += run.rows * run.length;
    }
    begin = cell->before + stop;
  }
}

/// Where a run begins, in an array with these strides, and how far apart its rows are.
struct RunPlace {
  std::int64_t first, apart;
};
RunPlace place_of(const BoxCell& cell, const RowRun& run, std::int64_t first, const std::int64_t* stride) {
  RunPlace place = {first + run.begin, cell.rank > 1 ? stride[cell.rank - 2] : 0};
  std::int64_t row = run.row;
  for (std::int64_t dim = cell.rank - 2; dim >= 0; --dim) {
    place.first += row % cell.extent[dim] * stride[dim];
    row /= cell.extent[dim];
  }
  return place;
}

/// A run of a cell of one term or none, of elements of `size` bytes.
void move_run(const BoxCells& all, const BoxCell& cell, const RowRun& run, std::span<const Array> sources,
              Array& target, std::int64_t size) {
  const RunPlace to = place_of(cell, run, cell.first, cell.stride);
  std::byte* write = target.raw() + to.first * size;
  const auto bytes = static_cast<std::size_t>(run.length * size);
  if (cell.terms == 0) {
    for (std::int64_t row = 0; row < run.rows; ++row) std::memset(write + row * to.apart * size, 0, bytes);
    return;
  }
  const BoxTerm& term = all.terms[static_cast<std::size_t>(cell.first_term)];
  const RunPlace from = place_of(cell, run, term.first, term.stride);
  const std::byte* read = sources[static_cast<std::size_t>(term.source)].raw() + from.first * size;
  for (std::int64_t row = 0; row < run.rows; ++row)
    std::memcpy(write + row * to.apart * size, read + row * from.apart * size, bytes);
}

/// Elements that are added up before they are written.
constexpr std::int64_t kSumElements = 4096;

/// sums (+)= x, or x · factor + offset by element of a row, for rows that stand evenly apart in x.
template <typename T>
inline void add_rows(float* sums, bool first, const T* x, std::int64_t rows, std::int64_t apart,
                     std::int64_t length, const double* factor, const double* offset) {
  for (std::int64_t row = 0; row < rows; ++row, sums += length, x += apart) {
    if (factor != nullptr) {
      for (std::int64_t i = 0; i < length; ++i) {
        const float changed = static_cast<float>(x[i]) * static_cast<float>(factor[i]) +
                              (offset != nullptr ? static_cast<float>(offset[i]) : 0.0F);
        sums[i] = first ? changed : sums[i] + changed;
      }
    } else if (first) {
      for (std::int64_t i = 0; i < length; ++i) sums[i] = static_cast<float>(x[i]);
    } else {
      for (std::int64_t i = 0; i < length; ++i) sums[i] += static_cast<float>(x[i]);
    }
  }
}

/// A run of a cell that is a sum, or changes by channel; no more elements than are added up at a time.
template <typename T>
void sum_run(const BoxCells& all, const BoxCell& cell, const RowRun& run, std::span<const Array> sources,
             Array& target, const ChannelChange& change) {
  vectorized([&] {
    float sums[kSumElements];
    for (std::int64_t t = 0; t < cell.terms; ++t) {
      const BoxTerm& term = all.terms[static_cast<std::size_t>(cell.first_term + t)];
      const RunPlace from = place_of(cell, run, term.first, term.stride);
      const double *factor = nullptr, *offset = nullptr;
      if (term.channel != BoxTable::kAsItIs) {
        factor = change.factor.data<double>() + term.channel + run.begin;
        if (change.offset.defined()) offset = change.offset.data<double>() + term.channel + run.begin;
      }
      add_rows(sums, t == 0, sources[static_cast<std::size_t>(term.source)].data<T>() + from.first, run.rows,
               from.apart, run.length, factor, offset);
    }
    const RunPlace to = place_of(cell, run, cell.first, cell.stride);
    T* y = target.data<T>() + to.first;
    const float* sum = sums;
    for (std::int64_t row = 0; row < run.rows; ++row, y += to.apart, sum += run.length) {
      for (std::int64_t i = 0; i < run.length; ++i) y[i] = rounded<T>(sum[i]);
    }
  });
}

/// Calls f(run) for parts of a run of no more elements than are added up at a time.
template <typename F>
void for_each_part(const RowRun& run, const F& f) {
  const std::int64_t length = std::min(run.length, kSumElements), rows = kSumElements / length;
  for (std::int64_t row = 0; row < run.rows; row += rows) {
    for (std::int64_t begin = 0; begin < run.length; begin += length)
      f(RowRun{run.row + row, std::min(rows, run.rows - row), run.begin + begin,
               std::min(length, run.length - begin)});
  }
}

class Copy : public CopyKernels {
 public:
  void copy_box(Context& context, const Array& source, const Box& from, Array& target,
                const Box& to) const override {
    const BoxRows rows(source.shape(), from, target.shape(), to);
    const std::int64_t size = size_of(source.dtype());
    for_ranges(threads_for(context, rows.parts(), rows.part_length()), rows.parts(), 1,
               [&](std::int64_t begin, std::int64_t end, int) {
                 for (std::int64_t index = begin; index < end; ++index) {
                   const BoxRows::Part part = rows.part(index);
                   std::memcpy(target.raw() + part.target * size, source.raw() + part.source * size,
                               static_cast<std::size_t>(part.length * size));
                 }
               });
  }

  void add_box(Context& context, const Array& source, const Box& from, Array& target,
               const Box& to) const override {
    const BoxRows rows(source.shape(), from, target.shape(), to);
    visit_fast(source.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_ranges(threads_for(context, rows.parts(), rows.part_length()), rows.parts(), 1,
                 [&](std::int64_t begin, std::int64_t end, int) {
                   for (std::int64_t index = begin; index < end; ++index) {
                     const BoxRows::Part part = rows.part(index);
                     add_part(source.data<T>() + part.source, target.data<T>() + part.target, part.length);
                   }
                 });
    });
  }

  void copy_boxes(Context& context, const BoxTable& table, std::span<const Array> sources, Array& target,
                  const ChannelChange& change) const override {
    constexpr std::int64_t kStep = 256;  // elements that no two threads share
    const BoxCells& all = table.cells();
    const auto run_cells = [&](const auto& f) {
      for_ranges(threads_for(context, all.count, 1), all.count, kStep,
                 [&](std::int64_t begin, std::int64_t end, int) { for_each_run(all, begin, end, f); });
    };
    const auto move = [&, size = size_of(target.dtype())](const BoxCell& cell, const RowRun& run) {
      move_run(all, cell, run, sources, target, size);
    };
    if (all.moves) return run_cells(move);
    visit_fast(target.dtype(), [&](auto zero) {
      run_cells([&](const BoxCell& cell, const RowRun& run) {
        const bool moves = cell.terms == 0 ||
                           (cell.terms == 1 && all.terms[static_cast<std::size_t>(cell.first_term)].channel ==
                                                   BoxTable::kAsItIs);
        if (moves) return move(cell, run);
        for_each_part(run, [&](const RowRun& part) {
          sum_run<decltype(zero)>(all, cell, part, sources, target, change);
        });
      });
    });
  }

  void permute(Context& context, const Array& x, std::span<const int> order, Array& y) const override {
    switch (size_of(x.dtype())) {
      case 2:
        return permute_bits<std::uint16_t>(context, x, order, y);
      case 4:
        return permute_bits<std::uint32_t>(context, x, order, y);
      default:
        return permute_bits<std::uint64_t>(context, x, order, y);
    }
  }
};

}  // namespace

template <>
const CopyKernels& kernels() {
  static const Copy instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cpu
