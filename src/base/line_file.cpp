#include "base/line_file.h"

#include <fcntl.h>

namespace jigsaw::inline base {

void LineFile::open() {
  if (file_) return;
  file_.emplace(path_, O_RDWR | O_CREAT);
  size_ = file_->size();
}

void LineFile::append(std::string_view line) {
  open();
  try {
    file_->write(std::as_bytes(std::span(line)), size_);
  } catch (const FileError&) {
    file_->truncate(size_);
    throw;
  }
  size_ += static_cast<std::int64_t>(line.size());
}

}  // namespace jigsaw::inline base
