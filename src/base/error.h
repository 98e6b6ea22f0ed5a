#pragma once
#include <stdexcept>
#include <string>

namespace jigsaw::inline base {

/// Exit codes of the executable; part of its contract with scripts.
enum class ExitCode : int {
  kDone = 0,
  kInternal = 1,
  kConfig = 2,
  kData = 3,
  kCheckpoint = 4,  ///< a checkpoint, or a disk that takes nothing of what is to be written
  kNonFinite = 5,
  kStopped = 75,
};

/// Base of all errors of this project: one sentence that says what, where and
/// what would be right, and the exit code it leads to.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }
  /// The same error in other words: an error may be kept as a value, and be told later of what it befell.
  Error saying(const std::string& message) const { return {code_, message}; }

 private:
  ExitCode code_;
};

/// Bad command line or configuration. The message names the dotted path of the key.
class ConfigError : public Error {
 public:
  explicit ConfigError(const std::string& message) : Error(ExitCode::kConfig, message) {}
};

/// Data files that cannot be used. The message names the file.
class DataError : public Error {
 public:
  explicit DataError(const std::string& message) : Error(ExitCode::kData, message) {}
};

/// A checkpoint that cannot be used or written. The message names the path.
class CheckpointError : public Error {
 public:
  explicit CheckpointError(const std::string& message) : Error(ExitCode::kCheckpoint, message) {}
};

/// A file or folder that cannot be opened, read or written: "cannot write PATH: No space left on device".
/// Callers that know what the file is for turn it into the error of their exit code.
class FileError : public Error {
 public:
  explicit FileError(const std::string& message) : FileError(ExitCode::kInternal, message) {}

 protected:
  FileError(ExitCode code, const std::string& message) : Error(code, message) {}
};

/// What could not be written since the disk takes nothing more (is_of_disk() in base/disk.h): one exit code,
/// whatever it was.
class DiskError : public FileError {
 public:
  explicit DiskError(const std::string& message) : FileError(ExitCode::kCheckpoint, message) {}
};

/// Loss or gradient not finite for too many steps in a row.
class NonFiniteError : public Error {
 public:
  explicit NonFiniteError(const std::string& message) : Error(ExitCode::kNonFinite, message) {}
};

/// Shapes, letters or layouts that do not fit together; the message prints them.
class ShapeError : public Error {
 public:
  explicit ShapeError(const std::string& message) : Error(ExitCode::kInternal, message) {}
};

/// A communicator that failed, was misused, or lost a rank.
class CommError : public Error {
 public:
  explicit CommError(const std::string& message) : Error(ExitCode::kInternal, message) {}
};

/// A communicator that came to a bad end for what seems to have happened on another rank, whose own error
/// says more.
class PeerError : public CommError {
 public:
  using CommError::CommError;
};

/// There is less memory than an array takes. The message says whose memory.
class OutOfMemoryError : public Error {
 public:
  explicit OutOfMemoryError(const std::string& message) : Error(ExitCode::kInternal, message) {}
};

/// Throws an Error of code kInternal with this message; for broken invariants.
[[noreturn]] void fail(const std::string& message);

/// Throws through fail() unless `condition` holds.
inline void require(bool condition, const char* message) {
  if (!condition) fail(message);
}

}  // namespace jigsaw::inline base
