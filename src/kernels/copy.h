#pragma once
#include <span>

#include "array/array.h"
#include "array/box.h"
#include "kernels/box_table.h"

namespace jigsaw::inline kernels {

/// Copies the elements of `from` in `source` to those of `to` in `target` (equal extents, any size of
/// element, equal types), both regions in coordinates of their array.
void copy_box(Context& context, const Array& source, const Box& from, Array& target, const Box& to);
/// The elements of a region as an array of their own.
Array extract_box(Context& context, const Array& source, const Box& from,
                  Purpose purpose = Purpose::kActivations);
/// target[to] += source[from]; float types, equal.
void add_box(Context& context, const Array& source, const Box& from, Array& target, const Box& to);

/// What happens to elements that a table copies by channel: x · factor + offset, both f64 [channels] or
/// undefined.
struct ChannelChange {
  Array factor, offset;
};
template <typename F>
void for_each_array(ChannelChange& change, const F& f) {
  f(change.factor);
  f(change.offset);
}
/// All copies of a table at once. What several bring to one place is added up in the order of the table,
/// beginning with the first, in float32 (of float64 in float64), and rounded once. A source may be the
/// target, where it is read only at the elements that are written.
/// @param sources  by their numbers in the table; all of the target's type.
void copy_boxes(Context& context, const BoxTable& table, std::span<const Array> sources, Array& target,
                const ChannelChange& change = {});

/// torch.permute followed by contiguous: result dim i is dim order[i] of x.
Array permute(Context& context, const Array& x, std::span<const int> order);

}  // namespace jigsaw::inline kernels
