#pragma once
#include "task/physical_states.h"

namespace jigsaw::inline predict {

/// What the files hold on the rim in place of what is predicted there, in a piece of the states in this
/// layout, f64.
/// @param rims  of the lead, as Batch::rims.
void write_rim(const Rank& rank, const Layout& layout, const Rim& rim, const Array& rims, Array& states);

}  // namespace jigsaw::inline predict
