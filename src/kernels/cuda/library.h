#pragma once
#include <memory>
#include <string>
#include <utility>

#include "array/context.h"
#include "base/error.h"
#include "kernels/cuda/ending.h"

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

/// State of the context that holds what a library made: handles and plans.
template <typename State>
const std::shared_ptr<State>& library_state(Context& context) {
  auto& state = context.state<std::shared_ptr<State>>();
  if (!state) {
    by_library(context, "the start of a library",
               [&] { state = std::shared_ptr<State>(new State, AtTheEnd{ending_of(context)}); });
  }
  return state;
}

}  // namespace jigsaw::inline kernels::cuda
