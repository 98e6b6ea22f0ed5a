#pragma once
#include "parallel/cost_model.h"
#include "parallel/redistribute.h"

namespace jigsaw::inline parallel {

/// What a redistribution sends.
TransferCost transfer_cost(const MeshShape& mesh, const Layout& from, const Layout& to, double element_bytes);

/// What it takes, each step along the link of its axes.
double transfer_seconds(const MeshShape& mesh, const Layout& from, const Layout& to, const CostModel& model);

}  // namespace jigsaw::inline parallel
