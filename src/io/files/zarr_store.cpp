#include "files/zarr_store.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/heartbeat.h"
#include "base/text.h"
#include "files/chunk_cache.h"
#include "files/hyperslab.h"

namespace jigsaw::inline files {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kDeepestGroup = 8;
constexpr std::size_t kMostArrays = 10000;
constexpr std::int64_t kMostMetadata = std::int64_t{64} << 20;
constexpr std::string_view kArraySuffix = "/.zarray", kAttributesSuffix = "/.zattrs";

/// Of a regular file: nothing else is opened, which might be waited for.
std::string read_file(const std::string& path, std::int64_t most) {
  try {
    return read_text(path, most);
  } catch (const FileError& error) {
    throw DataError(error.what());
  }
}

/// Whether there is anything of this name, be it a link that leads nowhere. @throws DataError  when that
/// cannot be told.
bool is_there(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::none)
    throw DataError(concat("cannot read ", path, ": ", error.message()));
  return fs::exists(status);
}

/// A name that leads out of the store is none.
bool is_inside(const std::string& name) {
  if (name.empty() || name.front() == '/') return false;
  const std::vector<std::string> parts = split(name, '/');
  return std::none_of(parts.begin(), parts.end(),
                      [](const std::string& part) { return part.empty() || part == ".."; });
}

/// One number of an array's type, from a number.
std::vector<std::byte> bytes_of(StoredType type, double value, bool swapped) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(size_of(type)));
  encode_number(type, value, bytes);
  if (swapped) std::reverse(bytes.begin(), bytes.end());
  return bytes;
}

/// The file that names all arrays, or else the mark of a group.
std::string metadata_of(const std::string& path) {
  std::error_code ignored;
  const std::string consolidated = path + "/.zmetadata";
  return fs::exists(consolidated, ignored) ? consolidated : path + "/.zgroup";
}

}  // namespace

bool is_zarr_store(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return false;
  return fs::exists(fs::path(path) / ".zmetadata", ignored) ||
         fs::exists(fs::path(path) / ".zgroup", ignored);
}

ZarrStore::ZarrStore(const std::string& path)
    : VariableFile(path, metadata_of(path)), key_(ChunkCache::shared().new_file()) {
  const std::string consolidated = this->path() + "/.zmetadata";
  if (is_there(consolidated)) {
    add_from_metadata(read_json(consolidated));
  } else {
    add_from_folders(this->path(), "", 0);
  }
}

ZarrStore::ZarrStore(const FileDescription& known)
    : VariableFile(known), key_(ChunkCache::shared().new_file()) {
  Json::parse(known.own).get_to(metadata_);
  for (std::size_t i = 0; i < metadata_.size(); ++i)
    arrays_.emplace_back(metadata_[i], concat(variables_[i].name, " in ", path()));
}

Json ZarrStore::read_json(const std::string& file) const {
  const std::string text = read_file(file, kMostMetadata);
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw DataError(concat("cannot read ", file, ": it is no JSON"));
  return json;
}

void ZarrStore::add_from_metadata(const Json& consolidated) {
  const Json metadata = consolidated.is_object() ? consolidated.value("metadata", Json()) : Json();
  if (!metadata.is_object()) throw DataError(concat(path(), "/.zmetadata names no arrays"));
  for (const auto& [key, zarray] : metadata.items()) {
    if (!key.ends_with(kArraySuffix)) continue;
    const std::string name = key.substr(0, key.size() - kArraySuffix.size());
    add(name, zarray, metadata.value(name + std::string(kAttributesSuffix), Json()));
  }
}

void ZarrStore::add_from_folders(const std::string& folder, const std::string& prefix, int depth) {
  std::vector<std::string> names;
  std::error_code unreadable;
  for (fs::directory_iterator entry(folder, unreadable), end; !unreadable && entry != end;
       entry.increment(unreadable)) {
    std::error_code ignored;
    if (entry->is_directory(ignored)) names.push_back(entry->path().filename());
  }
  if (unreadable) throw DataError(concat("cannot read ", folder, ": ", unreadable.message()));
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const std::string below = concat(folder, "/", name);
    if (is_there(below + std::string(kArraySuffix))) {
      const std::string attributes = below + std::string(kAttributesSuffix);
      add(prefix + name, read_json(below + std::string(kArraySuffix)),
          is_there(attributes) ? read_json(attributes) : Json());
    } else if (depth < kDeepestGroup && is_there(below + "/.zgroup")) {
      add_from_folders(below, concat(prefix, name, "/"), depth + 1);
    }
  }
}

void ZarrStore::add(const std::string& name, const Json& zarray, const Json& zattrs) {
  if (!is_inside(name) || variables_.size() == kMostArrays) return;
  const ZarrArray array(zarray, concat(name, " in ", path()));
  FileVariable variable;
  variable.name = name;
  variable.id = static_cast<int>(arrays_.size());
  variable.shape = array.shape;
  variable.bytes = array.type ? size_of(*array.type) : 0;
  variable.type = array.type.value_or(StoredType::kF64);
  variable.chunks = array.chunks;
  variable.compressed = array.codec != ChunkCodec::kNone;
  variable.single_precision = array.type == StoredType::kF32;
  if (array.fill && *array.fill != 0) variable.numbers["_FillValue"] = {*array.fill};
  const Json attributes_here = zattrs.is_object() ? zattrs : Json::object();
  for (const std::string& attribute : attributes()) {
    const Json value = attributes_here.value(attribute, Json());
    if (value.is_string()) variable.texts[attribute] = value.get<std::string>().substr(0, kLongestAttribute);
    if (value.is_number()) variable.numbers[attribute] = {value.get<double>()};
    if (!value.is_array() || value.empty() || value.size() > kLongestAttribute) continue;
    if (!std::all_of(value.begin(), value.end(), [](const Json& number) { return number.is_number(); }))
      continue;
    variable.numbers[attribute] = value.get<std::vector<double>>();
  }
  const Json names = attributes_here.value("_ARRAY_DIMENSIONS", Json());
  const std::size_t last = name.rfind('/');
  const std::string group = last == std::string::npos ? "" : name.substr(0, last + 1);
  for (int d = 0; d < array.shape.rank(); ++d) {
    const auto i = static_cast<std::size_t>(d);
    const bool named = names.is_array() && names.size() > i && names[i].is_string();
    variable.dimensions.push_back(named ? group + names[i].get<std::string>() : concat("dim_", d));
  }
  variables_.push_back(std::move(variable));
  arrays_.push_back(array);
  metadata_.push_back(zarray);
}

ZarrStore::~ZarrStore() {
  ChunkCache::shared().drop(key_);
}

void ZarrStore::close() {
  ChunkCache::shared().drop(key_);
}

void ZarrStore::read_chunk(const FileVariable& variable, const Shape& index, std::span<std::byte> out,
                           std::int64_t& fetched) const {
  const ZarrArray& array = arrays_[static_cast<std::size_t>(variable.id)];
  std::string number;
  for (int d = 0; d < index.rank(); ++d)
    number += concat(d > 0 ? std::string(1, array.separator) : "", index[d]);
  const std::string name = concat(path(), "/", variable.name, "/", index.rank() == 0 ? "0" : number);
  if (!is_there(name)) {
    const std::vector<std::byte> fill = bytes_of(*array.type, array.fill.value_or(0), array.swapped);
    for (std::size_t i = 0; i < out.size(); i += fill.size())
      std::copy(fill.begin(), fill.end(), out.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
  const std::string packed = read_file(name, std::ssize(out) + std::ssize(out) / 8 + 65536);
  fetched += std::ssize(packed);
  decompress(array.codec, std::as_bytes(std::span(packed)), out, name);
  beat();
}

StoredNumbers ZarrStore::read_stored(const FileVariable& variable, const Box& box, ByteBuffer& out,
                                     std::int64_t& fetched) {
  if (!(intersect(Box::whole(variable.shape), box) == box)) {
    throw DataError(
        concat("cannot read ", variable.name, " of ", path(), " at ", box, ": it has ", variable.shape));
  }
  static thread_local ByteBuffer scratch;
  const ZarrArray& array = arrays_[static_cast<std::size_t>(variable.id)];
  const std::int64_t size = size_of(*array.type);
  const std::span<std::byte> to = out.take(static_cast<std::size_t>(box.extent.count() * size));
  const auto bytes = static_cast<std::size_t>(array.chunk_count() * size);
  const std::size_t at_once = bytes * static_cast<std::size_t>(chunks_of(box, array.chunks).extent.count());
  for_each_chunk(variable.shape, array.chunks, box, [&](const WantedChunk& chunk) {
    const auto make = [&](std::span<std::byte> decoded) {
      read_chunk(variable, chunk.index, decoded, fetched);
    };
    if (!chunk.whole) {
      const ChunkCache::Key key{key_, variable.id, chunk.number};
      return copy_shared(ChunkCache::shared().get(key, bytes, at_once, make)->bytes, chunk.box, to, box,
                         size);
    }
    const std::span<std::byte> decoded = scratch.take(bytes);
    make(decoded);
    copy_shared(decoded, chunk.box, to, box, size);
  });
  return {*array.type, array.swapped};
}

}  // namespace jigsaw::inline files
