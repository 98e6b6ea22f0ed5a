#pragma once
#include <vector>

#include "files/variable_file.h"

namespace jigsaw::inline files {

/// A coordinate as it is written to files beside others.
struct CoordinateValues {
  std::vector<double> values;  ///< NaN where missing
  bool single_precision = false;
};

/// All of a coordinate variable, in the precision that readers unpack it in: where scale_factor and
/// add_offset, or scale_factor alone, are of single precision, in single precision, each of product and sum
/// rounded, but integers of 32 bits with both (CF, section 8.1, as xarray has it:
/// CFScaleOffsetCoder). So what is written has the very values that readers find in the input.
/// @throws DataError  as VariableFile::read_all() does.
CoordinateValues read_coordinate(VariableFile& file, const FileVariable& variable);

}  // namespace jigsaw::inline files
