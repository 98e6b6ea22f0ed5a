#include "files/full_disk.h"

#include "base/disk.h"
#include "base/file.h"
#include "base/text.h"

namespace jigsaw::inline files {

void refuse_unwritten(const std::string& path, const std::string& otherwise) {
  const int error = disk_error_behind(path);
  refuse_output<DataError>(
      error, concat(path, " cannot be written: ", error != 0 ? reason_of(error, path) : otherwise));
}

}  // namespace jigsaw::inline files
