#include "predict/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/disk.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace jigsaw::inline predict {

namespace fs = std::filesystem;

namespace {

/// Of two that begin at once one sees the other's file. Held for a moment, and where the file system knows no
/// such locks not at all.
class FolderLock {
 public:
  explicit FolderLock(const std::string& path) {
    constexpr int kMostTries = 100;
    const std::string folder = fs::path(path).parent_path().string();
    descriptor_ = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < kMostTries && ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
         ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ~FolderLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace

OutputFile::OutputFile(std::string path, bool overwrite, const std::string& option,
                       const std::vector<std::string>& inputs, bool looks)
    : path_(std::move(path)),
      temporary_(private_name(path_)),
      option_(option),
      overwrite_(overwrite),
      stopped_(temporary_) {
  std::error_code ignored;
  const fs::file_status status = fs::symlink_status(path_, ignored);
  if (fs::exists(status)) {
    if (!fs::is_regular_file(status)) refuse("is no regular file, and is not replaced");
    const auto same = [&](const std::string& input) { return fs::equivalent(path_, input, ignored); };
    if (std::ranges::any_of(inputs, same)) refuse("is read, and is not replaced; name another file");
    if (!overwrite) refuse("exists; name another file, or replace it with --overwrite");
  }
  const FolderLock alone(path_);
  if (const std::string other = looks ? other_writer(path_) : ""; !other.empty())
    refuse(concat("is being written by ", other, "; wait for its end, or name another file"));
  try {
    const File made = fresh_file(temporary_);
  } catch (const FileError& error) {
    refuse_output<ConfigError>(error, refusal(concat("cannot be written: ", error.what())));
  }
}

std::string OutputFile::refusal(const std::string& why) const {
  return concat("command line: ", option_, " ", path_, " ", why);
}

void OutputFile::refuse(const std::string& why) const {
  throw ConfigError(refusal(why));
}

OutputFile::~OutputFile() {
  std::error_code ignored;
  if (!fs::is_directory(fs::symlink_status(temporary_, ignored))) fs::remove(temporary_, ignored);
}

std::int64_t OutputFile::sync() const {
  File file(temporary_, O_RDWR);
  file.sync();
  return file.size();
}

void OutputFile::rename() const {
  if (overwrite_) return rename_path(temporary_, path_);
  if (!rename_new(temporary_, path_))
    refuse("was made by another process meanwhile, and is not replaced; name another file, or --overwrite");
}

void OutputFile::sync_name() const {
  sync_folder(fs::absolute(path_).parent_path().string());
}

std::int64_t OutputFile::commit(const std::function<void()>& before) {
  try {
    const std::int64_t bytes = sync();
    if (before) before();
    rename();
    sync_name();
    return bytes;
  } catch (const FileError& error) {
    refuse_output<DataError>(error, error.what());
  }
}

void commit_together(std::vector<OutputFile*> files) {
  std::erase(files, nullptr);
  std::size_t renamed = 0;
  try {
    for (const OutputFile* file : files) file->sync();
    for (; renamed < files.size(); ++renamed) files[renamed]->rename();
    for (const OutputFile* file : files) file->sync_name();
  } catch (const Error& error) {
    std::error_code ignored;
    for (std::size_t i = 0; i < renamed; ++i) fs::remove(files[i]->path(), ignored);
    if (dynamic_cast<const FileError*>(&error) == nullptr) throw;
    refuse_output<DataError>(error, error.what());
  }
}

bool is_written(const std::string& path, const std::vector<std::string>& inputs) {
  std::error_code ignored;
  const auto same = [&](const std::string& input) { return fs::equivalent(path, input, ignored); };
  return fs::is_regular_file(path, ignored) && std::ranges::none_of(inputs, same);
}

}  // namespace jigsaw::inline predict
