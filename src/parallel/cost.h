#pragma once
#include "parallel/cost_model.h"
#include "parallel/redistribute.h"

namespace jigsaw::inline parallel {

/// What a redistribution sends.
TransferCost transfer_cost(const MeshShape& mesh, const Layout& from, const Layout& to, double element_bytes);

}  // namespace jigsaw::inline parallel
