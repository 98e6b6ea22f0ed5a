#pragma once
#include <string>

namespace jigsaw::inline files {

/// Checks the header of a classic NetCDF file (CDF-1, CDF-2, CDF-5) against the length of the file, and does
/// nothing for other formats. NetCDF-C trusts it: it reads zeros beyond the end of a truncated file and
/// allocates whatever a list claims to hold.
///
/// @throws DataError  when the header ends early, a list is longer than the file, or the data of a variable
///                    lies beyond the file's end.
/// Source: "NetCDF Classic Format Specification", Unidata; CDF-5 as in PnetCDF.
void check_classic_file(const std::string& path);

}  // namespace jigsaw::inline files
