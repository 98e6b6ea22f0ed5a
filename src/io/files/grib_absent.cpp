#include "base/error.h"
#include "base/text.h"
#include "files/grib.h"

namespace jigsaw::inline files {

std::string eccodes_version() {
  return "";
}

std::unique_ptr<VariableFile> open_grib(const std::string& path, External /*external*/) {
  throw DataError(concat("cannot read ", path, ": it is a GRIB file, and this build is without ecCodes"));
}

std::unique_ptr<VariableFile> open_described_grib(const FileDescription& known, External external) {
  return open_grib(known.path, external);
}

}  // namespace jigsaw::inline files
