#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>
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
/// Whole chunks are read; those that hold more than is read are kept (files/chunk_cache.h).
class ZarrStore : public VariableFile {
 public:
  static constexpr const char* kFormat = "Zarr";

  /// @throws DataError
  explicit ZarrStore(const std::string& path);
  explicit ZarrStore(const FileDescription& known);
  ~ZarrStore() override;

  std::string_view format() const override { return kFormat; }
  void close() override;
  bool is_open() const override { return true; }

 protected:
  StoredNumbers read_stored(const FileVariable& variable, const Box& box, ByteBuffer& out,
                            std::int64_t& fetched) override;
  std::string own_description() const override { return nlohmann::json(metadata_).dump(); }

 private:
  void add_from_metadata(const nlohmann::json& metadata);
  void add_from_folders(const std::string& folder, const std::string& prefix, int depth);
  void add(const std::string& name, const nlohmann::json& zarray, const nlohmann::json& zattrs);
  nlohmann::json read_json(const std::string& file) const;
  /// Decodes a chunk; what is not there holds the fill value.
  void read_chunk(const FileVariable& variable, const Shape& index, std::span<std::byte> out,
                  std::int64_t& fetched) const;

  std::vector<ZarrArray> arrays_;         ///< FileVariable::id counts them
  std::vector<nlohmann::json> metadata_;  ///< of which they are made
  std::uint64_t key_;                     ///< in the cache of chunks
};

}  // namespace jigsaw::inline files
