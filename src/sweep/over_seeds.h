#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sweep/status_table.h"

namespace jigsaw::inline sweep {

/// Runs that differ in nothing but the key `seed`, and what their scores are together.
struct SeedGroup {
  Assignment set;                   ///< of each of them, but its seed
  std::string name;                 ///< as a run of this set is called
  std::vector<std::size_t> rows;    ///< places of the runs in the table
  std::int64_t count = 0;           ///< runs with a score
  std::optional<double> mean;       ///< of these
  std::optional<double> deviation;  ///< standard deviation over n − 1, of two or more
};

/// In the order of their first runs; none where no two runs differ in their seed alone.
std::vector<SeedGroup> over_seeds(const std::vector<SweepRow>& rows);

}  // namespace jigsaw::inline sweep
