#pragma once
#include <cstdint>
#include <string>

namespace jigsaw::inline predict {

/// A file that is written under the name PATH.tmp and has its own once it is whole. Errors are DataError.
class OutputFile {
 public:
  /// @throws ConfigError  when there is something of this name that may not be replaced.
  OutputFile(std::string path, bool overwrite);
  /// Removes what is not whole.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  const std::string& path() const { return path_; }
  const std::string& temporary() const { return temporary_; }
  /// What stands under the temporary name, closed, is whole: it goes to the disk and is renamed.
  /// @return  its bytes.
  std::int64_t commit();

 private:
  std::string path_, temporary_;
};

}  // namespace jigsaw::inline predict
