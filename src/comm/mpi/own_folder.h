#pragma once
#include <string>

#include "base/scratch_folder.h"

namespace jigsaw::inline comm {

/// A folder for one job of Open MPI till 4 to keep its own in, and the variable of the environment that tells
/// it so. In the one that all jobs of a user share, a job that begins fails when one that ends removes the
/// folder between its looks (opal_os_dirpath_create()), as runs of a sweep do. The variable is TMPDIR, which
/// counts least, where the user does not name Open MPI's folder in the environment.
class OwnMpiFolder {
 public:
  OwnMpiFolder();

  const char* variable() const { return variable_; }
  /// "" where none can be made.
  const std::string& path() const { return folder_.path(); }

 private:
  const char* variable_;
  ScratchFolder folder_;
};

}  // namespace jigsaw::inline comm
