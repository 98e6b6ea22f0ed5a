#include "evaluate/score_files.h"

#include <fcntl.h>

#include <filesystem>
#include <span>
#include <utility>

#include "base/disk.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace jigsaw::inline evaluate {

namespace {

std::filesystem::path place(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal();
}

std::unique_ptr<OutputFile> output_at(const std::string& path, bool overwrite, const std::string& option,
                                      const std::vector<std::string>& inputs) {
  return path.empty() ? nullptr : std::make_unique<OutputFile>(path, overwrite, option, inputs);
}

void write_text(const std::string& path, const std::string& text) {
  try {
    File(path, O_WRONLY).write(std::as_bytes(std::span(text)), 0);
  } catch (const FileError& error) {
    refuse_output<DataError>(error, error.what());
  }
}

}  // namespace

ScoreFiles::ScoreFiles(const std::string& json, const std::string& netcdf, bool overwrite,
                       const std::vector<std::string>& inputs, const MapPaths& maps) {
  const std::vector<std::pair<const char*, std::string>> named = {{"--json", json},
                                                                  {"--netcdf", netcdf},
                                                                  {"--maps", maps.climate},
                                                                  {"--error-maps", maps.errors},
                                                                  {"--by-start", maps.starts},
                                                                  {"--station-scores", maps.stations}};
  for (std::size_t i = 0; i < named.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (named[i].second.empty() || named[j].second.empty()) continue;
      if (place(named[i].second) != place(named[j].second)) continue;
      throw ConfigError(
          concat("command line: ", named[j].first, " and ", named[i].first, " both name ", named[j].second));
    }
  }
  json_ = output_at(json, overwrite, "--json", inputs);
  netcdf_ = output_at(netcdf, overwrite, "--netcdf", inputs);
  climate_maps_ = output_at(maps.climate, overwrite, "--maps", inputs);
  error_maps_ = output_at(maps.errors, overwrite, "--error-maps", inputs);
  starts_ = output_at(maps.starts, overwrite, "--by-start", inputs);
  stations_ = output_at(maps.stations, overwrite, "--station-scores", inputs);
}

void ScoreFiles::write(const std::function<Json()>& json,
                       const std::function<void(const std::string& path)>& netcdf) {
  if (json_)
    write_text(json_->temporary(), json().dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  if (netcdf_) netcdf(netcdf_->temporary());
  commit_together(
      {json_.get(), netcdf_.get(), climate_maps_.get(), error_maps_.get(), starts_.get(), stations_.get()});
}

}  // namespace jigsaw::inline evaluate
