#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "files/variable_file.h"
#include "files/zarr_array.h"
#include "files/zarr_cells.h"
#include "files/zarr_chunk_files.h"

namespace jigsaw::inline files {

/// A Zarr store in a folder, as xarray writes it (WeatherBench 2, ARCO-ERA5): its arrays with their
/// attributes, consolidated or not; folders that are links are passed over where the metadata does not name
/// them. Dimensions are named by `_ARRAY_DIMENSIONS` in format 2, by `dimension_names` in format 3. In format
/// 2 a fill_value is also the array's _FillValue, unless an attribute is, but 0 of numbers that are not
/// packed; in format 3 only the attribute says what is missing, of floats as base64 of a little-endian
/// double, too. Chunks that are not there are missing where the fill_value is null.
///
/// A data set of anemoi-datasets is shown with the rows and columns of its points: `data` [time, variable,
/// ensemble, latitude, longitude] with these as coordinates, or [..., y, x] where latitudes and longitudes
/// are those of each point; of points that are no rows and columns [..., cell], with latitudes and longitudes
/// along it.
///
/// Whole chunks are read, of shards those that are needed; chunks that hold more than is read are kept
/// (files/chunk_cache.h).
class ZarrStore : public VariableFile {
 public:
  static constexpr const char* kFormat = "Zarr";

  /// @param external  whether chunks may stand where links lead that leave the store. @throws DataError
  explicit ZarrStore(const std::string& path, External external = External::kRefused);
  explicit ZarrStore(const FileDescription& known, External external = External::kRefused);
  ~ZarrStore() override;

  std::string_view format() const override { return kFormat; }
  void close() override;
  bool is_open() const override { return true; }

 protected:
  StoredNumbers read_stored(const FileVariable& variable, const Box& box, ByteBuffer& out,
                            std::int64_t& fetched) override;
  std::vector<std::string> read_stored_texts(const FileVariable& variable) override;
  std::string own_description() const override;

 private:
  /// What reads the metadata gives the attributes of the root.
  nlohmann::json add_from_metadata(const nlohmann::json& metadata);
  void add_from_folders(const std::string& folder, const std::string& prefix, int depth);
  void add_format2(const std::string& name, const nlohmann::json& zarray, const nlohmann::json& zattrs);
  nlohmann::json read_format3();
  void add_format3(const std::string& name, const nlohmann::json& metadata);
  ZarrArray array_of(const nlohmann::json& metadata, const std::string& name) const;
  void add(const std::string& name, const nlohmann::json& metadata, const nlohmann::json& attributes,
           const nlohmann::json& dimensions);
  void name_axes(const nlohmann::json& attributes);
  void show_cells(const nlohmann::json& attributes);
  void add_line(const FileVariable& of, CellsAs as, const std::string& name, std::int64_t length,
                std::int64_t columns);
  FileVariable* find_along(const std::string& name, const std::vector<std::string>& dimensions);
  static void add_attribute(FileVariable& variable, const std::string& attribute,
                            const nlohmann::json& value);
  void add_attributes(FileVariable& variable, const nlohmann::json& attributes) const;
  void read_array(const FileVariable& variable, const Box& box, std::span<std::byte> out,
                  std::int64_t& fetched);
  /// @throws DataError  for integers, where none is known.
  double fill_of(const FileVariable& variable, const Shape& index) const;
  /// Decodes a chunk; what is not there holds the fill value.
  void read_chunk(const FileVariable& variable, const Shape& index, std::span<std::byte> out,
                  std::int64_t& fetched);
  /// The chunk as it stands in the store; nothing where it is not there.
  std::optional<std::string> packed_chunk(const FileVariable& variable, const Shape& index, std::int64_t most,
                                          std::int64_t& fetched);
  std::optional<std::string> packed_in_shard(const FileVariable& variable, const Shape& index,
                                             const std::string& name, std::int64_t most,
                                             std::int64_t& fetched) const;

  bool format3_;
  int groups_ = 0;  ///< whose folders were looked through
  // FileVariable::id counts these three.
  std::vector<ZarrArray> arrays_;
  std::vector<nlohmann::json> metadata_;  ///< of which they are made; null for names
  std::vector<ZarrPlace> places_;
  std::vector<std::string> channels_;  ///< the names of a data set of anemoi-datasets
  std::uint64_t key_;                  ///< in the cache of chunks
  ZarrChunkFiles chunk_files_;
};

}  // namespace jigsaw::inline files
