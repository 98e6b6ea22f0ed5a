#pragma once
#include <functional>
#include <vector>

#include "parallel/sharded_tensor.h"

namespace jigsaw::testing {

/// Row-major index in the global tensor of element `i` of a box of it.
inline std::int64_t global_index(const Shape& global, const Box& box, std::int64_t i) {
  std::int64_t index = 0, stride = 1;
  for (int dim = global.rank() - 1; dim >= 0; --dim) {
    index += (box.begin[dim] + i % box.extent[dim]) * stride;
    i /= box.extent[dim];
    stride *= global[dim];
  }
  return index;
}

/// This rank's piece of a global tensor whose elements are value(row-major index).
inline Array make_piece(const Rank& rank, const Layout& layout, DType dtype,
                        const std::function<double(std::int64_t)>& value) {
  const Box box = rank.box(layout);
  Array piece(rank.context, box.extent, dtype);
  visit(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < piece.count(); ++i) {
      piece.data<T>()[i] = static_cast<T>(value(global_index(layout.global, box, i)));
    }
  });
  return piece;
}

/// This rank's piece of a whole tensor, row-major.
inline Array cut_piece(const Rank& rank, const Layout& layout, DType dtype,
                       const std::vector<double>& whole) {
  return make_piece(rank, layout, dtype,
                    [&](std::int64_t index) { return whole.at(static_cast<std::size_t>(index)); });
}

/// Writes a piece to its place in the whole tensor.
inline void paste_piece(const Rank& rank, const Layout& layout, const Array& piece,
                        std::vector<double>& whole) {
  const Box box = rank.box(layout);
  whole.resize(static_cast<std::size_t>(layout.global.count()));
  visit(piece.dtype(), [&](auto zero) {
    for (std::int64_t i = 0; i < piece.count(); ++i) {
      const auto index = static_cast<std::size_t>(global_index(layout.global, box, i));
      whole.at(index) = static_cast<double>(piece.data<decltype(zero)>()[i]);
    }
  });
}

}  // namespace jigsaw::testing
