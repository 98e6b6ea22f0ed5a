#include "printed.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <system_error>

#include "base/disk.h"
#include "base/text.h"

namespace jigsaw {

namespace {

/// Of the file that stdout is; "": it is none, or the system does not tell.
std::string file_of_stdout() {
  struct stat status {};
  if (::fstat(STDOUT_FILENO, &status) != 0 || !S_ISREG(status.st_mode)) return "";
  std::error_code unknown;
  return std::filesystem::read_symlink("/proc/self/fd/1", unknown).string();
}

}  // namespace

void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The lowest number that is free is the stream's.
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF) ::open("/dev/null", O_RDWR);
  }
  std::signal(SIGPIPE, SIG_IGN);
}

void require_printed() {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::cout && std::ferror(stdout) == 0) return;
  // It may have been any write before; the next one fails alike.
  const int error = ::write(STDOUT_FILENO, "\n", 1) < 0 ? errno : 0;
  if (error == EPIPE) return;
  const std::string file = file_of_stdout();
  const std::string reason = file.empty() ? std::generic_category().message(error) : reason_of(error, file);
  throw DiskError(concat("what goes to stdout", file.empty() ? "" : concat(", ", file, ","),
                         " cannot be written in whole", error != 0 ? ": " + reason : "",
                         "; it ends too early"));
}

}  // namespace jigsaw
