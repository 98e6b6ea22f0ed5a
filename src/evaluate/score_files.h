#pragma once
#include <functional>
#include <memory>
#include <string>

#include "config/json.h"
#include "predict/output_file.h"

namespace jigsaw::inline evaluate {

/// Where the scores of an evaluation go, on the rank that writes. Either both files get their names or none.
class ScoreFiles {
 public:
  /// Makes the files that are named under their temporary names; "": none.
  /// @throws ConfigError  when both are one, and what OutputFile throws.
  ScoreFiles(const std::string& json, const std::string& netcdf, bool overwrite,
             const std::vector<std::string>& inputs = {});

  /// Writes what is wanted of both. @throws DataError  then there is neither.
  /// @param netcdf  writes and closes the file of this name.
  void write(const std::function<Json()>& json, const std::function<void(const std::string& path)>& netcdf);

 private:
  std::unique_ptr<OutputFile> json_, netcdf_;
};

}  // namespace jigsaw::inline evaluate
