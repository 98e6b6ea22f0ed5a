#pragma once
#include <vector>

#include "fields/file_set.h"

namespace jigsaw::inline samples {

/// Sees to it that fields in time are of the same member, where files say by a scalar coordinate of which
/// they are, as those of climate models do (`realization`).
///
/// @param fields  selected ones that are predicted or predicted from.
/// @return  whether they are of the chosen member, as all these files say.
/// @throws DataError  where files of different members are joined without a choice, or a field is of another
/// member than that which is chosen, or of one alone where all members are read
bool require_one_member(FileSet& files, const std::vector<Field>& fields, const MemberChoice& choice);

}  // namespace jigsaw::inline samples
