#include "files/zarr_store.h"

#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/file_kind.h"
#include "base/heartbeat.h"
#include "base/printable.h"
#include "base/text.h"
#include "config/json.h"
#include "files/chunk_cache.h"
#include "files/hyperslab.h"

namespace jigsaw::inline files {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kMostGroups = 1000;
constexpr std::size_t kMostArrays = 10000;
constexpr std::int64_t kMostMetadata = std::int64_t{64} << 20;
constexpr std::uint64_t kNoChunk = ~std::uint64_t{0};
constexpr std::string_view kArraySuffix = "/.zarray", kAttributesSuffix = "/.zattrs";

/// Of a regular file: nothing else is opened, which might be waited for.
std::string read_file(const std::string& path, std::int64_t most) {
  try {
    return read_text(path, most);
  } catch (const FileError& error) {
    throw DataError(error.what());
  }
}

/// With the literals that JSON lacks and zarr-python writes as texts: NaN, Infinity and -Infinity.
std::string with_quoted_literals(std::string_view text) {
  static constexpr std::string_view kLiterals[] = {"NaN", "Infinity", "-Infinity"};
  std::string result;
  result.reserve(text.size());
  bool in_string = false;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    const auto* const literal = std::ranges::find_if(
        kLiterals, [&](std::string_view word) { return !in_string && rest.starts_with(word); });
    if (literal != std::end(kLiterals)) {
      result.append("\"").append(*literal).append("\"");
      i += literal->size();
      continue;
    }
    const bool escape = in_string && rest[0] == '\\';
    if (rest[0] == '"') in_string = !in_string;
    result += rest.substr(0, escape ? 2 : 1);
    i += escape ? 2 : 1;
  }
  return result;
}

Json read_json(const std::string& file) {
  try {
    return parse_json(with_quoted_literals(read_file(file, kMostMetadata)), file);
  } catch (const ConfigError& error) {
    throw DataError(concat("cannot read ", error.what()));
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

[[noreturn]] void refuse_single_array(const std::string& path) {
  throw DataError(concat(path, " is a single array of Zarr, and must be a group of arrays"));
}

/// Of what Zarr's format 3 says of an array or a group; of format 2 the file that names all arrays, or else
/// the mark of a group.
constexpr const char *kMetadata3 = "/zarr.json", *kConsolidated = "/.zmetadata", *kGroup = "/.zgroup";

std::string metadata_of(const std::string& path) {
  std::error_code ignored;
  const auto has = [&](std::string_view name) { return fs::exists(concat(path, name), ignored); };
  for (const char* name : {kMetadata3, kConsolidated}) {
    if (has(name)) return path + name;
  }
  if (has(kArraySuffix) && !has(kGroup)) refuse_single_array(path);
  return path + kGroup;
}

/// The folders in a folder, sorted; links, which might lead in a circle, are none.
std::vector<std::string> folders_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code unreadable;
  for (fs::directory_iterator entry(folder, unreadable), end; !unreadable && entry != end;
       entry.increment(unreadable)) {
    std::error_code ignored;
    if (entry->symlink_status(ignored).type() == fs::file_type::directory)
      names.push_back(entry->path().filename());
  }
  if (unreadable) throw DataError(concat("cannot read ", folder, ": ", unreadable.message()));
  std::sort(names.begin(), names.end());
  return names;
}

/// The number that base64 of its eight bytes, little-endian, stands for, as xarray writes _FillValue in
/// format 3; nothing for other texts.
std::optional<double> number_of_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() != 12 || text.back() != '=') return std::nullopt;
  std::uint64_t bits = 0;
  std::uint32_t held = 0;
  int count = 0, byte = 0;
  for (const char c : text.substr(0, 11)) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    held = held << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bits |= std::uint64_t{held >> count & 0xff} << (8 * byte++);
  }
  return std::bit_cast<double>(bits);
}

}  // namespace

ZarrStore::ZarrStore(const std::string& path, External external)
    : VariableFile(path, metadata_of(path)),
      format3_(is_there(path + kMetadata3)),
      key_(chunk_key()),
      chunk_files_(path, external) {
  Json attributes;
  if (format3_) {
    attributes = read_format3();
  } else if (is_there(path + kConsolidated)) {
    attributes = add_from_metadata(read_json(path + kConsolidated));
  } else {
    add_from_folders(path, "", 0);
    const std::string file = path + std::string(kAttributesSuffix);
    if (is_there(file)) attributes = read_json(file);
  }
  name_axes(attributes);
  show_cells(attributes);
}

ZarrStore::ZarrStore(const FileDescription& known, External external)
    : VariableFile(known), format3_(false), key_(chunk_key()), chunk_files_(known.path, external) {
  const Json own = Json::from_cbor(known.own);
  format3_ = own.at("format") == 3;
  own.at("arrays").get_to(metadata_);
  own.at("channels").get_to(channels_);
  for (const Json& place : own.at("places")) places_.push_back(ZarrPlace::from_json(place));
  for (std::size_t i = 0; i < metadata_.size(); ++i)
    arrays_.push_back(metadata_[i].is_null() ? ZarrArray() : array_of(metadata_[i], places_[i].folder));
}

std::string ZarrStore::own_description() const {
  Json places = Json::array();
  for (const ZarrPlace& place : places_) places.push_back(place.to_json());
  // CBOR, for names may be no UTF-8.
  const std::vector<std::uint8_t> bytes = Json::to_cbor(
      {{"format", format3_ ? 3 : 2}, {"arrays", metadata_}, {"places", places}, {"channels", channels_}});
  return {bytes.begin(), bytes.end()};
}

ZarrArray ZarrStore::array_of(const Json& metadata, const std::string& name) const {
  const std::string what = concat(printable(name), " in ", path());
  return format3_ ? zarr_array_of_format3(metadata, what) : zarr_array_of_format2(metadata, what);
}

Json ZarrStore::add_from_metadata(const Json& consolidated) {
  const Json metadata = consolidated.is_object() ? consolidated.value("metadata", Json()) : Json();
  if (!metadata.is_object()) throw DataError(concat(path(), "/.zmetadata names no arrays"));
  for (const auto& [key, zarray] : metadata.items()) {
    if (!key.ends_with(kArraySuffix)) continue;
    const std::string name = key.substr(0, key.size() - kArraySuffix.size());
    add_format2(name, zarray, metadata.value(name + std::string(kAttributesSuffix), Json()));
  }
  return metadata.value(kAttributesSuffix.substr(1), Json());
}

void ZarrStore::add_from_folders(const std::string& folder, const std::string& prefix, int depth) {
  if (++groups_ > kMostGroups)
    throw DataError(concat("cannot read ", path(), ": it has more than ", kMostGroups, " groups"));
  if (depth > kDeepestGroup) refuse_deep_group(path(), prefix.substr(0, prefix.size() - 1));
  for (const std::string& name : folders_in(folder)) {
    const std::string below = concat(folder, "/", name);
    if (format3_) {
      if (!is_there(below + kMetadata3)) continue;
      const Json metadata = read_json(below + kMetadata3);
      if (metadata.is_object() && metadata.value("node_type", Json()) == "array") {
        add_format3(prefix + name, metadata);
      } else {
        add_from_folders(below, concat(prefix, name, "/"), depth + 1);
      }
    } else if (is_there(below + std::string(kArraySuffix))) {
      const std::string attributes = below + std::string(kAttributesSuffix);
      add_format2(prefix + name, read_json(below + std::string(kArraySuffix)),
                  is_there(attributes) ? read_json(attributes) : Json());
    } else if (is_there(below + kGroup)) {
      add_from_folders(below, concat(prefix, name, "/"), depth + 1);
    }
  }
}

Json ZarrStore::read_format3() {
  const Json root = read_json(path() + kMetadata3);
  if (!root.is_object() || root.value("zarr_format", Json()) != 3)
    throw DataError(concat("cannot read ", path(), kMetadata3, ": it is not of Zarr's format 3"));
  if (root.value("node_type", Json()) != "group") refuse_single_array(path());
  const Json consolidated = root.value("consolidated_metadata", Json());
  Json attributes = root.value("attributes", Json());
  if (!consolidated.is_object()) {
    add_from_folders(path(), "", 0);
    return attributes;
  }
  const Json metadata = consolidated.value("metadata", Json());
  if (!metadata.is_object()) throw DataError(concat(path(), kMetadata3, " names no arrays"));
  for (const auto& [name, node] : metadata.items()) {
    if (node.is_object() && node.value("node_type", Json()) == "array") add_format3(name, node);
  }
  return attributes;
}

void ZarrStore::add_format3(const std::string& name, const Json& metadata) {
  add(name, metadata, metadata.value("attributes", Json()), metadata.value("dimension_names", Json()));
}

void ZarrStore::add_format2(const std::string& name, const Json& zarray, const Json& zattrs) {
  add(name, zarray, zattrs, zattrs.is_object() ? zattrs.value("_ARRAY_DIMENSIONS", Json()) : Json());
}

void ZarrStore::add(const std::string& name, const Json& metadata, const Json& attributes,
                    const Json& dimensions) {
  const ZarrArray array = array_of(metadata, name);
  if (!is_inside(name) || variables_.size() == kMostArrays) return;
  FileVariable variable;
  variable.name = name;
  variable.id = static_cast<int>(arrays_.size());
  variable.shape = array.shape;
  variable.bytes = array.type ? size_of(*array.type) : 0;
  variable.type = array.type.value_or(StoredType::kF64);
  variable.chunks = array.chunks;
  variable.compressed = array.packing.codec != ChunkCodec::kNone;
  variable.single_precision = array.type == StoredType::kF32;
  // Format 2 says so what is missing, too; but 0, which is its default, false and true are values. Of packed
  // numbers 0 is missing, as xarray takes it, which writes null where nothing is.
  const bool packed = !is_floating(variable.type) && attributes.is_object() &&
                      (attributes.contains("scale_factor") || attributes.contains("add_offset"));
  const bool is_value = (array.fill == 0.0 && !packed) || metadata.value("fill_value", Json()).is_boolean();
  if (!format3_ && array.fill && !is_value) variable.numbers["_FillValue"] = {*array.fill};
  if (!array.fault.empty()) {
    const std::optional<FileKind> kind = kind_of_file(path());
    variable.refuse(concat(array.fault, "; convert it with: ", kind ? kind->conversion : ""));
  }
  add_attributes(variable, attributes);
  if (!array.time_unit.empty() && variable.text("units").empty())
    variable.texts["units"] = concat(array.time_unit, " since 1970-01-01");
  const std::size_t last = name.rfind('/');
  const std::string group = last == std::string::npos ? "" : name.substr(0, last + 1);
  for (int d = 0; d < array.shape.rank(); ++d) {
    const auto i = static_cast<std::size_t>(d);
    const bool named = dimensions.is_array() && dimensions.size() > i && dimensions[i].is_string();
    variable.dimensions.push_back(named ? group + dimensions[i].get<std::string>() : concat("dim_", d));
  }
  variables_.push_back(std::move(variable));
  arrays_.push_back(array);
  metadata_.push_back(metadata);
  places_.push_back({name});
}

/// Of images of OME-NGFF (0.4 and 0.5): their axes, which format 2 of Zarr does not name at the arrays.
void ZarrStore::name_axes(const Json& attributes) {
  if (!attributes.is_object()) return;
  const Json ome = attributes.value("ome", Json());
  const Json images = (ome.is_object() ? ome : attributes).value("multiscales", Json());
  if (!images.is_array()) return;
  std::map<std::string, FileVariable*> by_name;
  for (FileVariable& variable : variables_) by_name.emplace(variable.name, &variable);
  std::size_t looked_at = 0;
  for (const Json& image : images) {
    if (++looked_at > kMostArrays) return;
    const Json axes = image.is_object() ? image.value("axes", Json()) : Json(),
               levels = image.is_object() ? image.value("datasets", Json()) : Json();
    const bool named = axes.is_array() && std::ranges::all_of(axes, [](const Json& axis) {
                         return axis.is_object() && axis.value("name", Json()).is_string();
                       });
    if (!named || !levels.is_array()) continue;
    for (const Json& level : levels) {
      if (++looked_at > kMostArrays) return;
      const Json path = level.is_object() ? level.value("path", Json()) : Json();
      const auto found = path.is_string() ? by_name.find(path.get<std::string>()) : by_name.end();
      if (found == by_name.end() || found->second->dimensions.size() != axes.size()) continue;
      std::vector<std::string>& names = found->second->dimensions;
      for (std::size_t d = 0; d < axes.size(); ++d)
        if (names[d] == concat("dim_", d)) names[d] = axes[d]["name"].get<std::string>();
    }
  }
}

/// The variable of this name with these dimensions, or null.
FileVariable* ZarrStore::find_along(const std::string& name, const std::vector<std::string>& dimensions) {
  const auto found = std::ranges::find_if(variables_, [&](const FileVariable& variable) {
    return variable.name == name && variable.numeric() && variable.dimensions == dimensions;
  });
  return found == variables_.end() ? nullptr : &*found;
}

/// A coordinate along rows or columns, from the numbers of all points.
void ZarrStore::add_line(const FileVariable& of, CellsAs as, const std::string& name, std::int64_t length,
                         std::int64_t columns) {
  FileVariable line = of;
  line.name = name;
  line.shape = line.chunks = {length};
  line.dimensions = {name};
  line.id = static_cast<int>(arrays_.size());
  const auto i = static_cast<std::size_t>(of.id);
  arrays_.push_back(ZarrArray(arrays_[i]));
  metadata_.push_back(Json(metadata_[i]));
  places_.push_back({places_[i].folder, as, columns});
  variables_.push_back(std::move(line));
}

/// Of a data set of anemoi-datasets.
void ZarrStore::show_cells(const Json& attributes) {
  FileVariable* data = find_along("data", {"time", "variable", "ensemble", "cell"});
  FileVariable* const dates = find_along("dates", {"time"});
  FileVariable *latitudes = find_along("latitudes", {"cell"}),
               *longitudes = find_along("longitudes", {"cell"});
  if (data == nullptr || dates == nullptr || latitudes == nullptr || longitudes == nullptr) return;
  const auto given = AnemoiAttributes::of(attributes, data->shape);
  if (!given || latitudes->shape[0] != data->shape[3] || longitudes->shape[0] != data->shape[3]) return;
  latitudes->texts["units"] = "degrees_north";
  longitudes->texts["units"] = "degrees_east";
  const bool listed = given->rows == 0;
  const std::int64_t columns = given->columns;
  bool regular = false;
  try {
    regular = !listed && are_rows_and_columns(read_all(*latitudes), read_all(*longitudes), columns);
  } catch (const DataError& error) {
    return data->refuse(concat("the places of its points cannot be read: ", error.what()));
  }
  const std::vector<std::string> plane =
      regular ? std::vector<std::string>{"latitude", "longitude"} : std::vector<std::string>{"y", "x"};
  const auto show_plane = [&](FileVariable& variable) {
    const std::int64_t chunk = variable.chunks.back();
    const auto reshaped = [](const Shape& extents, std::int64_t rows, std::int64_t inner) {
      Shape result(std::span(extents.begin(), extents.end() - 1));
      result.append(rows);
      result.append(inner);
      return result;
    };
    variable.shape = reshaped(variable.shape, given->rows, columns);
    variable.chunks = reshaped(variable.chunks, std::clamp<std::int64_t>(chunk / columns, 1, given->rows),
                               std::min(chunk, columns));
    variable.dimensions.pop_back();
    variable.dimensions.insert(variable.dimensions.end(), plane.begin(), plane.end());
    ZarrPlace& place = places_[static_cast<std::size_t>(variable.id)];
    place.as = CellsAs::kPlane;
    place.columns = columns;
  };
  dates->name = "time";
  if (!listed) show_plane(*data);
  if (!listed && !regular) {
    show_plane(*latitudes);
    show_plane(*longitudes);
  }
  const FileVariable of_rows = *latitudes, of_columns = *longitudes;  // the list is about to grow
  FileVariable names;
  names.name = "variable";
  names.dimensions = {"variable"};
  names.shape = {std::ssize(given->variables)};
  names.id = static_cast<int>(arrays_.size());
  variables_.push_back(std::move(names));
  arrays_.emplace_back();
  metadata_.emplace_back();
  places_.emplace_back();
  channels_ = given->variables;
  if (!regular) return;
  add_line(of_rows, CellsAs::kRows, "latitude", given->rows, columns);
  add_line(of_columns, CellsAs::kColumns, "longitude", columns, columns);
}

std::vector<std::string> ZarrStore::read_stored_texts(const FileVariable& variable) {
  return variable.name == "variable" ? channels_ : std::vector<std::string>();
}

void ZarrStore::add_attribute(FileVariable& variable, const std::string& attribute, const Json& value) {
  if (value.is_null()) return;
  if (value.is_string()) {
    variable.texts[attribute] = value.get<std::string>().substr(0, kLongestAttribute);
    return;
  }
  const Json list = value.is_array() ? value : Json::array({value});
  std::vector<double> numbers;
  for (const Json& each : list) {
    const std::optional<double> number = zarr_metadata::number_of(each);
    if (!number || numbers.size() == kLongestAttribute) return add_unknown(variable, attribute);
    numbers.push_back(*number);
  }
  if (numbers.empty()) return add_unknown(variable, attribute);
  variable.numbers[attribute] = std::move(numbers);
  const auto is_integer = [](const Json& each) { return each.is_number_integer(); };
  if (!std::ranges::all_of(list, is_integer)) variable.floating.insert(attribute);
}

void ZarrStore::add_attributes(FileVariable& variable, const Json& given) const {
  if (!given.is_object()) return;
  for (const std::string& attribute : attributes())
    add_attribute(variable, attribute, given.value(attribute, Json()));
  for (const auto& [attribute, value] : given.items()) {
    if (!is_read(variable, attribute)) continue;
    if (!value.is_string() || value.get_ref<const std::string&>().size() <= kLongestAttribute)
      add_attribute(variable, attribute, value);
  }
  for (const char* attribute : {"_FillValue", "missing_value"}) {
    const std::string text = variable.text(attribute);
    std::optional<double> number = zarr_metadata::number_of(text);
    if (!number && format3_) number = number_of_base64(text);
    if (!number) continue;
    variable.texts.erase(attribute);
    variable.numbers[attribute] = {*number};
  }
}

ZarrStore::~ZarrStore() {
  ChunkCache::shared().drop(key_);
}

void ZarrStore::close() {
  ChunkCache::shared().drop(key_);
}

std::optional<std::string> ZarrStore::packed_chunk(const FileVariable& variable, const Shape& index,
                                                   std::int64_t most, std::int64_t& fetched) {
  const ZarrArray& array = arrays_[static_cast<std::size_t>(variable.id)];
  Shape of_file = index;
  for (int d = 0; array.shard && d < index.rank(); ++d) of_file[d] /= array.shard->chunks[d];
  const std::string& folder = places_[static_cast<std::size_t>(variable.id)].folder;
  const std::string name = concat(path(), "/", folder, "/", array.file_name(of_file));
  const bool there = chunk_files_.has(name);
  std::optional<std::string> packed;
  try {
    if (there && array.shard) {
      packed = packed_in_shard(variable, index, name, most, fetched);
    } else if (there) {
      packed = read_file(name, most);
      fetched += std::ssize(*packed);
    }
  } catch (const DataError&) {
    chunk_files_.check_unchanged(name, there);
    throw;
  }
  chunk_files_.check_unchanged(name, there);
  return packed;
}

/// An index has two numbers of each chunk, its offset and its length, all ones where it is not there.
std::optional<std::string> ZarrStore::packed_in_shard(const FileVariable& variable, const Shape& index,
                                                      const std::string& name, std::int64_t most,
                                                      std::int64_t& fetched) const {
  const ZarrArray& array = arrays_[static_cast<std::size_t>(variable.id)];
  const ZarrArray::Shard& shard = *array.shard;
  std::int64_t number = 0, within = 0;
  for (int d = 0; d < index.rank(); ++d) {
    const std::int64_t extent = array.chunks[d] * shard.chunks[d];
    number = number * ((array.shape[d] + extent - 1) / extent) + index[d] / shard.chunks[d];
    within = within * shard.chunks[d] + index[d] % shard.chunks[d];
  }
  try {
    const File file(name, O_RDONLY);
    const std::int64_t index_bytes = shard.index_bytes();
    const auto read_index = [&](std::span<std::byte> out) {
      if (file.size() < index_bytes) throw DataError(concat(name, " is cut off or damaged"));
      std::vector<std::byte> packed(static_cast<std::size_t>(index_bytes));
      file.read(packed, shard.index_first ? 0 : file.size() - index_bytes);
      fetched += index_bytes;
      unpack_chunk({.checked_outside = shard.checked}, packed, out, concat("the index of ", name));
    };
    // The indices of an array are kept as chunks of a variable of their own.
    const auto bytes = static_cast<std::size_t>(shard.chunks.count() * 16);
    const auto entries =
        ChunkCache::shared().get({key_, -1 - std::int64_t{variable.id}, number}, bytes, bytes, read_index);
    std::array<std::uint64_t, 2> place{};
    std::memcpy(place.data(), entries->data() + within * 16, sizeof place);
    if constexpr (std::endian::native == std::endian::big)
      std::ranges::transform(place, place.begin(), [](std::uint64_t x) { return __builtin_bswap64(x); });
    if (place[0] == kNoChunk && place[1] == kNoChunk) return std::nullopt;
    const auto size = static_cast<std::uint64_t>(file.size());
    if (std::cmp_greater(place[1], most) || place[0] > size || place[1] > size - place[0])
      throw DataError(concat("the index of ", name, " is damaged"));
    std::string packed(place[1], '\0');
    file.read(std::as_writable_bytes(std::span(packed)), static_cast<std::int64_t>(place[0]));
    fetched += std::ssize(packed);
    return packed;
  } catch (const FileError& error) {
    throw DataError(error.what());
  }
}

/// The number in chunks that are not there: where the store says none, one that is missing.
double ZarrStore::fill_of(const FileVariable& variable, const Shape& index) const {
  const ZarrArray& array = arrays_[static_cast<std::size_t>(variable.id)];
  if (array.fill) return *array.fill;
  for (const char* attribute : {"_FillValue", "missing_value"}) {
    const auto missing = variable.numbers.find(attribute);
    if (missing != variable.numbers.end() && !missing->second.empty()) return missing->second.front();
  }
  if (is_floating(*array.type)) return std::nan("");
  throw DataError(
      concat("the chunk ", join(index, "."), " of ", variable.name, " is not in ", path(),
             ", which does not say what stands there (its fill_value is null): it is not written, or was "
             "not copied"));
}

void ZarrStore::read_chunk(const FileVariable& variable, const Shape& index, std::span<std::byte> out,
                           std::int64_t& fetched) {
  const ZarrArray& array = arrays_[static_cast<std::size_t>(variable.id)];
  const auto packed = packed_chunk(variable, index, std::ssize(out) + std::ssize(out) / 8 + 65536, fetched);
  if (!packed) {
    const std::vector<std::byte> fill = bytes_of(*array.type, fill_of(variable, index), array.swapped);
    for (std::size_t i = 0; i < out.size(); i += fill.size())
      std::copy(fill.begin(), fill.end(), out.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
  unpack_chunk(array.packing, std::as_bytes(std::span(*packed)), out,
               concat("the chunk ", join(index, "."), " of ", variable.name, " in ", path()));
  beat();
}

StoredNumbers ZarrStore::read_stored(const FileVariable& variable, const Box& box, ByteBuffer& out,
                                     std::int64_t& fetched) {
  if (!(intersect(Box::whole(variable.shape), box) == box)) {
    throw DataError(
        concat("cannot read ", variable.name, " of ", path(), " at ", box, ": it has ", variable.shape));
  }
  const auto i = static_cast<std::size_t>(variable.id);
  const std::int64_t size = size_of(*arrays_[i].type);
  const std::span<std::byte> to = out.take(static_cast<std::size_t>(box.extent.count() * size));
  const Box in_array = places_[i].in_array(box);
  if (places_[i].gapless(box)) {
    read_array(variable, in_array, to, fetched);
  } else {
    ByteBuffer buffer;
    const std::span<std::byte> all = buffer.take(static_cast<std::size_t>(in_array.extent.count() * size));
    read_array(variable, in_array, all, fetched);
    places_[i].gather(box, all, to, size);
  }
  return {*arrays_[i].type, arrays_[i].swapped};
}

void ZarrStore::read_array(const FileVariable& variable, const Box& box, std::span<std::byte> out,
                           std::int64_t& fetched) {
  const ZarrArray& array = arrays_[static_cast<std::size_t>(variable.id)];
  read_by_chunks({key_, variable.id, array.shape, array.chunks, size_of(*array.type)}, box, out,
                 [&](const WantedChunk& chunk, std::span<std::byte> decoded) {
                   read_chunk(variable, chunk.index, decoded, fetched);
                 });
}

}  // namespace jigsaw::inline files
