#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <exception>

namespace jigsaw::testing {

/// Runs `work` in a process of its own, which ends with 0 where it returns true, else with 1, and after 240 s
/// in any case.
template <typename Work>
pid_t in_child(const Work& work) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::alarm(240);
  try {
    ::_exit(work() ? 0 : 1);
  } catch (const std::exception&) {
    ::_exit(1);
  }
}

/// As waitpid(2) gives it, when it has ended.
inline int exit_status(pid_t child) {
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

}  // namespace jigsaw::testing
