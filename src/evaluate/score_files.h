#pragma once
#include <functional>
#include <memory>
#include <string>

#include "config/json.h"
#include "predict/output_file.h"

namespace jigsaw::inline evaluate {

/// Files that are written while scores are formed; "": none.
struct MapPaths {
  std::string climate, errors;  ///< maps of both
  std::string starts = {};      ///< scores of each forecast
  std::string stations = {};    ///< scores at each station
};

/// Where the scores of an evaluation go, on the rank that writes. Either all files get their names or none.
class ScoreFiles {
 public:
  /// Makes the files that are named under their temporary names; "": none.
  /// @throws ConfigError  when two are one, and what OutputFile throws.
  ScoreFiles(const std::string& json, const std::string& netcdf, bool overwrite,
             const std::vector<std::string>& inputs = {}, const MapPaths& maps = {});

  /// The names under which maps and scores of each forecast or station are written; what is written there is
  /// closed before write(). "": none.
  std::string climate_maps() const { return climate_maps_ ? climate_maps_->temporary() : ""; }
  std::string error_maps() const { return error_maps_ ? error_maps_->temporary() : ""; }
  std::string starts() const { return starts_ ? starts_->temporary() : ""; }
  std::string stations() const { return stations_ ? stations_->temporary() : ""; }
  /// Writes what is wanted of the others. @throws DataError  then there is none.
  /// @param netcdf  writes and closes the file of this name.
  void write(const std::function<Json()>& json, const std::function<void(const std::string& path)>& netcdf);

 private:
  std::unique_ptr<OutputFile> json_, netcdf_, climate_maps_, error_maps_, starts_, stations_;
};

}  // namespace jigsaw::inline evaluate
