#include "predict/output_file.h"

#include <fcntl.h>

#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace jigsaw::inline predict {

namespace fs = std::filesystem;

OutputFile::OutputFile(std::string path, bool overwrite)
    : path_(std::move(path)), temporary_(path_ + ".tmp") {
  std::error_code ignored;
  const fs::file_status status = fs::symlink_status(path_, ignored);
  if (!fs::exists(status)) return;
  if (!overwrite)
    throw ConfigError(concat("command line: --output ", path_,
                             " exists; name another file, or replace it with --overwrite"));
  if (!fs::is_regular_file(status))
    throw ConfigError(concat("command line: --output ", path_, " is no regular file, and is not replaced"));
}

OutputFile::~OutputFile() {
  std::error_code ignored;
  fs::remove(temporary_, ignored);
}

std::int64_t OutputFile::commit() {
  try {
    File file(temporary_, O_RDWR);
    file.sync();
    const std::int64_t bytes = file.size();
    rename_path(temporary_, path_);
    sync_folder(fs::absolute(path_).parent_path().string());
    return bytes;
  } catch (const FileError& error) {
    throw DataError(error.what());
  }
}

}  // namespace jigsaw::inline predict
