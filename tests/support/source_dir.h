#pragma once
#include <cstdlib>
#include <string>

namespace jigsaw::testing {

/// The root of the source tree; CTest names it.
inline std::string source_dir() {
  const char* folder = std::getenv("JIGSAW_SOURCE_DIR");
  return folder == nullptr ? "." : folder;
}

/// Where the real data lie that some tests need; they may not be there.
inline std::string real_data_dir() {
  const char* folder = std::getenv("JIGSAW_REAL_DATA");
  return folder == nullptr ? source_dir() + "/../shared/data" : folder;
}

}  // namespace jigsaw::testing
