#pragma once
#include <optional>
#include <string>
#include <vector>

#include "files/hyperslab.h"
#include "files/unpacking.h"

namespace jigsaw::inline files {

/// Where the numbers of a variable of a classic file stand, big-endian; `array` is of those that are numbers
/// and have at most Shape::kMaxRank dims.
struct ClassicVariable {
  StoredType type = StoredType::kF64;
  std::optional<PlainArray> array;
};

/// The variables of a classic NetCDF file (CDF-1, CDF-2, CDF-5) in NetCDF-C's order, its header checked
/// against the length of the file; nothing for other formats. NetCDF-C trusts it: it reads zeros beyond the
/// end of a truncated file and allocates whatever a list claims to hold.
///
/// @throws DataError  when the header ends early, a list is longer than the file, or the data of a variable
///                    lies beyond the file's end.
/// Source: "NetCDF Classic Format Specification", Unidata; CDF-5 as in PnetCDF.
std::optional<std::vector<ClassicVariable>> read_classic_header(const std::string& path);

}  // namespace jigsaw::inline files
