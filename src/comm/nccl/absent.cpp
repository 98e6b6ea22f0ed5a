// Programs without NCCL.
#include "base/error.h"
#include "nccl/nccl_communicator.h"

namespace jigsaw::inline nccl {

NcclLibrary nccl_library() {
  return {};
}

std::unique_ptr<Communicator> make_nccl_communicator(std::unique_ptr<Communicator>, const NcclOptions&) {
  throw ConfigError("this build has no NCCL: build with CUDA and -DJIGSAW_NCCL=ON");
}

}  // namespace jigsaw::inline nccl
