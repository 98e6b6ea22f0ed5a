#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace jigsaw::inline predict {

/// A file that is written under the name PATH.tmp and has its own once it is whole. Errors are DataError.
class OutputFile {
 public:
  /// Makes PATH.tmp, anew if there is one, so that a place that cannot be written shows before any work.
  /// @param option  that named it, such as "--output". @param inputs  what is read, and never replaced.
  /// @throws ConfigError  when there is something of this name that may not be replaced, or its folder takes
  ///                      no file.
  OutputFile(std::string path, bool overwrite, const std::string& option = "--output",
             const std::vector<std::string>& inputs = {});
  /// Removes what is not whole.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  const std::string& path() const { return path_; }
  const std::string& temporary() const { return temporary_; }
  /// What stands under the temporary name, closed, is whole: it goes to the disk and is renamed.
  /// @param before  done between these two, when it is on the disk. @return  its bytes.
  std::int64_t commit(const std::function<void()>& before = {});

 private:
  friend void commit_together(std::vector<OutputFile*> files);
  std::int64_t sync() const;
  void rename() const;
  void sync_name() const;

  std::string path_, temporary_;
};

/// The same of several, null ones passed over: where one cannot be written whole or renamed, none of them
/// stays.
void commit_together(std::vector<OutputFile*> files);

}  // namespace jigsaw::inline predict
