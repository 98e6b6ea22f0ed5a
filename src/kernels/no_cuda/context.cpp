#include "base/error.h"
#include "kernels/cuda_context.h"
#include "kernels/cuda_links.h"

namespace jigsaw::inline kernels {

namespace {

[[noreturn]] void no_cuda() {
  throw ConfigError(
      "this build has no CUDA kernels: set \"device\" to \"cpu\", or build with -DJIGSAW_CUDA=ON");
}

}  // namespace

CudaMachine cuda_machine() {
  return {};
}
int cuda_runtime_version() {
  return 0;
}
CudaDevice cuda_device(int) {
  no_cuda();
}
CudaDevice current_cuda_device() {
  no_cuda();
}
int cuda_device_count() {
  return 0;
}
CudnnLibrary cudnn_library() {
  return {};
}
PeerLink peer_link(int, int) {
  no_cuda();
}
std::int64_t free_device_bytes() {
  return 0;
}
int cublas_version() {
  return 0;
}
void choose_cuda_device(int) {}
Context make_cuda_context(int, bool) {
  no_cuda();
}

}  // namespace jigsaw::inline kernels
