#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fields/file_set.h"
#include "init/first_times.h"

namespace jigsaw::inline init {

/// What a first configuration makes of the variables of files.
struct FirstFields {
  VariablesByTimes changing;                  ///< in time, with the levels that have values
  std::vector<std::string> constant;          ///< known and constant in time
  std::vector<std::string> flat;              ///< left out, for they are constant and the same everywhere
  std::set<std::string> areas;                ///< of all variables those that say they are areas of cells
  std::map<std::string, SummedSince> summed;  ///< of those that change the running sums
};

/// Looks at a sample of the values of each variable, over the grid and over its times. Selects what is
/// predicted, prescribed or constant: what training would refuse is left out.
///
/// @param bounds   names of variables that hold the limits of cells, which are no fields.
/// @param notices  are told what was left out, and why, and what is taken as constant though it has times.
/// @throws DataError  where no variable can be predicted, with the reason of the first.
FirstFields first_fields(FileSet& files, const std::string& path, const std::set<std::string>& bounds,
                         std::vector<std::string>& notices);

}  // namespace jigsaw::inline init
