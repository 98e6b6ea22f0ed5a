#pragma once
#include "parallel/redistribute.h"

namespace jigsaw::inline parallel {

/// Elements that the busiest rank sends in an all-to-all. Exact where some axis of the step does not cut the
/// held layout; where all do, an estimate from the largest pieces.
std::int64_t most_sent_elements(const MeshShape& mesh, const Step& step, const Layout& held);

}  // namespace jigsaw::inline parallel
