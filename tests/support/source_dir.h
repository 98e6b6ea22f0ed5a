#pragma once
#include <cstdlib>
#include <string>

namespace jigsaw::testing {

/// The root of the source tree; CTest names it.
inline std::string source_dir() {
  const char* folder = std::getenv("JIGSAW_SOURCE_DIR");
  return folder == nullptr ? "." : folder;
}

}  // namespace jigsaw::testing
