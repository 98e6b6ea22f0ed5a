#pragma once
#include "parallel/redistribute.h"

namespace jigsaw::inline parallel {

/// Elements of the block of Communicator::start_all_to_all() by which an all-to-all of a redistribution goes:
/// the most that any rank sends any other where forwarding is worth it, 0 where each is sent to directly.
/// Told by the layouts alone, and so the same on all ranks.
std::int64_t forwarded_block(const MeshShape& mesh, const Step& step, const Layout& held,
                             double element_bytes);

}  // namespace jigsaw::inline parallel
