#pragma once
#include <string>
#include <vector>

#include "init/first_configuration.h"

namespace jigsaw::inline init {

/// Whether a file is laid out as The Well's are (arXiv:2412.00568): fields of trajectories in the groups
/// t0_fields (scalars), t1_fields (vectors) and t2_fields.
bool is_of_the_well(const std::string& path);

/// Whether a file of another layout holds states in time: data sets with a dimension that is called as time
/// is, beside others that are not called as latitudes, longitudes and levels are.
/// @param by_number  or, where dimensions have no names, of at least two dimensions.
bool holds_sequences(const std::string& path, bool by_number);

/// What first_configuration() writes for such files: forecasts of their sequences, whole files, or of one
/// file whole sequences, or of one sequence its last states to validate on. Where dimensions have no names
/// they are taken for time and those of space, behind samples where one file has more of them.
/// @throws DataError  for files without fields in time, or with too few states.
FirstConfiguration first_sequences(const FirstOptions& options, const std::vector<std::string>& paths);

}  // namespace jigsaw::inline init
