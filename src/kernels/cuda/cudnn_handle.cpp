#include "kernels/cuda/cudnn_handle.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/text.h"

namespace jigsaw::inline kernels::cuda {

namespace {

constexpr cudnnStatus_t kOfInstallation[] = {
    CUDNN_STATUS_NOT_INITIALIZED, CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH,
    CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED, CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING,
    CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE};

/// Why a part that plans are made by cannot be loaded; "" where all are there.
std::string missing_part() {
  Dl_info cudnn{};
  dladdr(dlsym(RTLD_DEFAULT, "cudnnGetVersion"), &cudnn);
  const std::filesystem::path folder =
      std::filesystem::path(cudnn.dli_fname == nullptr ? "" : cudnn.dli_fname).parent_path();
  for (const char* part : {"graph", "heuristic", "engines_precompiled", "engines_runtime_compiled"}) {
    const std::string name = concat("libcudnn_", part, ".so.", CUDNN_MAJOR);
    // What cuDNN has loaded is found by its name, wherever it lies.
    void* library = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
    std::string why = library == nullptr ? dlerror() : "";
    if (why.starts_with(name)) {  // no path is searched that has it; cuDNN also looks beside itself
      library = dlopen((folder / name).c_str(), RTLD_LAZY | RTLD_LOCAL);
      why = library == nullptr ? dlerror() : "";
    }
    if (library == nullptr) return why;
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
             CUDNN_MAJOR, ", and the one with CUDA's libnvrtc, or set \"device\" to \"cpu\""));
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
