#include "files/zarr_array.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline files {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMostPoints = std::int64_t{1} << 48, kMostChunkBytes = std::int64_t{1} << 31;

std::optional<StoredType> type_of(std::string_view letters) {
  static constexpr std::array<std::pair<std::string_view, StoredType>, 10> kTypes = {
      {{"u1", StoredType::kU8},
       {"i1", StoredType::kI8},
       {"i2", StoredType::kI16},
       {"u2", StoredType::kU16},
       {"i4", StoredType::kI32},
       {"u4", StoredType::kU32},
       {"i8", StoredType::kI64},
       {"u8", StoredType::kU64},
       {"f4", StoredType::kF32},
       {"f8", StoredType::kF64}}};
  const auto* const found =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& type) { return type.first == letters; });
  return found == kTypes.end() ? std::nullopt : std::optional(found->second);
}

std::optional<double> fill_of(const Json& zarray) {
  const Json value = zarray.value("fill_value", Json());
  if (value.is_number()) return value.get<double>();
  if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (value == "Infinity") return std::numeric_limits<double>::infinity();
  if (value == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

}  // namespace

ZarrArray::ZarrArray(const Json& zarray, const std::string& what) {
  const auto refuse = [&](const std::string& why) {
    throw DataError(concat(what, " cannot be read: ", why));
  };
  if (!zarray.is_object() || zarray.value("zarr_format", Json()) != 2) refuse("it is not of Zarr's format 2");
  const auto extents = [&](const char* key, std::int64_t least) {
    const Json list = zarray.value(key, Json());
    if (!list.is_array() || list.size() > static_cast<std::size_t>(Shape::kMaxRank))
      refuse(concat("its ", key, " is none"));
    Shape result;
    std::int64_t points = 1;
    for (const Json& extent : list) {
      const std::int64_t value = extent.is_number_integer() ? extent.get<std::int64_t>() : -1;
      if (value < least || (value > 0 && points > kMostPoints / value))
        refuse(concat("its ", key, " is none"));
      points *= std::max<std::int64_t>(value, 1);
      result.append(value);
    }
    return result;
  };
  shape = extents("shape", 0);
  chunks = extents("chunks", 1);
  if (shape.rank() != chunks.rank()) refuse("its chunks have other dimensions than it has");
  const Json dtype = zarray.value("dtype", Json());
  const std::string letters = dtype.is_string() ? dtype.get<std::string>() : "";
  if (letters.size() > 1) type = type_of(std::string_view(letters).substr(1));
  if (!type) return;  // of texts, say: it stays in the list, as one that cannot be read
  swapped = letters[0] == (std::endian::native == std::endian::little ? '>' : '<');
  if (chunks.count() > kMostChunkBytes / size_of(*type)) refuse("its chunks are larger than 2 GiB");
  if (zarray.value("order", Json("C")) != "C" && chunks.rank() > 1) refuse("its order is not C");
  const Json filters = zarray.value("filters", Json());
  if (!filters.is_null() && !filters.empty())
    refuse(concat("its filters ", filters.dump(), " are not known"));
  const Json compressor = zarray.value("compressor", Json());
  if (!compressor.is_null()) {
    const std::string id = compressor.is_object() && compressor.contains("id") && compressor["id"].is_string()
                               ? compressor["id"].get<std::string>()
                               : "";
    if (id == "zlib" || id == "gzip") {
      codec = ChunkCodec::kDeflate;
    } else if (id == "blosc") {
      codec = ChunkCodec::kBlosc;
    } else if (id == "zstd") {
      codec = ChunkCodec::kZstd;
    } else {
      refuse(concat("it is compressed by \"", id, "\"; zlib, gzip, blosc and zstd are read"));
    }
  }
  fill = fill_of(zarray);
  if (zarray.value("dimension_separator", Json(".")) == "/") separator = '/';
}

}  // namespace jigsaw::inline files
