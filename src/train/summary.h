#pragma once
#include <cstdint>
#include <string>

#include "array/context.h"
#include "base/log.h"
#include "comm/communicator.h"
#include "config/json.h"

namespace jigsaw::inline train {

/// What one rank held, read and sent in a run.
struct RankTotals {
  Json coordinates;                        ///< of its place in the mesh, by axis
  std::int64_t parameter_bytes = 0;        ///< as stored
  std::int64_t optimizer_bytes = 0;        ///< as stored
  std::int64_t peak_memory_bytes = 0;      ///< peak_memory_bytes()
  std::int64_t peak_activation_bytes = 0;  ///< the arena's
  std::int64_t file_bytes_read = 0;        ///< values that were read, as they are stored
  std::int64_t file_bytes_fetched = 0;     ///< what the system was asked for to read them
  Traffic traffic;
};

/// An entry of the list "ranks" in summary.json.
Json to_json(const RankTotals& totals, int rank);

/// The most memory this process has held at once. Source: VmHWM of /proc/self/status, which, unlike
/// getrusage, leaves out what the parent held before exec. 0 where there is no such file.
std::int64_t peak_resident_bytes();
/// The most that a rank has held at once where it computes: on the host peak_resident_bytes(), on a device
/// the arena's.
std::int64_t peak_memory_bytes(const Context& context);

/// Gathers "ranks" and writes summary.json, atomically: the members of `results` (final metrics and totals,
/// those of rank 0 count), then "ranks". Collective. When it cannot be written a warning says so: the run
/// itself is done.
void write_summary(const std::string& path, Json results, const RankTotals& own, Communicator& communicator,
                   Log& log);

}  // namespace jigsaw::inline train
