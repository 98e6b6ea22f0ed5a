#include "files/grib.h"

namespace jigsaw::inline files {

std::string eccodes_version() {
  return "";
}

std::optional<FileFormat> grib_format() {
  return {};
}

}  // namespace jigsaw::inline files
