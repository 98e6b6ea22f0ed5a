#include "files/zarr_store.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

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

/// Whether there is anything of this name, be it a link that leads nowhere.
bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

/// A name that leads out of the store is none.
bool is_inside(const std::string& name) {
  if (name.empty() || name.front() == '/') return false;
  const std::vector<std::string> parts = split(name, '/');
  return std::none_of(parts.begin(), parts.end(),
                      [](const std::string& part) { return part.empty() || part == ".."; });
}

/// First to last chunk of each dim that a box has points in.
Box chunks_of(const Box& box, const Shape& chunks) {
  Box result = box;
  for (int d = 0; d < chunks.rank(); ++d) {
    result.begin[d] = box.begin[d] / chunks[d];
    result.extent[d] = (box.end(d) - 1) / chunks[d] - result.begin[d] + 1;
  }
  return result;
}

/// The next place of a box in row-major order of its first `rank` dims; false behind the last.
bool advance(Shape& at, const Box& box, int rank) {
  for (int d = rank - 1; d >= 0; --d) {
    if (++at[d] < box.end(d)) return true;
    at[d] = box.begin[d];
  }
  return false;
}

/// Where a place stands in a box, row-major.
std::int64_t offset_in(const Shape& at, const Shape& begin, const Shape& strides) {
  std::int64_t offset = 0;
  for (int d = 0; d < at.rank(); ++d) offset += (at[d] - begin[d]) * strides[d];
  return offset;
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

ZarrStore::ZarrStore(const std::string& path) : VariableFile(path, metadata_of(path)) {
  const std::string consolidated = this->path() + "/.zmetadata";
  if (is_there(consolidated)) {
    add_from_metadata(read_json(consolidated));
  } else {
    add_from_folders(this->path(), "", 0);
  }
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
}

void ZarrStore::close() {
  const std::lock_guard lock(mutex_);
  cache_.clear();
}

std::shared_ptr<const ZarrStore::Chunk> ZarrStore::chunk(const FileVariable& variable, const Shape& index) {
  const ZarrArray& array = arrays_[static_cast<std::size_t>(variable.id)];
  std::string number;
  for (int d = 0; d < index.rank(); ++d)
    number += concat(d > 0 ? std::string(1, array.separator) : "", index[d]);
  const std::string name = concat(path(), "/", variable.name, "/", index.rank() == 0 ? "0" : number);
  const auto known =
      std::find_if(cache_.begin(), cache_.end(), [&](const Cached& cached) { return cached.name == name; });
  if (known != cache_.end()) {
    cache_.splice(cache_.begin(), cache_, known);
    return cache_.front().chunk;
  }
  std::shared_ptr<const Chunk> read = read_chunk(array, name);
  cache_.push_front({name, read});
  std::size_t bytes = 0;
  for (auto cached = cache_.begin(); cached != cache_.end();) {
    bytes += cached->chunk ? cached->chunk->size() : 0;
    cached = bytes > kCacheBytes && cached != cache_.begin() ? cache_.erase(cached) : std::next(cached);
  }
  return read;
}

/// Null when the chunk is not there.
std::shared_ptr<const ZarrStore::Chunk> ZarrStore::read_chunk(const ZarrArray& array,
                                                              const std::string& name) const {
  if (!is_there(name)) return nullptr;
  const std::int64_t most = array.chunk_count() * size_of(*array.type);
  const auto bytes = static_cast<std::size_t>(most);
  const std::string packed = read_file(name, most + most / 8 + 65536);
  return std::make_shared<const Chunk>(decompressed(array.codec, packed, bytes, name));
}

void ZarrStore::read_stored(const FileVariable& variable, const Box& box, std::span<double> out) {
  if (!(intersect(Box::whole(variable.shape), box) == box)) {
    throw DataError(
        concat("cannot read ", variable.name, " of ", path(), " at ", box, ": it has ", variable.shape));
  }
  const ZarrArray& array = arrays_[static_cast<std::size_t>(variable.id)];
  const int rank = box.extent.rank();
  const Shape strides = box.extent.strides(), chunk_strides = array.chunks.strides();
  const DecodeNumber decode = decoder_of(*array.type);
  const std::int64_t size = size_of(*array.type);
  const Box chunks = chunks_of(box, array.chunks);
  const std::lock_guard lock(mutex_);
  Shape index = chunks.begin;
  do {
    Box whole{index, array.chunks};
    for (int d = 0; d < rank; ++d) whole.begin[d] *= array.chunks[d];
    const Box here = intersect(whole, box);
    const std::shared_ptr<const Chunk> stored = chunk(variable, index);
    const std::int64_t row = rank == 0 ? 1 : here.extent[rank - 1];
    Shape at = here.begin;
    do {
      const std::int64_t to = offset_in(at, box.begin, strides);
      const std::int64_t from = offset_in(at, whole.begin, chunk_strides);
      for (std::int64_t i = 0; i < row; ++i) {
        out[static_cast<std::size_t>(to + i)] =
            stored ? decode(stored->data() + (from + i) * size, array.swapped) : array.fill.value_or(0);
      }
    } while (advance(at, here, rank - 1));
  } while (advance(index, chunks, rank));
}

}  // namespace jigsaw::inline files
