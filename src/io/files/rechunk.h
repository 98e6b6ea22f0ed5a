#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "files/variable_file.h"

namespace jigsaw::inline files {

/// A copy of a NetCDF file in other chunks.
struct Rechunk {
  std::string from, to;
  /// Extents of chunks along dimensions, by their names; 1 along all others. Variables that have at least two
  /// of these dimensions are chunked so, the rest stays as NetCDF-C lays it out.
  std::map<std::string, std::int64_t> chunks;
  int deflate = 1;  ///< level, after shuffle; 0: not compressed
  External external = External::kRefused;
};

/// Writes NetCDF-4 with the groups, dimensions, attributes and values of the file, these as they are stored,
/// and reads it back: every number and text must be the same. `to` is there when that is so, and else is as
/// it was. A full disk is an error beforehand where its free space tells.
///
/// @param did  called with bytes of values that were written, as they come.
/// @throws DataError  also when the file is no NetCDF, or has types of its own.
void rechunk(const Rechunk& what, const std::function<void(std::int64_t)>& did = {});

}  // namespace jigsaw::inline files
