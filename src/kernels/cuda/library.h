#pragma once
#include <cuda_runtime_api.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "array/context.h"
#include "base/error.h"

// How this program calls cuBLASLt and cuDNN. Libraries have CUDA runtimes of their own, whose errors this
// program's does not know, and hear of a device that has failed before it does: where one of their calls
// fails the device is asked first.

namespace jigsaw::inline kernels::cuda {

/// A call of a library has failed, in the library's words. Thrown by what does not know the context, within
/// by_library().
class LibraryError : public Error {
 public:
  /// @param remedy  what to install, of words that say that the installation is not whole; else "".
  explicit LibraryError(const std::string& words, std::string remedy = "")
      : Error(remedy.empty() ? ExitCode::kInternal : ExitCode::kConfig, words), remedy_(std::move(remedy)) {}

  const std::string& remedy() const { return remedy_; }

 private:
  std::string remedy_;
};

/// Throws the Error that work of the context's stream has come to, of the launch where launches are waited
/// for. Where it has come to none, ConfigError of the library's words and the remedy; or Error of the words
/// alone and full_device_text(), which may be behind words of any kind.
/// @param work  names it.
[[noreturn]] void library_failed(const Context& context, const std::string& work, const LibraryError& error);

/// What `call` returns, which calls a library; what is said where that fails is library_failed()'s.
template <typename Call>
decltype(auto) by_library(const Context& context, const std::string& work, const Call& call) {
  try {
    return call();
  } catch (const LibraryError& error) {
    library_failed(context, work, error);
  }
}

/// The end of a context: the work in its streams is waited for, once and not for ever, since the device may
/// hang, or wait for ranks that are gone.
class Ending {
 public:
  explicit Ending(std::span<const cudaStream_t> streams) : streams_(streams.begin(), streams.end()) {}

  /// Whether all of it comes to its end, good or bad. Where it does not, what the context has is left as it
  /// is: that work may use it, and CUDA and its libraries wait for the device before they destroy or free.
  bool comes();

 private:
  std::vector<cudaStream_t> streams_;
  std::optional<bool> comes_;
};
std::shared_ptr<Ending> ending_of(const Context& context);

/// Deletes what a context has, unless that is to be left.
struct AtTheEnd {
  std::shared_ptr<Ending> ending;

  template <typename T>
  void operator()(const T* held) const {
    if (ending->comes()) delete held;
  }
};

/// State of the context that holds what a library made: handles and plans.
template <typename State>
const std::shared_ptr<State>& library_state(Context& context) {
  auto& state = context.state<std::shared_ptr<State>>();
  if (!state) {
    by_library(context, "a library",
               [&] { state = std::shared_ptr<State>(new State, AtTheEnd{ending_of(context)}); });
  }
  return state;
}

}  // namespace jigsaw::inline kernels::cuda
