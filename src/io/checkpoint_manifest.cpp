#include "io/checkpoint_manifest.h"

#include <fcntl.h>

#include <cstdio>

#include "base/file.h"
#include "base/text.h"

namespace jigsaw {
namespace {

constexpr std::int64_t kFormatVersion = 1;
constexpr const char* kDigestKey = "xxh64";

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw CheckpointError(concat(path, " is not a whole manifest of a checkpoint: ", why));
}

void check_version(const Json& json, const std::string& path) {
  const auto version = json.find("format_version");
  if (version == json.end() || !version->is_number_integer()) refuse(path, "it has no format_version");
  if (version->get<std::int64_t>() != kFormatVersion) {
    throw CheckpointError(concat(path, " is of format version ", version->dump(),
                                 ", this program reads version ", kFormatVersion,
                                 "; use the program that wrote it, or a newer one"));
  }
}

/// The digest of the manifest stands in the manifest: of all the rest, compact and in order.
void check_digest(Json& json, const std::string& path) {
  const auto digest = json.find(kDigestKey);
  if (digest == json.end() || !digest->is_string()) refuse(path, "it has no digest");
  const std::string expected = digest->get<std::string>();
  json.erase(kDigestKey);
  if (digest_of_text(json.dump()) != expected) refuse(path, "its digest does not fit");
}

std::int64_t natural(const Json& json) {
  const auto number = json.get<std::int64_t>();
  if (!json.is_number_integer() || number < 0) fail("a count is not a whole number of at least 0");
  return number;
}

ShardRecord read_record(const Json& json) {
  ShardRecord record{natural(json.at("bytes")), json.at(kDigestKey).get<std::string>(), {}};
  for (const Json& piece : json.at("pieces")) {
    record.pieces.push_back(
        {piece.at(0).get<std::string>(), piece.at(1).get<std::string>(), natural(piece.at(2))});
  }
  return record;
}

}  // namespace

std::string shard_name(std::size_t rank) {
  char text[32];
  std::snprintf(text, sizeof text, "rank_%04zu.h5", rank);
  return text;
}

ShardRecord::Piece describe_piece(const CheckpointPiece& piece) {
  return {piece.name, std::string(name(piece.array.dtype())), piece.array.count()};
}

Json describe_shard(const std::string& path, const std::vector<CheckpointPiece>& pieces) {
  Json list = Json::array();
  for (const CheckpointPiece& piece : pieces) {
    const auto [name, dtype, count] = describe_piece(piece);
    list.push_back(Json::array({name, dtype, count}));
  }
  return {{"bytes", File(path, O_RDONLY).size()}, {kDigestKey, digest_of_file(path)}, {"pieces", list}};
}

std::string write_manifest(const CheckpointManifest& manifest, std::int64_t serial,
                           const std::vector<Json>& shards) {
  Json json = {{"format_version", kFormatVersion},
               {"serial", serial},
               {"step", manifest.step},
               {"mesh", manifest.mesh},
               {"extra", manifest.extra},
               {"shards", shards}};
  json[kDigestKey] = digest_of_text(json.dump());
  return json.dump() + "\n";
}

StoredManifest read_manifest(std::string_view text, const std::string& path) {
  try {
    Json json = parse_json(text, path);
    if (!json.is_object()) refuse(path, concat("it holds ", describe(json)));
    check_version(json, path);
    check_digest(json, path);
    StoredManifest stored{
        {natural(json.at("step")), json.at("mesh"), json.at("extra")}, natural(json.at("serial")), {}};
    for (const Json& shard : json.at("shards")) stored.shards.push_back(read_record(shard));
    return stored;
  } catch (const CheckpointError&) {
    throw;
  } catch (const std::exception& error) {
    refuse(path, error.what());
  }
}

}  // namespace jigsaw
