#pragma once
#include <string>
#include <vector>

#include "fields/file_set.h"

namespace jigsaw::inline init {

/// Variables that change in time, by what their times are good for together.
struct VariablesByTimes {
  std::vector<VariableSummary> predicted;  ///< at `times`
  std::vector<VariableSummary>
      prescribed;                     ///< given less often, from the first of `times` or before to the last
  std::vector<std::string> left_out;  ///< the names of all others
  std::vector<Time> times;            ///< that all that are predicted have
};

/// Of what has different times, a first configuration takes what uses most of it: fields, predicted or
/// prescribed, times steps. Others of which that costs few steps are predicted with it.
///
/// @param variables  each with the times that all its levels have.
/// @param notices    are told what is prescribed or left out, and where not all times are used.
VariablesByTimes choose_by_times(const std::vector<VariableSummary>& variables,
                                 std::vector<std::string>& notices);

/// Makes one of variables that are one by their usual names (other_names()) and have no time in common, as
/// where files of later years call it otherwise. Its name is the first among the usual ones.
///
/// @param notices  are told so.
std::vector<VariableSummary> join_by_names(const std::vector<VariableSummary>& variables,
                                           std::vector<std::string>& notices);

}  // namespace jigsaw::inline init
