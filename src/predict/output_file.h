#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/stop_files.h"

namespace jigsaw::inline predict {

/// A file that is written under private_name(PATH) and has its own once it is whole. Errors are DataError,
/// but of files that others made or write meanwhile.
class OutputFile {
 public:
  /// Makes the file of the private name, so that a place that cannot be written shows before any work. What
  /// processes left that died over the same path is removed.
  /// @param option  that named it, such as "--output". @param inputs  what is read, and never replaced.
  /// @param looks   whether for others that write it the folder is looked through, which takes as long as it
  ///                holds files.
  /// @throws ConfigError  when there is something of this name that may not be replaced, another process of
  ///                      this machine is writing it, or its folder takes no file.
  OutputFile(std::string path, bool overwrite, const std::string& option = "--output",
             const std::vector<std::string>& inputs = {}, bool looks = true);
  /// Removes what is not whole, as does a signal that ends the process.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  const std::string& path() const { return path_; }
  const std::string& temporary() const { return temporary_; }
  /// What stands under the temporary name, closed, is whole: it goes to the disk and is renamed.
  /// @param before  done between these two, when it is on the disk. @return  its bytes.
  /// @throws ConfigError  when it may not replace what has the name by now, which another made.
  std::int64_t commit(const std::function<void()>& before = {});

 private:
  friend void commit_together(std::vector<OutputFile*> files);
  std::int64_t sync() const;
  void rename() const;
  void sync_name() const;
  std::string refusal(const std::string& why) const;
  [[noreturn]] void refuse(const std::string& why) const;

  std::string path_, temporary_, option_;
  bool overwrite_;
  StopFile stopped_;
};

/// The same of several, null ones passed over: where one cannot be written whole or renamed, none of them
/// stays.
void commit_together(std::vector<OutputFile*> files);

/// Whether an output is there, which --skip-existing leaves alone, and is none of the inputs.
bool is_written(const std::string& path, const std::vector<std::string>& inputs);

}  // namespace jigsaw::inline predict
