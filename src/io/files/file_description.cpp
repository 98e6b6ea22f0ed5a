#include "files/file_description.h"

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>

namespace jigsaw::inline files {

namespace {

using nlohmann::json;

json to_json(const Shape& shape) {
  return std::vector<std::int64_t>(shape.begin(), shape.end());
}
Shape described_shape(const json& extents) {
  return Shape(extents.get<std::vector<std::int64_t>>());
}

json to_json(const FileState& state) {
  return {state.device, state.inode, state.bytes, state.seconds, state.nanoseconds};
}
FileState state_of(const json& described) {
  return {described.at(0).get<std::uint64_t>(), described.at(1).get<std::uint64_t>(),
          described.at(2).get<std::int64_t>(), described.at(3).get<std::int64_t>(),
          described.at(4).get<std::int64_t>()};
}

json to_json(const FileVariable& variable) {
  json result = {{"name", variable.name},
                 {"id", variable.id},
                 {"bytes", variable.bytes},
                 {"fault", variable.fault},
                 {"single_precision", variable.single_precision},
                 {"type", static_cast<int>(variable.type)},
                 {"chunks", to_json(variable.chunks)},
                 {"compressed", variable.compressed},
                 {"dimensions", variable.dimensions},
                 {"shape", to_json(variable.shape)},
                 {"texts", variable.texts},
                 {"numbers", variable.numbers},
                 {"floating", variable.floating},
                 {"single", variable.single}};
  if (variable.default_fill) result["default_fill"] = *variable.default_fill;
  return result;
}

FileVariable variable_of(const json& described) {
  FileVariable variable;
  described.at("name").get_to(variable.name);
  described.at("id").get_to(variable.id);
  described.at("bytes").get_to(variable.bytes);
  described.at("fault").get_to(variable.fault);
  described.at("single_precision").get_to(variable.single_precision);
  variable.type = static_cast<StoredType>(described.at("type").get<int>());
  variable.chunks = described_shape(described.at("chunks"));
  described.at("compressed").get_to(variable.compressed);
  described.at("dimensions").get_to(variable.dimensions);
  variable.shape = described_shape(described.at("shape"));
  described.at("texts").get_to(variable.texts);
  described.at("numbers").get_to(variable.numbers);
  described.at("floating").get_to(variable.floating);
  described.at("single").get_to(variable.single);
  if (described.contains("default_fill")) variable.default_fill = described["default_fill"].get<double>();
  return variable;
}

json to_json(const DescribedPiece& piece) {
  std::vector<std::uint8_t> bytes(piece.bytes.size());
  std::memcpy(bytes.data(), piece.bytes.data(), bytes.size());
  return {{"begin", to_json(piece.box.begin)},
          {"extent", to_json(piece.box.extent)},
          {"type", static_cast<int>(piece.numbers.type)},
          {"swapped", piece.numbers.swapped},
          {"bytes", json::binary(std::move(bytes))}};
}

DescribedPiece piece_of(const json& described) {
  DescribedPiece piece;
  piece.box = {described_shape(described.at("begin")), described_shape(described.at("extent"))};
  piece.numbers = {static_cast<StoredType>(described.at("type").get<int>()),
                   described.at("swapped").get<bool>()};
  const std::vector<std::uint8_t>& bytes = described.at("bytes").get_binary();
  piece.bytes.resize(bytes.size());
  std::memcpy(piece.bytes.data(), bytes.data(), bytes.size());
  return piece;
}

}  // namespace

/// CBOR, for attributes are NaN and infinite at times, and texts no UTF-8.
std::string FileDescription::to_bytes() const {
  json described = {{"format", format},         {"path", path},       {"stands_for", stands_for},
                    {"state", to_json(state)},  {"machine", machine}, {"variables", json::array()},
                    {"values", json::object()}, {"texts", texts},     {"own", own}};
  for (const FileVariable& variable : variables) described["variables"].push_back(to_json(variable));
  for (const auto& [name, pieces] : values) {
    for (const DescribedPiece& piece : pieces) described["values"][name].push_back(to_json(piece));
  }
  const std::vector<std::uint8_t> bytes = json::to_cbor(described);
  return {bytes.begin(), bytes.end()};
}

FileDescription FileDescription::from_bytes(const std::string& bytes) {
  const json described = json::from_cbor(bytes);
  FileDescription result;
  described.at("format").get_to(result.format);
  described.at("path").get_to(result.path);
  described.at("stands_for").get_to(result.stands_for);
  result.state = state_of(described.at("state"));
  described.at("machine").get_to(result.machine);
  for (const json& variable : described.at("variables")) result.variables.push_back(variable_of(variable));
  for (const auto& [name, pieces] : described.at("values").items()) {
    for (const json& piece : pieces) result.values[name].push_back(piece_of(piece));
  }
  described.at("texts").get_to(result.texts);
  described.at("own").get_to(result.own);
  return result;
}

}  // namespace jigsaw::inline files
