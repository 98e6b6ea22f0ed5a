#pragma once
#include <list>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "files/variable_file.h"
#include "files/zarr_array.h"

namespace jigsaw::inline files {

/// Whether a folder is a Zarr store of format 2.
bool is_zarr_store(const std::string& path);

/// A Zarr store of format 2 in a folder, as xarray writes it (WeatherBench 2, ARCO-ERA5): its arrays with
/// `_ARRAY_DIMENSIONS` and attributes, consolidated or not. A fill_value other than 0 is also the array's
/// _FillValue, unless an attribute is.
///
/// Whole chunks are read; those used last are kept, up to kCacheBytes or one.
class ZarrStore : public VariableFile {
 public:
  static constexpr std::size_t kCacheBytes = std::size_t{128} << 20;

  /// @throws DataError
  explicit ZarrStore(const std::string& path);

  void close() override;
  bool is_open() const override { return true; }

 protected:
  void read_stored(const FileVariable& variable, const Box& box, std::span<double> out) override;

 private:
  using Chunk = std::vector<char>;
  struct Cached {
    std::string name;
    std::shared_ptr<const Chunk> chunk;
  };

  void add_from_metadata(const nlohmann::json& metadata);
  void add_from_folders(const std::string& folder, const std::string& prefix, int depth);
  void add(const std::string& name, const nlohmann::json& zarray, const nlohmann::json& zattrs);
  nlohmann::json read_json(const std::string& file) const;
  std::shared_ptr<const Chunk> chunk(const FileVariable& variable, const Shape& index);
  std::shared_ptr<const Chunk> read_chunk(const ZarrArray& array, const std::string& name) const;

  std::vector<ZarrArray> arrays_;  ///< FileVariable::id counts them
  std::list<Cached> cache_;        ///< used last first
  std::mutex mutex_;               ///< guards it
};

}  // namespace jigsaw::inline files
