#pragma once
#include "kernels/ensemble.h"

namespace jigsaw::inline kernels::reference {

/// Writes the inputs of [begin, end) of the box's points, members one after the other.
void write_member_points(const Array& fields, const MemberBox& of, const MemberNoise& noise,
                         std::int64_t begin, std::int64_t end, Array& inputs);

}  // namespace jigsaw::inline kernels::reference
