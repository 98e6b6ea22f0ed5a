#include "predict/output_file.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace jigsaw::inline predict {

namespace fs = std::filesystem;

OutputFile::OutputFile(std::string path, bool overwrite, const std::string& option,
                       const std::vector<std::string>& inputs)
    : path_(std::move(path)), temporary_(path_ + ".tmp") {
  const auto refuse = [&](const std::string& why) {
    throw ConfigError(concat("command line: ", option, " ", path_, " ", why));
  };
  std::error_code ignored;
  const fs::file_status status = fs::symlink_status(path_, ignored);
  if (fs::exists(status)) {
    if (!fs::is_regular_file(status)) refuse("is no regular file, and is not replaced");
    const auto same = [&](const std::string& input) { return fs::equivalent(path_, input, ignored); };
    if (std::ranges::any_of(inputs, same)) refuse("is read, and is not replaced; name another file");
    if (!overwrite) refuse("exists; name another file, or replace it with --overwrite");
  }
  try {
    const File made = fresh_file(temporary_);
  } catch (const FileError& error) {
    refuse(concat("cannot be written: ", error.what()));
  }
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
  rename_path(temporary_, path_);
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
    throw DataError(error.what());
  }
}

void commit_together(std::vector<OutputFile*> files) {
  std::erase(files, nullptr);
  std::size_t renamed = 0;
  try {
    for (const OutputFile* file : files) file->sync();
    for (; renamed < files.size(); ++renamed) files[renamed]->rename();
    for (const OutputFile* file : files) file->sync_name();
  } catch (const FileError& error) {
    std::error_code ignored;
    for (std::size_t i = 0; i < renamed; ++i) fs::remove(files[i]->path(), ignored);
    throw DataError(error.what());
  }
}

}  // namespace jigsaw::inline predict
