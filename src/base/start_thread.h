#pragma once
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline base {

/// Whatever starts a thread: std::async, a std::thread that is made.
///
/// @param purpose  of the thread: "to write a checkpoint".
/// @throws Error  of code kInternal where the system has no thread for us.
template <typename Start>
decltype(auto) start_thread(const char* purpose, Start&& start) {
  try {
    return std::forward<Start>(start)();
  } catch (const std::system_error& error) {
    throw Error(ExitCode::kInternal,
                concat("cannot start a thread (", purpose, "): ", error.code().message(),
                       "; look at the limits of processes and memory, ulimit -u and -v"));
  }
}

}  // namespace jigsaw::inline base
