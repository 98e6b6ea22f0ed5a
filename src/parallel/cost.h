#pragma once
#include "parallel/cost_model.h"
#include "parallel/redistribute.h"
#include "parallel/sent_elements.h"

namespace jigsaw::inline parallel {

/// What a redistribution sends.
TransferCost transfer_cost(const MeshShape& mesh, const Layout& from, const Layout& to, double element_bytes);

/// What it takes, each step along the link of its axes.
/// @param sent  what is known of other transfers on this mesh; may be null.
double transfer_seconds(const MeshShape& mesh, const Layout& from, const Layout& to, const CostModel& model,
                        SentElements* sent = nullptr);

}  // namespace jigsaw::inline parallel
