#pragma once
#include <string>

#include "estimate/mesh_search.h"

namespace jigsaw::inline estimate {

/// Why one mesh takes less time than another: of each block (blocks that are alike together) what its
/// kernels, the layouts of values, the operations' own transfers and the parameters take on both, by the
/// machine's constants and as if nothing were hidden; the rules by which operations run where they differ.
std::string explain(const MeshQuestion& question, const PlannedMesh& better, const PlannedMesh& worse);

}  // namespace jigsaw::inline estimate
