#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "base/file.h"

namespace jigsaw::inline files {

/// Where a message of a GRIB file stands, and what its sections are, without what they mean: WMO's manual on
/// codes (No. 306), FM 92 GRIB, editions 1 and 2.
struct GribMessage {
  std::int64_t offset = 0, bytes = 0;  ///< in the file
  std::int64_t reference = 0;  ///< its reference time in seconds since 1970-01-01, without leap seconds
  /// The bytes of its sections before those of the values, without the reference time: what messages of equal
  /// headers hold differs in that time and in the values alone.
  std::string header;
  std::string grid;  ///< the bytes of the section that describes its grid; "" where it has none
};

/// Whether a file begins with a message, or holds a whole one behind at most 64 KiB of other bytes, as a
/// heading of WMO's telecommunication system.
bool holds_grib(const File& file);

/// Calls `use` for every message of a file, in order, of which some hundred bytes are read each. What stands
/// before and between messages is passed over, as far as 64 KiB.
/// @throws DataError  for a file that ends within a message, or whose messages do not end as they say, have
/// another edition, or hold several fields each.
void for_each_grib_message(const File& file, const std::function<void(const GribMessage&)>& use);

}  // namespace jigsaw::inline files
