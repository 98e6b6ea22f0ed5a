#include "checkpoint/inspect.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "base/file.h"
#include "base/text.h"
#include "checkpoint/folder.h"
#include "checkpoint/safetensors.h"
#include "files/digest.h"
#include "files/variable_file.h"

namespace jigsaw::inline checkpoint {
namespace {

namespace fs = std::filesystem;

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

/// Names at dots, each part said once: a line per leaf, indented under its parents.
class Tree {
 public:
  void add(const std::string& name, const std::string& leaf) {
    const std::vector<std::string> parts = split(name, '.');
    std::size_t depth = 0;
    while (depth + 1 < parts.size() && depth + 1 < open_.size() && parts[depth] == open_[depth]) ++depth;
    for (; depth + 1 < parts.size(); ++depth) text_ += concat(indent(depth), parts[depth], "\n");
    text_ += concat(padded(indent(depth) + parts.back(), 36), " ", leaf, "\n");
    open_ = parts;
  }
  const std::string& text() const { return text_; }

 private:
  static std::string indent(std::size_t depth) { return std::string(4 + 2 * depth, ' '); }
  std::vector<std::string> open_;
  std::string text_;
};

std::int64_t bytes_of(const TensorRecord& tensor) {
  return tensor.shape.count() * size_of(tensor.dtype);
}

std::string describe_tensors(const StoredManifest& stored, const std::string& group) {
  const Json layouts = stored.manifest.extra.value("layouts", Json::object());
  Tree tree;
  std::int64_t count = 0, elements = 0, bytes = 0;
  std::vector<TensorRecord> tensors = stored.tensors;
  std::ranges::sort(tensors, {}, &TensorRecord::name);
  for (const TensorRecord& tensor : tensors) {
    if (!tensor.name.starts_with(group + "/")) continue;
    const std::string name = tensor.name.substr(group.size() + 1);
    const std::string layout =
        layouts.contains(name) ? concat("  ", layouts.at(name).get<std::string>()) : "";
    tree.add(name, concat(padded(tensor.shape.to_string(), 20), "  ", jigsaw::name(tensor.dtype), "  ",
                          padded(human_bytes(bytes_of(tensor)), 8), layout));
    ++count;
    elements += tensor.shape.count();
    bytes += bytes_of(tensor);
  }
  return concat("  ", group, ": ", count, " tensors of ", elements, " elements, ", human_bytes(bytes), "\n",
                group == "parameters" ? tree.text() : "");
}

/// The data sets of a shard whose digests do not fit.
std::vector<std::string> damaged_pieces(const std::string& path, const ShardRecord& shard) {
  const File file(path, O_RDONLY);
  std::vector<std::string> damaged;
  std::map<std::string, std::size_t> numbers;
  for (const PieceRecord& piece : shard.pieces) {
    const std::size_t number = numbers[piece.tensor]++;
    std::vector<std::byte> bytes(static_cast<std::size_t>(piece.box.extent.count() * size_of(piece.dtype)));
    file.read(bytes, piece.offset);
    if (digest_of(bytes) != piece.digest) damaged.push_back(data_set_name(piece.tensor, number));
  }
  return damaged;
}

/// "" when the file is whole.
std::string verdict(const std::string& checkpoint, const FileRecord& file, const ShardRecord* shard) {
  const std::string path = concat(checkpoint, "/", file.name);
  try {
    check_size(checkpoint, file);
    if (digest_of_file(path) == file.digest) return "";
    const std::vector<std::string> pieces =
        shard != nullptr ? damaged_pieces(path, *shard) : std::vector<std::string>{};
    return pieces.empty() ? "damaged" : concat("damaged in ", join(pieces, ", "));
  } catch (const Error& error) {
    return fs::exists(path) ? error.what() : "missing";
  }
}

Inspection inspect_checkpoint(const std::string& path) {
  const std::string folder = checkpoint_at(path);
  const StoredManifest stored = read_manifest(manifest_text(folder), manifest_path(folder));
  const CheckpointManifest& manifest = stored.manifest;
  Inspection result;
  result.text = concat(folder, "\n  step ", manifest.step, ", saved as number ", stored.serial, ", by ",
                       stored.shards.size(), " ranks on the mesh ", manifest.mesh.dump(), "\n");
  if (manifest.score)
    result.text += concat("  ", manifest.score->metric, " ", manifest.score->value, " in validation\n");
  std::vector<std::string> groups;
  for (const TensorRecord& tensor : stored.tensors) {
    const std::string group = tensor.name.substr(0, tensor.name.find('/'));
    if (std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
  }
  for (const std::string& group : groups) result.text += describe_tensors(stored, group);
  result.text += "  files\n";
  const std::vector<FileRecord> files = stored.files();
  std::vector<std::string> damaged;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string what =
        verdict(folder, files[i], i < stored.shards.size() ? &stored.shards[i] : nullptr);
    if (!what.empty()) damaged.push_back(files[i].name);
    result.text += concat("    ", padded(files[i].name, 16), padded(human_bytes(files[i].bytes), 10),
                          "xxh64 ", files[i].digest, "  ", what.empty() ? "whole" : what, "\n");
  }
  if (!damaged.empty())
    result.damage = concat("the checkpoint ", folder, " is not whole: ", join(damaged, ", "));
  return result;
}

Inspection inspect_safetensors(const std::string& path) {
  Tree tree;
  for (const SafetensorsEntry& entry : read_safetensors_header(path)) {
    tree.add(entry.name, concat(padded(entry.shape.to_string(), 20), "  ", padded(entry.dtype, 4), "  ",
                                human_bytes(entry.end - entry.begin)));
  }
  return {concat(path, "\n", tree.text()), ""};
}

Inspection inspect_data(const std::string& path) {
  Inspection result{path + "\n", ""};
  const std::unique_ptr<VariableFile> file = open_variables(path, Dimensions::kByNumber);
  for (const FileVariable& variable : file->variables()) {
    std::vector<std::string> dims;
    for (int i = 0; i < variable.shape.rank(); ++i) {
      const auto dim = static_cast<std::size_t>(i);
      const std::string name = dim < variable.dimensions.size() ? variable.dimensions[dim] + " " : "";
      dims.push_back(concat(name, variable.shape[i]));
    }
    const std::string units = variable.text("units"), name = variable.text("long_name");
    result.text += concat("    ", padded(variable.name, 16), " [", join(dims, ", "), "]  ",
                          human_bytes(variable.shape.count() * variable.bytes), units.empty() ? "" : "  in ",
                          units, name.empty() ? "" : "  ", name, "\n");
  }
  return result;
}

}  // namespace

Inspection inspect(const std::string& path) {
  if (fs::is_directory(path) || fs::path(path).filename() == "latest") return inspect_checkpoint(path);
  if (path.ends_with(".safetensors")) return inspect_safetensors(path);
  return inspect_data(path);
}

}  // namespace jigsaw::inline checkpoint
