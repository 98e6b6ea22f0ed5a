#pragma once
#include <functional>
#include <vector>

#include "array/transfer.h"
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
  std::vector<double> values;
  for (std::int64_t i = 0; i < box.extent.count(); ++i)
    values.push_back(value(global_index(layout.global, box, i)));
  return constant(rank.context, box.extent, dtype, values, Purpose::kActivations);
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
  const std::vector<double> values = download_values(rank.context, piece);
  for (std::size_t i = 0; i < values.size(); ++i)
    whole.at(static_cast<std::size_t>(global_index(layout.global, box, static_cast<std::int64_t>(i)))) =
        values[i];
}

}  // namespace jigsaw::testing
