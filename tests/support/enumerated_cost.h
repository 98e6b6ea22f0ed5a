#pragma once
#include "parallel/redistribute.h"

namespace jigsaw::testing {

/// Elements that the busiest rank sends in a step, found by looking at every pair of ranks.
double enumerated_sent(const MeshShape& mesh, const Step& step, const Layout& held);

}  // namespace jigsaw::testing
