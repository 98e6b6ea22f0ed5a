#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <string_view>

#include "base/text.h"
#include "files/zarr_array.h"

namespace jigsaw::inline files {

namespace {

using Json = nlohmann::json;

/// A codec, a grid or an encoding: its name, alone or with what configures it.
struct Extension {
  std::string name;
  Json configuration = Json::object();

  explicit Extension(const Json& json) {
    name = zarr_metadata::word_of(json.is_object() ? json.value("name", Json()) : json);
    if (json.is_object() && json.value("configuration", Json()).is_object())
      configuration = json["configuration"];
  }
  std::string text(const char* key, const std::string& otherwise) const {
    const Json value = configuration.value(key, Json(otherwise));
    return value.is_string() ? value.get<std::string>() : "";
  }
};

std::optional<StoredType> type_of(const std::string& name) {
  static constexpr std::array<std::pair<std::string_view, const char*>, 12> kNames = {{{"bool", "b1"},
                                                                                       {"uint8", "u1"},
                                                                                       {"int8", "i1"},
                                                                                       {"int16", "i2"},
                                                                                       {"uint16", "u2"},
                                                                                       {"int32", "i4"},
                                                                                       {"uint32", "u4"},
                                                                                       {"int64", "i8"},
                                                                                       {"uint64", "u8"},
                                                                                       {"float16", "f2"},
                                                                                       {"float32", "f4"},
                                                                                       {"float64", "f8"}}};
  const auto* const found =
      std::find_if(kNames.begin(), kNames.end(), [&](const auto& type) { return type.first == name; });
  return found == kNames.end() ? std::nullopt : zarr_metadata::type_of(found->second);
}

/// A number, or the bits of one, "0x7fc00000".
std::optional<double> fill_of(const Json& value, StoredType type) {
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  const bool real = type == StoredType::kF16 || type == StoredType::kF32 || type == StoredType::kF64;
  if (!text.starts_with("0x") || !real) return zarr_metadata::fill_of(value);
  std::uint64_t bits = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + 2, end, bits, 16);
  if (error != std::errc() || stop != end) return std::nullopt;
  if (type == StoredType::kF16) return static_cast<double>(Half::of_bits(static_cast<std::uint16_t>(bits)));
  if (type == StoredType::kF32) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  return std::bit_cast<double>(bits);
}

class Reader {
 public:
  Reader(const Json& metadata, const std::string& what) : metadata_(metadata), what_(what) {}

  ZarrArray read() {
    check_node();
    array_.shape = zarr_metadata::extents(metadata_, "shape", 0, what_);
    const Extension grid(metadata_.value("chunk_grid", Json()));
    const bool regular = grid.name == "regular";
    if (regular) {
      array_.chunks = zarr_metadata::extents(grid.configuration, "chunk_shape", 1, what_);
    } else {
      array_.refuse(concat("its grid of chunks is \"", grid.name, "\", not regular"));
      array_.chunks = Shape::filled(array_.shape.rank(), 1);
    }
    const Extension type(metadata_.value("data_type", Json()));
    array_.type = type_of(type.name);
    if (type.name == "numpy.datetime64" && type.configuration.value("scale_factor", Json(1)) == 1)
      array_.time_unit = zarr_metadata::time_unit(type.text("unit", ""));
    if (!array_.time_unit.empty()) array_.type = StoredType::kI64;
    read_names();
    if (array_.type) {
      array_.fill = fill_of(metadata_.value("fill_value", Json()), *array_.type);
      if (regular) read_codecs(metadata_.value("codecs", Json()), true);
    }
    zarr_metadata::check(array_, what_);
    return array_;
  }

 private:
  void check_node() {
    if (!metadata_.is_object() || metadata_.value("zarr_format", Json()) != 3 ||
        metadata_.value("node_type", Json()) != "array") {
      zarr_metadata::refuse(what_, "it is no array of Zarr's format 3");
    }
    static constexpr std::array<std::string_view, 11> kKnown = {
        "zarr_format", "node_type",  "shape",  "data_type",       "chunk_grid",          "chunk_key_encoding",
        "fill_value",  "attributes", "codecs", "dimension_names", "storage_transformers"};
    for (const auto& [key, value] : metadata_.items()) {
      const bool optional = value.is_object() && value.value("must_understand", Json()) == false;
      if (!optional && std::ranges::find(kKnown, key) == kKnown.end())
        array_.refuse(
            concat("its metadata has \"", zarr_metadata::word_of(key), "\", which is not understood"));
    }
    const Json transformers = metadata_.value("storage_transformers", Json::array());
    if (!transformers.empty()) array_.refuse("it has storage transformers");
  }

  void read_names() {
    const Extension encoding(metadata_.value("chunk_key_encoding", Json("default")));
    const bool usual = encoding.name == "default";
    if (!usual && encoding.name != "v2")
      array_.refuse(concat("its chunks are named by \"", encoding.name, "\"; default and v2 are read"));
    const std::string separator = encoding.text("separator", usual ? "/" : ".");
    if (separator != "/" && separator != ".") zarr_metadata::refuse(what_, "its separator is none");
    array_.prefix = usual ? "c" : "";
    array_.separator = separator[0];
  }

  /// @param outer  of files; else of the chunks in a shard.
  void read_codecs(const Json& list, bool outer) {
    if (!list.is_array() || list.empty()) zarr_metadata::refuse(what_, "its codecs are none");
    bool of_bytes = false;
    for (const Json& each : list) {
      const Extension codec(each);
      if (!of_bytes) {
        of_bytes = codec.name != "transpose";
        read_to_bytes(codec, outer);
      } else if (array_.shard && outer) {
        array_.refuse(concat("its shards are packed by \"", codec.name, "\" as a whole"));
      } else {
        read_packing(codec.name);
      }
    }
    if (!of_bytes) zarr_metadata::refuse(what_, "its codecs never turn its numbers into bytes");
  }

  /// From numbers to bytes.
  void read_to_bytes(const Extension& codec, bool outer) {
    if (codec.name == "bytes") {
      const bool big = codec.text("endian", "little") == "big";
      array_.swapped = big == (std::endian::native == std::endian::little);
    } else if (codec.name == "sharding_indexed" && outer) {
      read_shards(codec);
    } else if (codec.name == "transpose") {
      const Json order = codec.configuration.value("order", Json());
      bool as_it_is = order.is_array();
      for (std::size_t d = 0; as_it_is && d < order.size(); ++d) as_it_is = order[d] == d;
      if (!as_it_is) array_.refuse("its dimensions are transposed");
    } else {
      array_.refuse(concat("it is encoded by \"", codec.name, "\"; bytes and sharding_indexed are read"));
    }
  }

  /// From bytes to bytes.
  void read_packing(const std::string& name) {
    ChunkPacking& packing = array_.packing;
    const std::optional<ChunkCodec> codec = codec_of(name);
    if (name == "crc32c") {
      bool& checked = packing.codec == ChunkCodec::kNone ? packing.checked_inside : packing.checked_outside;
      if (checked) array_.refuse("it has two checksums in a row");
      checked = true;
    } else if (!codec) {
      array_.refuse(concat("it is encoded by \"", name, "\"; gzip, zstd, blosc and crc32c are read"));
    } else if (packing.codec != ChunkCodec::kNone) {
      array_.refuse("it is compressed twice");
    } else {
      packing.codec = *codec;
    }
  }

  void read_shards(const Extension& sharding) {
    const Shape shards = array_.chunks;
    array_.chunks = zarr_metadata::extents(sharding.configuration, "chunk_shape", 1, what_);
    if (array_.chunks.rank() != shards.rank())
      zarr_metadata::refuse(what_, "its chunks have other dimensions than its shards");
    ZarrArray::Shard shard;
    for (int d = 0; d < shards.rank(); ++d) {
      if (shards[d] % array_.chunks[d] != 0)
        zarr_metadata::refuse(what_, "its shards are no whole number of chunks");
      shard.chunks.append(shards[d] / array_.chunks[d]);
    }
    shard.index_first = sharding.text("index_location", "end") == "start";
    const Json codecs = sharding.configuration.value("index_codecs", Json::array());
    std::vector<std::string> names;
    for (const Json& each : codecs) {
      const Extension codec(each);
      names.push_back(codec.name);
      if (codec.text("endian", "little") != "little") names.emplace_back("big endian");
    }
    shard.checked = names.size() == 2 && names[1] == "crc32c";
    if (names.empty() || names[0] != "bytes" || names.size() > (shard.checked ? 2U : 1U))
      array_.refuse(concat("the index of its shards is encoded by ", join(names, ", ")));
    array_.shard = shard;
    read_codecs(sharding.configuration.value("codecs", Json()), false);
  }

  const Json& metadata_;
  const std::string& what_;
  ZarrArray array_;
};

}  // namespace

ZarrArray zarr_array_of_format3(const Json& metadata, const std::string& what) {
  return Reader(metadata, what).read();
}

}  // namespace jigsaw::inline files
