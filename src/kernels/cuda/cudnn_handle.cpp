#include "kernels/cuda/cudnn_handle.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace jigsaw::inline kernels::cuda {

namespace {

constexpr cudnnStatus_t kOfInstallation[] = {CUDNN_STATUS_NOT_INITIALIZED,
                                             CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH,
                                             CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED,
                                             CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER,
                                             CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART,
                                             CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING,
                                             CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE};

/// Why a part that plans are made by cannot be loaded; "" where all are there.
std::string missing_part() {
  for (const char* part : {"graph", "heuristic", "engines_precompiled", "engines_runtime_compiled"}) {
    // What cuDNN has loaded is found by its name, wherever it lies.
    void* const library =
        dlopen(concat("libcudnn_", part, ".so.", CUDNN_MAJOR).c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) return dlerror();
    dlclose(library);
  }
  return "";
}

LibraryError not_whole(const std::string& what, const std::string& words) {
  return LibraryError(
      concat("cuDNN could not ", what, ": ", words),
      concat("parts of cuDNN, or libraries that it needs, are missing or of several versions: "
             "install all of cuDNN ",
             CUDNN_MAJOR,
             ", and let LD_LIBRARY_PATH name first one folder with all "
             "libcudnn_*.so.",
             CUDNN_MAJOR, ", or set \"device\" to \"cpu\""));
}

}  // namespace

std::string words_of(cudnnStatus_t status) {
  std::array<char, 512> why{};
  cudnnGetLastErrorString(why.data(), why.size());
  return concat(cudnnGetErrorString(status), why[0] == '\0' ? "" : "; ", why.data());
}

bool of_installation(const std::string& words) {
  return std::ranges::any_of(kOfInstallation, [&](cudnnStatus_t status) {
    return words.find(cudnnGetErrorString(status)) != std::string::npos;
  });
}

LibraryError failure(const std::string& what, const std::string& words) {
  return of_installation(words) ? not_whole(what, words)
                                : LibraryError(concat("cuDNN could not ", what, ": ", words));
}
void check(cudnnStatus_t status, const char* what) {
  if (status != CUDNN_STATUS_SUCCESS) throw failure(what, words_of(status));
}

void require_whole_installation(const std::string& what, const std::string& said) {
  const std::string words = said.empty() ? missing_part() : said;
  if (!words.empty()) throw not_whole(what, words);
}

CudnnHandle::CudnnHandle() {
  check(cudnnCreate(&handle_), "start");
}
CudnnHandle::~CudnnHandle() {
  cudnnDestroy(handle_);
}

}  // namespace jigsaw::inline kernels::cuda
