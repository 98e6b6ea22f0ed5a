#include "base/scratch_folder.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace jigsaw::inline base {

ScratchFolder::ScratchFolder(const std::string& name, const std::string& under) {
  std::error_code unusable;
  std::filesystem::path folder = under;
  if (under.empty()) folder = std::filesystem::temp_directory_path(unusable);
  if (!unusable) std::filesystem::create_directories(folder, unusable);
  std::string path = (folder / (name + ".XXXXXX")).string();
  if (::mkdtemp(path.data()) != nullptr) path_ = path;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace jigsaw::inline base
