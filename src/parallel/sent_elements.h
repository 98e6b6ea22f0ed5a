#pragma once
#include "parallel/redistribute.h"

namespace jigsaw::inline parallel {

/// Elements that the busiest rank sends in an all-to-all. Where all of the group's axes cut what is held: up
/// to what uneven pieces differ by.
std::int64_t most_sent_elements(const MeshShape& mesh, const Step& step, const Layout& held);

}  // namespace jigsaw::inline parallel
