#include <algorithm>
#include <cstring>
#include <vector>

#include "array/raw_memory.h"
#include "kernels/cpu/box_rows.h"
#include "kernels/cpu/parallel.h"
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
