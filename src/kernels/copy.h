#pragma once
#include <span>

#include "array/array.h"
#include "array/box.h"

namespace jigsaw::inline kernels {

/// Copies the elements of `from` in `source` to those of `to` in `target` (equal extents, any size of
/// element, equal types), both regions in coordinates of their array.
void copy_box(Context& context, const Array& source, const Box& from, Array& target, const Box& to);
/// The elements of a region as an array of their own.
Array extract_box(Context& context, const Array& source, const Box& from,
                  Purpose purpose = Purpose::kActivations);
/// target[to] += source[from]; float types, equal.
void add_box(Context& context, const Array& source, const Box& from, Array& target, const Box& to);

/// torch.permute followed by contiguous: result dim i is dim order[i] of x.
Array permute(Context& context, const Array& x, std::span<const int> order);

}  // namespace jigsaw::inline kernels
