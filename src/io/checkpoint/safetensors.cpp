#include "checkpoint/safetensors.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <filesystem>
#include <optional>

#include "array/host_view.h"
#include "base/file.h"
#include "base/output_place.h"
#include "base/text.h"
#include "checkpoint/folder.h"
#include "comm/self/self.h"

namespace jigsaw::inline checkpoint {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "elements are written as they stand in memory");

constexpr const char* kMetadata = "__metadata__";
constexpr const char* kStatistics = "jigsaw.statistics";
constexpr std::int64_t kLengthBytes = 8;
constexpr std::int64_t kMostHeaderBytes = 100'000'000;  // the reference implementation's limit
constexpr std::int64_t kChunkBytes = 64 << 20;
constexpr std::int64_t kShardBytes = 256 << 20;

[[noreturn]] void refuse_safetensors(const std::string& path, const std::string& why) {
  throw DataError(concat(path, " is no safetensors file that can be used: ", why));
}

/// Bytes of an element; nothing for a type that is not imported.
std::optional<std::int64_t> element_bytes(const std::string& dtype) {
  if (dtype == "F64") return 8;
  if (dtype == "F32") return 4;
  if (dtype == "F16" || dtype == "BF16") return 2;
  return std::nullopt;
}

DType stored_type(const std::string& dtype) {
  return dtype == "F64" ? DType::kFloat64 : DType::kFloat32;
}

/// IEEE binary16.
float half_to_float(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  const float sign = (bits & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
}

Shape read_shape(const Json& json, const std::string& path) {
  if (!json.is_array() || json.size() > Shape::kMaxRank)
    refuse_safetensors(path, "a tensor has too many dims");
  Shape shape;
  std::int64_t count = 1;
  for (const Json& extent : json) {
    if (!extent.is_number_unsigned()) refuse_safetensors(path, "an extent is no whole number");
    const auto value = extent.get<std::uint64_t>();
    if (value > static_cast<std::uint64_t>(kMostElements / count))
      refuse_safetensors(path, "a tensor is too large");
    shape.append(static_cast<std::int64_t>(value));
    count *= std::max<std::int64_t>(shape.back(), 1);
  }
  return shape;
}

/// Boxes of whole rows along the first dim, of about kChunkBytes each, one row at least; none where there are
/// no elements, however many rows they are in.
std::vector<Box> row_boxes(const Shape& shape, std::int64_t element) {
  if (shape.rank() == 0) return {Box::whole(shape)};
  if (shape.count() == 0) return {};
  const std::int64_t row = shape.count(1, shape.rank()) * element;
  const std::int64_t rows = std::max<std::int64_t>(kChunkBytes / row, 1);
  std::vector<Box> boxes;
  for (std::int64_t first = 0; first < shape[0]; first += rows) {
    Box box = Box::whole(shape);
    box.begin[0] = first;
    box.extent[0] = std::min(rows, shape[0] - first);
    boxes.push_back(box);
  }
  return boxes;
}

std::string header_of(const std::vector<TensorRecord>& tensors, std::size_t prefix, const Json& extra) {
  Json header = {{kMetadata, {{"format", "pt"}}}};
  if (extra.is_object() && extra.contains("statistics"))
    header[kMetadata][kStatistics] = extra.at("statistics").dump();
  std::int64_t at = 0;
  for (const TensorRecord& tensor : tensors) {
    const std::int64_t end = at + tensor.shape.count() * size_of(tensor.dtype);
    header[tensor.name.substr(prefix)] = {
        {"dtype", tensor.dtype == DType::kFloat64 ? "F64" : "F32"},
        {"shape", std::vector<std::int64_t>(tensor.shape.begin(), tensor.shape.end())},
        {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that elements are aligned
  return text;
}

/// The elements of a box of rows, in the type in which checkpoints hold them.
Array read_rows(const File& file, const SafetensorsEntry& entry, const Box& box, Context& context) {
  const std::int64_t element = *element_bytes(entry.dtype);
  const std::int64_t row = entry.shape.rank() == 0 ? 0 : entry.shape.count(1, entry.shape.rank());
  const std::int64_t first = entry.shape.rank() == 0 ? 0 : box.begin[0] * row;
  Array rows(context, {box.extent.count()}, stored_type(entry.dtype), Purpose::kWorkspace);
  const std::int64_t offset = entry.begin + first * element;
  if (element > 2) {
    file.read(HostView<std::byte>(rows), offset);
    return rows;
  }
  std::vector<std::uint16_t> bits(static_cast<std::size_t>(rows.count()));
  file.read(std::as_writable_bytes(std::span(bits)), offset);
  const bool brain = entry.dtype == "BF16";
  std::ranges::transform(bits, HostView<float>(rows).begin(), [&](std::uint16_t x) {
    return brain ? std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16) : half_to_float(x);
  });
  return rows;
}

/// Sorts tensors by their bytes, which are all from `begin` to `end`, each once.
void check_places(std::vector<SafetensorsEntry>& entries, std::int64_t begin, std::int64_t end,
                  const std::string& path) {
  std::ranges::sort(entries, {}, [](const auto& entry) { return std::pair(entry.begin, entry.end); });
  std::int64_t at = begin;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin < at)
      refuse_safetensors(path, concat("the tensor ", quote(entry.name), " overlaps another one"));
    if (entry.begin > at)
      refuse_safetensors(path, concat("bytes before the tensor ", quote(entry.name), " are of none"));
    at = entry.end;
  }
  if (at != end) refuse_safetensors(path, concat("its last ", end - at, " bytes are of no tensor"));
}

/// The statistics that a file brings along, for a manifest.
Json statistics_of(const SafetensorsHeader& header, const std::string& path, const CheckStatistics& check) {
  const auto found = header.metadata.find(kStatistics);
  if (found == header.metadata.end()) return nullptr;
  const std::string source = concat("its metadata ", kStatistics);
  try {
    check(found->second, source);
    return parse_json(found->second, source);
  } catch (const Error& error) {
    refuse_safetensors(path, error.what());
  }
}

/// The folders of a path that are not there yet: removes those that are empty when it ends.
class NewFolders {
 public:
  explicit NewFolders(const std::string& path) {
    std::error_code unreadable;
    fs::path folder = fs::absolute(path, unreadable).lexically_normal();
    if (!folder.has_filename()) folder = folder.parent_path();
    for (; folder.has_filename() && fs::symlink_status(folder, unreadable).type() == fs::file_type::not_found;
         folder = folder.parent_path())
      missing_.push_back(folder);
  }
  ~NewFolders() {
    std::error_code holds_something;
    for (const fs::path& folder : missing_) fs::remove(folder, holds_something);
  }
  NewFolders(const NewFolders&) = delete;
  NewFolders& operator=(const NewFolders&) = delete;

 private:
  std::vector<fs::path> missing_;  ///< the innermost first
};

}  // namespace

SafetensorsHeader read_safetensors_header(const std::string& path) try {
  const File file(path, O_RDONLY);
  std::uint64_t length = 0;
  if (file.size() < kLengthBytes) refuse_safetensors(path, "it is too short");
  file.read(std::as_writable_bytes(std::span(&length, 1)), 0);
  const auto rest = static_cast<std::uint64_t>(file.size() - kLengthBytes);
  if (length > rest || length > static_cast<std::uint64_t>(kMostHeaderBytes))
    refuse_safetensors(path, "its header does not fit into it");
  std::string text(length, '\0');
  file.read(std::as_writable_bytes(std::span(text)), kLengthBytes);
  const Json header = parse_json(text, path);
  if (!header.is_object()) refuse_safetensors(path, "its header is no object");
  const std::int64_t data = kLengthBytes + static_cast<std::int64_t>(length);
  SafetensorsHeader result;
  for (const auto& [name, described] : header.items()) {
    if (name == kMetadata) {
      for (const auto& [key, value] : described.items()) result.metadata[key] = value.get<std::string>();
      continue;
    }
    SafetensorsEntry entry{name, described.at("dtype").get<std::string>(),
                           read_shape(described.at("shape"), path)};
    const Json& offsets = described.at("data_offsets");
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned() ||
        offsets[0].get<std::uint64_t>() > offsets[1].get<std::uint64_t>() ||
        offsets[1].get<std::uint64_t>() > rest - length)
      refuse_safetensors(path, concat("the tensor ", quote(name), " lies outside of it"));
    entry.begin = data + offsets[0].get<std::int64_t>();
    entry.end = data + offsets[1].get<std::int64_t>();
    const auto element = element_bytes(entry.dtype);
    if (element && entry.end - entry.begin != entry.shape.count() * *element)
      refuse_safetensors(
          path, concat("the tensor ", quote(name), " has another number of bytes than its shape says"));
    if (const std::string fault = fault_of_name("parameters/" + name); !fault.empty())
      refuse_safetensors(path, concat("the name of a tensor ", fault));
    result.entries.push_back(std::move(entry));
  }
  check_places(result.entries, data, file.size(), path);
  return result;
} catch (const DataError&) {
  throw;
} catch (const Json::exception& error) {
  refuse_safetensors(path, sentence_of(error));
} catch (const std::exception& error) {
  refuse_safetensors(path, error.what());
}

int export_safetensors(const FoundCheckpoint& checkpoint, const std::string& group, const std::string& output,
                       Context& context) {
  std::vector<TensorRecord> tensors;
  for (const TensorRecord& tensor : checkpoint.stored.tensors) {
    if (tensor.name.starts_with(group + "/")) tensors.push_back(tensor);
  }
  if (tensors.empty())
    throw CheckpointError(concat("the checkpoint ", checkpoint.path, " holds no tensors \"", group, "/…\""));
  check_output_place("--output", output, "is no safetensors file", [](const std::string& path) {
    read_safetensors_header(path);
    return true;
  });
  const auto self = make_self_communicator(context);
  const std::string header = header_of(tensors, group.size() + 1, checkpoint.stored.manifest.extra);
  Replacement replacement(output);
  File& file = replacement.file();
  const auto length = static_cast<std::uint64_t>(header.size());
  file.write(std::as_bytes(std::span(&length, 1)), 0);
  file.write(std::as_bytes(std::span(header)), kLengthBytes);
  std::int64_t at = kLengthBytes + static_cast<std::int64_t>(header.size());
  for (const TensorRecord& tensor : tensors) {
    for (const Box& box : row_boxes(tensor.shape, size_of(tensor.dtype))) {
      const Array rows(context, {box.extent.count()}, tensor.dtype, Purpose::kWorkspace);
      read_pieces(checkpoint, {{tensor.name, tensor.shape, box, rows}}, *self);
      file.write(HostView<std::byte>(rows), at);
      at += rows.bytes();
    }
  }
  replacement.commit();
  return static_cast<int>(tensors.size());
}

namespace {

bool is_of_whole_numbers(const SafetensorsEntry& entry) {
  constexpr std::array kTypes = {"BOOL", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64"};
  return std::ranges::find(kTypes, entry.dtype) != kTypes.end();
}

}  // namespace

Imported import_safetensors(const std::string& input, const std::string& folder, Context& context,
                            const CheckStatistics& check) {
  const SafetensorsHeader header = read_safetensors_header(input);
  Json statistics = statistics_of(header, input, check);
  std::vector<SafetensorsEntry> entries = header.entries;
  std::vector<std::string> left_out;
  for (const SafetensorsEntry& entry : entries)
    if (is_of_whole_numbers(entry)) left_out.push_back(entry.name);
  std::erase_if(entries, is_of_whole_numbers);
  if (entries.empty()) refuse_safetensors(input, "it holds no tensor of F64, F32, F16 or BF16");
  std::int64_t bytes = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (!element_bytes(entry.dtype))
      refuse_safetensors(input, concat("the tensor ", quote(entry.name), " is of type ", entry.dtype,
                                       ", F64, F32, F16 and BF16 are read"));
    bytes += entry.shape.count() * size_of(stored_type(entry.dtype));
  }
  for (const char* name : {"checkpoints", "config.json"}) {
    if (std::error_code unreadable; fs::exists(fs::path(folder) / name, unreadable))
      throw CheckpointError(concat(quote(folder), " is a run directory, with ", name,
                                   " in it; import into a folder of its own"));
  }
  const CheckpointFolder checkpoints(folder);
  if (const CheckpointFolder::Survey present = checkpoints.survey();
      !present.whole.empty() || !present.warnings.empty()) {
    throw CheckpointError(concat(quote(folder), " holds checkpoints; import into a folder of its own"));
  }
  const File file(input, O_RDONLY);
  const NewFolders unless_filled(folder);
  checkpoints.probe();
  const std::string temporary = checkpoints.begin(0, bytes);
  try {
    std::vector<ShardRecord> shards;
    std::vector<CheckpointPiece> pieces;
    std::int64_t held = 0;
    const auto flush = [&] {
      shards.push_back(write_shard(temporary, shard_name(shards.size()), pieces));
      pieces.clear();
      held = 0;
    };
    for (const SafetensorsEntry& entry : entries) {
      for (const Box& box : row_boxes(entry.shape, size_of(stored_type(entry.dtype)))) {
        pieces.push_back(
            {concat("parameters/", entry.name), entry.shape, box, read_rows(file, entry, box, context)});
        held += pieces.back().array.bytes();
        if (held >= kShardBytes) flush();
      }
    }
    if (!pieces.empty() || shards.empty()) flush();
    sync_folder(temporary);
    const std::string name = fs::path(input).filename().string();
    CheckpointManifest manifest{0, Json::object(), {{"imported_from", name}}, {}};
    if (!statistics.is_null()) manifest.extra["statistics"] = std::move(statistics);
    std::string path = checkpoints.commit(temporary, manifest, shards);
    checkpoints.name_latest(path);
    return {std::move(path), std::move(left_out)};
  } catch (...) {
    CheckpointFolder::abandon(temporary);
    throw;
  }
}

}  // namespace jigsaw::inline checkpoint
