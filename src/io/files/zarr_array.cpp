#include "files/zarr_array.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "base/text.h"

namespace jigsaw::inline files {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMostZarrPoints = std::int64_t{1} << 48, kMostZarrChunkBytes = std::int64_t{1} << 31,
                       kMostChunksInShard = std::int64_t{1} << 24;

}  // namespace

std::string ZarrArray::file_name(const Shape& index) const {
  if (index.rank() == 0) return prefix.empty() ? "0" : prefix;
  const std::string between(1, separator);
  return concat(prefix, prefix.empty() ? "" : between, join(index, between));
}

void ZarrArray::refuse(const std::string& why) {
  if (fault.empty()) fault = why;
}

namespace zarr_metadata {

void refuse(const std::string& what, const std::string& why) {
  throw DataError(concat(what, " cannot be read: ", why));
}

Shape extents(const Json& object, const char* key, std::int64_t least, const std::string& what) {
  const Json list = object.is_object() ? object.value(key, Json()) : Json();
  if (!list.is_array() || list.size() > static_cast<std::size_t>(Shape::kMaxRank))
    refuse(what, concat("its ", key, " is none"));
  Shape result;
  std::int64_t points = 1;
  for (const Json& extent : list) {
    const std::int64_t value = extent.is_number_integer() ? extent.get<std::int64_t>() : -1;
    if (value < least || (value > 0 && points > kMostZarrPoints / value))
      refuse(what, concat("its ", key, " is none"));
    points *= std::max<std::int64_t>(value, 1);
    result.append(value);
  }
  return result;
}

std::optional<StoredType> type_of(const std::string& kind_and_bytes) {
  static constexpr std::array<std::pair<std::string_view, StoredType>, 12> kTypes = {
      {{"b1", StoredType::kU8},
       {"u1", StoredType::kU8},
       {"i1", StoredType::kI8},
       {"i2", StoredType::kI16},
       {"u2", StoredType::kU16},
       {"i4", StoredType::kI32},
       {"u4", StoredType::kU32},
       {"i8", StoredType::kI64},
       {"u8", StoredType::kU64},
       {"f2", StoredType::kF16},
       {"f4", StoredType::kF32},
       {"f8", StoredType::kF64}}};
  const auto* const found = std::find_if(kTypes.begin(), kTypes.end(),
                                         [&](const auto& type) { return type.first == kind_and_bytes; });
  return found == kTypes.end() ? std::nullopt : std::optional(found->second);
}

std::string time_unit(const std::string& unit) {
  static constexpr std::array<std::pair<std::string_view, const char*>, 4> kUnits = {
      {{"s", "seconds"}, {"m", "minutes"}, {"h", "hours"}, {"D", "days"}}};
  const auto* const found = std::ranges::find(kUnits, unit, &std::pair<std::string_view, const char*>::first);
  return found == kUnits.end() ? "" : found->second;
}

std::optional<double> number_of(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (value == "Infinity") return std::numeric_limits<double>::infinity();
  if (value == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

std::optional<double> fill_of(const Json& value) {
  return value.is_boolean() ? std::optional(value.get<bool>() ? 1.0 : 0.0) : number_of(value);
}

std::string word_of(const Json& value) {
  return value.is_string() ? printable(value.get<std::string>().substr(0, 60)) : "";
}

void check(const ZarrArray& array, const std::string& what) {
  if (array.shape.rank() != array.chunks.rank()) refuse(what, "its chunks have other dimensions than it has");
  if (array.type && array.chunks.count() > kMostZarrChunkBytes / size_of(*array.type))
    refuse(what, "its chunks are larger than 2 GiB");
  if (array.shard && array.shard->chunks.count() > kMostChunksInShard)
    refuse(what, concat("its shards hold more than ", kMostChunksInShard, " chunks"));
}

}  // namespace zarr_metadata

ZarrArray zarr_array_of_format2(const Json& zarray, const std::string& what) {
  if (!zarray.is_object() || zarray.value("zarr_format", Json()) != 2)
    zarr_metadata::refuse(what, "it is not of Zarr's format 2");
  ZarrArray array;
  array.shape = zarr_metadata::extents(zarray, "shape", 0, what);
  array.chunks = zarr_metadata::extents(zarray, "chunks", 1, what);
  const Json dtype = zarray.value("dtype", Json());
  const std::string letters = dtype.is_string() ? dtype.get<std::string>() : "";
  if (letters.size() > 1) array.type = zarr_metadata::type_of(letters.substr(1));
  if (letters.size() > 5 && letters.substr(1, 3) == "M8[")
    array.time_unit = zarr_metadata::time_unit(letters.substr(4, letters.size() - 5));
  if (!array.time_unit.empty()) array.type = StoredType::kI64;
  zarr_metadata::check(array, what);
  if (!array.type) return array;  // of texts, say: it stays in the list, as one that cannot be read
  array.swapped = letters[0] == (std::endian::native == std::endian::little ? '>' : '<');
  if (zarray.value("order", Json("C")) != "C" && array.chunks.rank() > 1) array.refuse("its order is not C");
  const Json filters = zarray.value("filters", Json());
  if (!filters.is_null() && !filters.empty()) {
    const Json& first = filters.is_array() ? filters[0] : filters;
    const Json id = first.is_object() ? first.value("id", Json()) : Json();
    array.refuse(concat("its filter \"", zarr_metadata::word_of(id), "\" is not known"));
  }
  const Json compressor = zarray.value("compressor", Json());
  if (!compressor.is_null()) {
    const std::string id =
        zarr_metadata::word_of(compressor.is_object() ? compressor.value("id", Json()) : Json());
    const std::optional<ChunkCodec> codec = codec_of(id == "zlib" ? "gzip" : id);
    if (!codec) array.refuse(concat("it is compressed by \"", id, "\"; zlib, gzip, blosc and zstd are read"));
    array.packing.codec = codec.value_or(ChunkCodec::kNone);
  }
  array.fill = zarr_metadata::fill_of(zarray.value("fill_value", Json()));
  if (zarray.value("dimension_separator", Json(".")) == "/") array.separator = '/';
  return array;
}

}  // namespace jigsaw::inline files
