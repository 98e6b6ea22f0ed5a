#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace jigsaw::inline base {

/// What tells whether a file is still what it was: its place on the disk, its length, and when it was last
/// written to.
struct FileState {
  std::uint64_t device = 0, inode = 0;
  std::int64_t bytes = 0;
  std::int64_t seconds = 0, nanoseconds = 0;

  bool operator==(const FileState&) const = default;
};

/// What tells whether a regular file is the one that had this name before, as it was: a text of its absolute
/// name, size and place on the disk, and of when its contents and its state changed last, which nobody sets
/// back. @throws FileError  when there is none.
std::string file_identity(const std::string& path);

/// Of a regular file, which is not opened. @throws FileError  when there is none.
FileState file_state(const std::string& path);

/// Whether there is anything of this name, or where a link of this name leads. @throws FileError  when it is
/// no regular file, or that cannot be told.
bool is_file(const std::string& path);

/// An open regular file, not inherited by child processes; closed with the value. All errors are FileError.
class File {
 public:
  /// A pipe, device or socket is refused and never waited for; so is a folder without O_DIRECTORY.
  /// @param flags  of open(2): O_RDONLY, O_RDWR | O_CREAT, …; new files get the mode 0666 less the umask.
  File(std::string path, int flags);
  ~File();
  File(File&& other) noexcept
      : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&& other) noexcept;

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  std::int64_t size() const;

  /// Takes the space of the first `bytes` bytes now, where the file system can, so that a full disk shows
  /// before anything is written.
  void reserve(std::int64_t bytes);
  void write(std::span<const std::byte> bytes, std::int64_t offset);
  /// Fills `bytes` whole; an error when the file ends before.
  void read(std::span<std::byte> bytes, std::int64_t offset) const;
  void truncate(std::int64_t bytes);
  /// Returns when everything written is on the disk.
  void sync();

 private:
  [[noreturn]] void refuse(const char* what) const;
  void check_kind(int flags) const;

  std::string path_;
  int descriptor_ = -1;
};

/// An empty file made anew, for reading and writing: whatever had its name is neither followed nor written
/// to.
File fresh_file(const std::string& path);

/// The name beside PATH under which this process, and no other on any machine, writes what becomes PATH:
/// "PATH.tmp-node12-4711". Names that would be too long are cut.
std::string private_name(const std::string& path);

/// What other processes of this machine have under private names of PATH: "process 4711" of one that lives.
/// What dead ones left is removed, with what stands beside it under that name and a dot. Where a folder
/// cannot be read, and of other machines, nothing is known.
std::string other_writer(const std::string& path);
/// Removes what dead processes of this machine left in a folder under private names of whatever.
void remove_left(const std::string& folder) noexcept;

/// A file that takes the place of PATH whole or not at all, whenever the process or the machine dies: under
/// private_name(PATH) until commit(), and gone with the value if that was not called. What dead processes
/// left under other such names goes.
class Replacement {
 public:
  /// @throws FileError  also when PATH is there and no regular file: a device, a folder, …
  explicit Replacement(std::string path);
  ~Replacement();
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  /// Libraries write to it by its path(), too.
  File& file() { return file_; }
  /// Syncs the file, gives it its name, and syncs the folder. @throws FileError  and PATH is as it was.
  void commit();

 private:
  friend void write_text_atomically(const std::string& path, std::string_view text);
  Replacement(std::string path, File file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  File file_;
  bool committed_ = false;
};

/// The whole text of a file. FileError when it cannot be read or is longer than `max_bytes`.
std::string read_text(const std::string& path, std::int64_t max_bytes);

/// Replaces a file by this text, as a Replacement does, but looks for nothing that others left.
void write_text_atomically(const std::string& path, std::string_view text);

/// Renames a file or folder; what has the new name is replaced if it is a file.
void rename_path(const std::string& from, const std::string& to);
/// Renames a file unless there is something of the new name by now. @return  whether it was renamed.
bool rename_new(const std::string& from, const std::string& to);

/// Returns when the names in a folder are on the disk as they are now.
void sync_folder(const std::string& path);

}  // namespace jigsaw::inline base
