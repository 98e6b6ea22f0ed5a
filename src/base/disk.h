#pragma once
#include <cstdint>
#include <string>
#include <system_error>

#include "base/error.h"

namespace jigsaw::inline base {

/// Whether an error number of the system is of a disk that takes nothing more, whatever is written to it: it
/// is full (ENOSPC), a quota (EDQUOT) or a limit on the size of files (EFBIG) is reached, it may only be read
/// (EROFS), or it fails or went away (EIO, ESTALE, …).
bool is_of_disk(int error);
bool is_of_disk(const std::error_code& error);
/// Whether that is what the error tells.
bool is_of_disk(const Error& error);

/// The system's words for an error number; of a full disk with the folder, and with what it has left and what
/// is needed: "No space left on device: the file system of /x has 4.0 KiB of 64 MiB free, and 12 MiB are
/// needed".
/// @param path    what was to be written; it need not be there.
/// @param needed  bytes; 0: not known.
std::string reason_of(int error, const std::string& path, std::int64_t needed = 0);

/// The error number, of those of is_of_disk(), for which a library that does not say why could not write a
/// file: errno, if it is one, or ENOSPC where the disk has no room; else 0.
int disk_error_behind(const std::string& path);

}  // namespace jigsaw::inline base
