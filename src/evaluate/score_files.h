#pragma once
#include <functional>
#include <memory>
#include <string>

#include "config/json.h"
#include "predict/output_file.h"

namespace jigsaw::inline evaluate {

/// Where the scores of an evaluation go, on the rank that writes. Either all files get their names or none.
class ScoreFiles {
 public:
  /// Makes the files that are named under their temporary names; "": none.
  /// @throws ConfigError  when two are one, and what OutputFile throws.
  ScoreFiles(const std::string& json, const std::string& netcdf, bool overwrite,
             const std::vector<std::string>& inputs = {}, const std::string& maps = "");

  /// The name under which maps are written; what is written there is closed before write(). "": none.
  std::string maps() const { return maps_ ? maps_->temporary() : ""; }
  /// Writes what is wanted of both others. @throws DataError  then there is none.
  /// @param netcdf  writes and closes the file of this name.
  void write(const std::function<Json()>& json, const std::function<void(const std::string& path)>& netcdf);

 private:
  std::unique_ptr<OutputFile> json_, netcdf_, maps_;
};

}  // namespace jigsaw::inline evaluate
