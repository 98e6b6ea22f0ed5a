#pragma once
#include <mutex>

namespace jigsaw::inline files {

/// The process-wide lock under which every call into NetCDF, HDF5 and ecCodes is made: many builds of these
/// are not thread-safe, and ranks may be threads of one process. Not recursive; hold it for library calls
/// only, never while converting or waiting.
[[nodiscard]] std::unique_lock<std::mutex> lock_io();

/// To be called before anything else of HDF5: at the end of the process it is not to touch files that it
/// failed to write, which would end it by a signal.
void leave_failed_files_alone();

}  // namespace jigsaw::inline files
