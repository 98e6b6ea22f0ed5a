#pragma once
#include <vector>

#include "train/physical_states.h"

namespace jigsaw::inline predict {

/// NaN wherever the state at time 0 is missing. @return  how many values that are.
std::int64_t hide_missing(const Rank& rank, const Array& origin, std::vector<double>& states);

/// What the files hold on the rim in place of what is predicted there, in a piece of the states in this
/// layout.
/// @param rims  of the lead, as Batch::rims.
void write_rim(const Rank& rank, const Layout& layout, const Rim& rim, const Array& rims,
               std::vector<double>& states);

}  // namespace jigsaw::inline predict
