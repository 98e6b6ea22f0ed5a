#pragma once
#include <cstdint>
#include <string>
#include <system_error>

#include "base/error.h"

namespace jigsaw::inline base {

// What becomes of an error of output: where the disk takes nothing more it is a DiskError whatever was to be
// written (refuse_output()), else the error of whoever knows what the file is for. So an error that is kept,
// or agreed upon by ranks, has all that counts in its code.

/// Whether an error number of the system is of a disk that takes nothing more, whatever is written to it: it
/// is full (ENOSPC), a quota (EDQUOT) or a limit on the size of files (EFBIG) is reached, it may only be read
/// (EROFS), or it fails or went away (EIO, ESTALE, …).
bool is_of_disk(int error);
bool is_of_disk(const std::error_code& error);
/// Whether that is what an error of output tells: by its code, as DiskError.
bool is_of_disk(const Error& error);

/// Throws the error that becomes of one of output: of the disk it stays, any other is an error of the
/// caller's.
/// @param error  an Error of output, a std::error_code or error number.
template <typename As, typename Cause>
[[noreturn]] void refuse_output(const Cause& error, const std::string& message) {
  if (is_of_disk(error)) throw DiskError(message);
  throw As(message);
}

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
