#include "base/error.h"

namespace jigsaw::inline base {

void fail(const std::string& message) {
  throw Error(ExitCode::kInternal, message);
}

}  // namespace jigsaw::inline base
