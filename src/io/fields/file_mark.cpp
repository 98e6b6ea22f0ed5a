#include "fields/file_mark.h"

#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "files/digest.h"

namespace jigsaw::inline fields {

std::string file_mark(const std::string& path, Dimensions dimensions, External external) {
  try {
    const FileState state = file_state(path);
    return digest_of_text(concat(std::filesystem::absolute(path).lexically_normal().string(), " ",
                                 state.bytes, " ", state.inode, " ", state.seconds, ".", state.nanoseconds,
                                 " ", dimensions == Dimensions::kByName, external == External::kFollowed));
  } catch (const FileError&) {
    return "";
  }
}

}  // namespace jigsaw::inline fields
