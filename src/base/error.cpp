#include "base/error.h"

namespace jigsaw {

void fail(const std::string& message) {
  throw Error(ExitCode::kInternal, message);
}

}  // namespace jigsaw
