#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "files/variable_file.h"

namespace jigsaw::inline fields {

/// expand_patterns() by rank 0, on all ranks. Collective. @throws DataError  on all
std::vector<std::string> expand_together(const std::vector<std::string>& patterns,
                                         const std::filesystem::path& folder, Communicator& communicator);

/// Opens files that all ranks of a job need: one rank reads the header of each (ranks share the files) and
/// tells the others, which open it when they read of it. New files are probed before (fields/new_files.h).
/// Collective, and what throws on one rank throws on all: the first file that cannot be used speaks.
///
/// @param cache  as of probe_new_files(); what headers say is kept there, too (fields/file_index.h), and
///               spares runs of the same files reading them.
/// @return       gives each of `paths`, as often as it is asked for; may outlive the communicator.
FileOpener share_files(std::vector<std::string> paths, Dimensions dimensions, External external,
                       const std::filesystem::path& cache, Communicator& communicator);

}  // namespace jigsaw::inline fields
