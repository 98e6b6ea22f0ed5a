#pragma once
#include "parallel/redistribute.h"

namespace jigsaw::inline parallel {

/// The argument `block` of Communicator::start_all_to_all() for an all-to-all of a redistribution: the most
/// elements that any rank sends another where forwarding pays, 0 where messages go directly. Follows from the
/// layouts alone, so it is the same on all ranks.
std::int64_t forwarded_block(const MeshShape& mesh, const Step& step, const Layout& held,
                             double element_bytes);

}  // namespace jigsaw::inline parallel
