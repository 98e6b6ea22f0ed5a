#include "checkpoint/manifest.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "array/box_cover.h"
#include "base/text.h"
#include "files/digest.h"

namespace jigsaw::inline checkpoint {
namespace {

constexpr std::int64_t kFormatVersion = 3, kOldestVersion = 2;
constexpr const char* kDigestKey = "xxh64";

/// How a manifest ends.
std::string digest_suffix(const std::string& digest) {
  return concat(",\"", kDigestKey, "\":\"", digest, "\"}");
}

[[noreturn]] void refuse_manifest(const std::string& path, const std::string& why) {
  throw CheckpointError(concat(path, " is not a whole manifest of a checkpoint: ", why));
}

void check_version(const Json& json, const std::string& path) {
  const auto version = json.find("format_version");
  if (version == json.end() || !version->is_number_integer())
    refuse_manifest(path, "it has no format_version");
  const auto number = version->get<std::int64_t>();
  if (number < kOldestVersion || number > kFormatVersion) {
    throw CheckpointError(concat(path, " is of format version ", version->dump(),
                                 ", this program reads versions ", kOldestVersion, " to ", kFormatVersion,
                                 "; use the program that wrote it, or a newer one"));
  }
}

/// The manifest's own digest is its last key: of the text without it.
void check_digest(const Json& json, std::string_view text, const std::string& path) {
  const auto digest = json.find(kDigestKey);
  if (digest == json.end() || !digest->is_string()) refuse_manifest(path, "it has no digest");
  const std::string end = digest_suffix(digest->get<std::string>());
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  if (!text.ends_with(end)) refuse_manifest(path, "its digest is not its last key");
  text.remove_suffix(end.size());
  if (digest_of_text(concat(text, "}")) != digest->get<std::string>())
    refuse_manifest(path, "its digest does not fit");
}

Json list(const Shape& shape) {
  return std::vector<std::int64_t>(shape.begin(), shape.end());
}

Shape read_shape(const Json& json) {
  if (json.size() > Shape::kMaxRank) fail("a tensor has too many dims");
  Shape shape;
  std::int64_t count = 1;
  for (const Json& extent : json) {
    shape.append(read_count(extent));
    if (shape.back() > kMostElements / count) fail("a tensor is too large");
    count *= std::max<std::int64_t>(shape.back(), 1);
  }
  return shape;
}

DType read_dtype(const Json& json) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    if (json.get<std::string>() == name(dtype)) return dtype;
  }
  fail("a tensor is neither fp32 nor fp64");
}

PieceRecord read_piece(const Json& json, const std::vector<TensorRecord>& tensors, const FileRecord& file) {
  const TensorRecord& tensor = tensors.at(static_cast<std::size_t>(read_count(json.at(0))));
  PieceRecord piece{tensor.name,
                    tensor.dtype,
                    tensor.shape,
                    {read_shape(json.at(1)), read_shape(json.at(2))},
                    read_count(json.at(3)),
                    json.at(4).get<std::string>()};
  const Box& box = piece.box;
  bool fits = box.begin.rank() == tensor.shape.rank() && box.extent.rank() == tensor.shape.rank();
  for (int dim = 0; fits && dim < tensor.shape.rank(); ++dim) {
    fits = box.extent[dim] <= tensor.shape[dim] && box.begin[dim] <= tensor.shape[dim] - box.extent[dim];
  }
  if (!fits) fail(concat("a piece lies outside of the tensor ", tensor.name));
  if (piece.offset > file.bytes || box.extent.count() > (file.bytes - piece.offset) / size_of(tensor.dtype))
    fail(concat("a piece of the tensor ", tensor.name, " lies outside of the file ", file.name));
  return piece;
}

/// Each tensor is made up by its pieces.
void check_boxes(const std::vector<TensorRecord>& tensors, const std::vector<ShardRecord>& shards) {
  std::map<std::string, std::vector<Box>> boxes;
  for (const ShardRecord& shard : shards) {
    for (const PieceRecord& piece : shard.pieces) boxes[piece.tensor].push_back(piece.box);
  }
  for (const TensorRecord& tensor : tensors) {
    if (!make_up(Box::whole(tensor.shape), std::move(boxes[tensor.name])))
      fail(concat("the pieces of the tensor ", tensor.name, " do not make it up"));
  }
}

/// No byte of a shard belongs to two pieces.
void check_places(const ShardRecord& shard) {
  std::vector<std::pair<std::int64_t, std::int64_t>> places;
  for (const PieceRecord& piece : shard.pieces) {
    const std::int64_t bytes = piece.box.extent.count() * size_of(piece.dtype);
    if (bytes > 0) places.emplace_back(piece.offset, piece.offset + bytes);
  }
  std::ranges::sort(places);
  for (std::size_t i = 1; i < places.size(); ++i) {
    if (places[i].first < places[i - 1].second)
      fail(concat("two pieces stand in the same place of the file ", shard.file.name));
  }
}

void check_whole(const std::vector<TensorRecord>& tensors, const std::vector<ShardRecord>& shards) {
  std::set<std::string> files;
  for (const ShardRecord& shard : shards) {
    if (!files.insert(shard.file.name).second) fail(concat("the file ", shard.file.name, " is there twice"));
    check_places(shard);
  }
  check_boxes(tensors, shards);
}

std::vector<TensorRecord> read_tensors(const Json& json) {
  std::vector<TensorRecord> tensors;
  std::set<std::string> names;
  for (const Json& tensor : json) {
    tensors.push_back({tensor.at(0).get<std::string>(), read_dtype(tensor.at(1)), read_shape(tensor.at(2))});
    const std::string& name = tensors.back().name;
    if (const std::string fault = fault_of_name(name); !fault.empty())
      fail(concat("a tensor's name ", fault));
    if (!names.insert(name).second) fail(concat("the tensor ", name, " is there twice"));
  }
  return tensors;
}

/// What this program itself reads of `extra`; the rest is the run's.
void check_extra(const Json& extra) {
  if (extra.is_null()) return;
  if (!extra.is_object()) fail("its key \"extra\" is no object");
  const auto layouts = extra.find("layouts");
  if (layouts == extra.end()) return;
  if (!layouts->is_object() ||
      !std::ranges::all_of(*layouts, [](const Json& layout) { return layout.is_string(); }))
    fail("its layouts are no texts");
}

Json list_tensors(const std::vector<TensorRecord>& tensors) {
  Json json = Json::array();
  for (const TensorRecord& tensor : tensors)
    json.push_back(Json::array({tensor.name, name(tensor.dtype), list(tensor.shape)}));
  return json;
}

Json describe_head(const CheckpointManifest& manifest, std::int64_t serial) {
  Json json = {{"format_version", kFormatVersion},
               {"serial", serial},
               {"step", manifest.step},
               {"mesh", manifest.mesh},
               {"extra", manifest.extra}};
  if (manifest.score) json["score"] = {{"metric", manifest.score->metric}, {"value", manifest.score->value}};
  return json;
}

StoredManifest read_head(const Json& json) {
  StoredManifest stored;
  stored.manifest.step = read_count(json.at("step"), kMostSteps);
  stored.manifest.mesh = json.at("mesh");
  stored.manifest.extra = json.at("extra");
  check_extra(stored.manifest.extra);
  stored.serial = read_count(json.at("serial"));
  if (const auto score = json.find("score"); score != json.end()) {
    stored.manifest.score = {score->at("metric").get<std::string>(), score->at("value").get<double>()};
  }
  stored.tensors = read_tensors(json.at("tensors"));
  return stored;
}

}  // namespace

std::int64_t read_count(const Json& json, std::int64_t most) {
  // Only then is it a number that converts.
  const bool whole = json.is_number_unsigned() || (json.is_number_integer() && json.get<std::int64_t>() >= 0);
  if (!whole || std::cmp_greater(json.get<std::uint64_t>(), most))
    fail(concat("a count is not a whole number from 0 to ", most));
  return json.get<std::int64_t>();
}

std::string fault_of_name(const std::string& name) {
  constexpr std::size_t kLongestName = 512;
  if (name.size() > kLongestName)
    return concat("has ", name.size(), " characters, and may have ", kLongestName);
  const std::vector<std::string> parts = split(name, '/');
  // In HDF5 they are names of groups.
  const auto unusable = [](const std::string& part) { return part.empty() || part == "."; };
  if (parts.size() != 2 || std::ranges::any_of(parts, unusable))
    return concat("is ", quote(name), ", which is not \"group/tensor\"");
  return name.find('\0') != std::string::npos ? "holds a zero byte" : "";
}

Json describe_file(const FileRecord& file) {
  return {{"name", file.name}, {"bytes", file.bytes}, {kDigestKey, file.digest}};
}

FileRecord read_file_record(const Json& json) {
  FileRecord file{json.at("name").get<std::string>(), read_count(json.at("bytes")),
                  json.at(kDigestKey).get<std::string>()};
  if (file.name.empty() || file.name.front() == '.' || file.name.find('/') != std::string::npos)
    fail("a file is not named as one of a checkpoint");
  return file;
}

std::string head_of(const StoredManifest& stored) {
  Json json = describe_head(stored.manifest, stored.serial);
  json["tensors"] = list_tensors(stored.tensors);
  return json.dump();
}

StoredManifest read_head(const std::string& text) {
  return read_head(Json::parse(text));
}

const TensorRecord* StoredManifest::find(const std::string& tensor) const {
  const auto found = std::ranges::find(tensors, tensor, &TensorRecord::name);
  return found == tensors.end() ? nullptr : &*found;
}

const TensorRecord* StoredManifest::find_group(const std::string& group) const {
  const auto found =
      std::ranges::find_if(tensors, [&](const auto& tensor) { return tensor.name.starts_with(group + "/"); });
  return found == tensors.end() ? nullptr : &*found;
}

std::vector<FileRecord> StoredManifest::files() const {
  std::vector<FileRecord> result;
  for (const ShardRecord& shard : shards) result.push_back(shard.file);
  result.insert(result.end(), views.begin(), views.end());
  return result;
}

std::vector<TensorRecord> tensors_of(const std::vector<ShardRecord>& shards) {
  std::vector<TensorRecord> tensors;
  std::map<std::string, bool> seen;
  for (const ShardRecord& shard : shards) {
    for (const PieceRecord& piece : shard.pieces) {
      if (!std::exchange(seen[piece.tensor], true))
        tensors.push_back({piece.tensor, piece.dtype, piece.shape});
    }
  }
  return tensors;
}

Json describe_shards(const std::vector<ShardRecord>& shards) {
  const std::vector<TensorRecord> tensors = tensors_of(shards);
  Json json = {{"tensors", list_tensors(tensors)}, {"shards", Json::array()}};
  std::map<std::string, std::size_t> index;
  for (const TensorRecord& tensor : tensors) index.emplace(tensor.name, index.size());
  for (const ShardRecord& shard : shards) {
    Json described = describe_file(shard.file);
    described["pieces"] = Json::array();
    for (const PieceRecord& piece : shard.pieces) {
      described["pieces"].push_back(Json::array({index.at(piece.tensor), list(piece.box.begin),
                                                 list(piece.box.extent), piece.offset, piece.digest}));
    }
    json["shards"].push_back(std::move(described));
  }
  return json;
}

std::vector<ShardRecord> read_shards(const Json& json, bool whole) {
  const std::vector<TensorRecord> tensors = read_tensors(json.at("tensors"));
  std::vector<ShardRecord> shards;
  for (const Json& described : json.at("shards")) {
    ShardRecord shard{read_file_record(described), {}};
    for (const Json& piece : described.at("pieces")) {
      shard.pieces.push_back(read_piece(piece, tensors, shard.file));
    }
    shards.push_back(std::move(shard));
  }
  if (whole) check_whole(tensors, shards);
  return shards;
}

std::string write_manifest(const CheckpointManifest& manifest, std::int64_t serial,
                           const std::vector<ShardRecord>& shards, const std::vector<FileRecord>& views) {
  Json json = describe_head(manifest, serial);
  json.update(describe_shards(shards));
  json["views"] = Json::array();
  for (const FileRecord& view : views) json["views"].push_back(describe_file(view));
  std::string text = json.dump();
  const std::string end = digest_suffix(digest_of_text(text));
  text.pop_back();
  return concat(text, end, "\n");
}

StoredManifest read_manifest(std::string_view text, const std::string& path) {
  try {
    const Json json = parse_json(text, path);
    if (!json.is_object()) refuse_manifest(path, concat("it holds ", describe(json)));
    check_version(json, path);
    check_digest(json, text, path);
    StoredManifest stored = read_head(json);
    stored.version = json.at("format_version").get<std::int64_t>();
    stored.shards = read_shards(json, true);
    for (const Json& view : json.at("views")) stored.views.push_back(read_file_record(view));
    return stored;
  } catch (const CheckpointError&) {
    throw;
  } catch (const Json::exception& error) {
    refuse_manifest(path, sentence_of(error));
  } catch (const std::exception& error) {
    refuse_manifest(path, error.what());
  }
}

}  // namespace jigsaw::inline checkpoint
