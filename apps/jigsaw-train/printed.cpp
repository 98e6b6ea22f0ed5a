#include "printed.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "base/file.h"
#include "base/text.h"

namespace jigsaw {

void require_printed() {
  errno = 0;
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::cout && std::ferror(stdout) == 0) return;
  throw DiskError(concat("what goes to stdout cannot be written in whole",
                         errno != 0 ? concat(": ", std::strerror(errno)) : "", "; it ends too early"));
}

}  // namespace jigsaw
