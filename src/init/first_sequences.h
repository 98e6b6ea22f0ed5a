#pragma once
#include <string>
#include <vector>

#include "init/first_configuration.h"

namespace jigsaw::inline init {

/// Whether a file is laid out as The Well's are (arXiv:2412.00568): fields of trajectories in the groups
/// t0_fields (scalars), t1_fields (vectors) and t2_fields.
bool is_of_the_well(const std::string& path);

/// What first_configuration() writes for such files: forecasts of their sequences, whole files, or of one
/// file whole trajectories, to train and to validate on.
/// @throws DataError  for files without fields in time, or with one trajectory only.
FirstConfiguration first_sequences(const FirstOptions& options, const std::vector<std::string>& paths);

}  // namespace jigsaw::inline init
