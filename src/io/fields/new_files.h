#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "files/probe.h"

namespace jigsaw::inline fields {

/// Has the headers of files that no run of this user has read before, and those of Zarr stores each time,
/// read by a process of its own (files/probe.h), where this process has a program for that. Collective: rank
/// 0 sees to it.
///
/// @param cache  folder where files are noted that have been read, by name, size and time of change; empty:
///               none. @throws DataError  on all ranks, when a header ends that process.
void probe_new_files(const std::vector<std::string>& paths, Dimensions dimensions, External external,
                     const std::filesystem::path& cache, Communicator& communicator);

}  // namespace jigsaw::inline fields
