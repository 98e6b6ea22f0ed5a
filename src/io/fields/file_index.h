#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "files/variable_file.h"

namespace jigsaw::inline fields {

/// Descriptions of files (files/file_description.h) that runs before found in their headers, so that
/// thousands of headers are read once, not by each run: one file for each folder of data. What is kept of a
/// file counts as long as it is what it was (fields/file_mark.h).
class FileIndex {
 public:
  /// What is known of these files as they are now. What is kept and cannot be read is not known.
  /// @param cache  folder where it is kept; empty: nothing is known, and keep() does nothing.
  FileIndex(const std::filesystem::path& cache, const std::vector<std::string>& paths, Dimensions dimensions,
            External external);

  /// As FileDescription::to_bytes() gave them; "" where none are known.
  std::string description(const std::string& path) const;
  /// What the header says of a file that this was made with.
  void add(const std::string& path, std::string description);
  /// Keeps what was added for other runs, beside what is there of other files of these folders, as far as
  /// there is room. A description of more than 32 KiB is not kept. A cache that cannot be written is no
  /// error.
  void keep() const;

 private:
  using Descriptions = std::map<std::string, std::string>;  ///< by mark
  struct Place {
    std::string folder;  ///< of the data
    std::string mark;
  };
  std::filesystem::path file_of(const std::string& folder) const;
  Descriptions kept(const std::string& folder) const;

  std::filesystem::path cache_;
  std::map<std::string, Place> places_;         ///< of the files that may be kept
  std::map<std::string, Descriptions> before_;  ///< by folder
  std::map<std::string, Descriptions> added_;   ///< by folder
};

}  // namespace jigsaw::inline fields
