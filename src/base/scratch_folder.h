#pragma once
#include <string>

namespace jigsaw::inline base {

/// A new folder; it goes, with all that is in it, when this does.
class ScratchFolder {
 public:
  /// Where none can be made path() is "".
  /// @param name  begins its name. @param under  where it stands, made if need be; "": $TMPDIR, or /tmp.
  explicit ScratchFolder(const std::string& name, const std::string& under = "");
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace jigsaw::inline base
