#include "fields/file_mark.h"

#include "base/file.h"
#include "base/text.h"
#include "files/digest.h"

namespace jigsaw::inline fields {

std::string file_mark(const std::string& path, Dimensions dimensions, External external) {
  try {
    return digest_of_text(
        concat(file_identity(path), " ", dimensions == Dimensions::kByName, external == External::kFollowed));
  } catch (const FileError&) {
    return "";
  }
}

}  // namespace jigsaw::inline fields
