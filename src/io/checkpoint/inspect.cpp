#include "checkpoint/inspect.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "base/file.h"
#include "base/file_kind.h"
#include "base/printable.h"
#include "base/text.h"
#include "checkpoint/folder.h"
#include "checkpoint/inspect_nifti.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/verify.h"
#include "files/probe.h"
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
    const std::vector<std::string> parts = split(printable(name), '.');
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
  const Json& extra = stored.manifest.extra;
  const Json layouts = extra.is_object() ? extra.value("layouts", Json::object()) : Json::object();
  Tree tree;
  std::int64_t count = 0, elements = 0, bytes = 0;
  std::vector<TensorRecord> tensors = stored.tensors;
  std::ranges::sort(tensors, {}, &TensorRecord::name);
  for (const TensorRecord& tensor : tensors) {
    if (!tensor.name.starts_with(group + "/")) continue;
    const std::string name = tensor.name.substr(group.size() + 1);
    const std::string layout =
        layouts.contains(name) ? concat("  ", printable(layouts.at(name).get<std::string>())) : "";
    tree.add(name, concat(padded(tensor.shape.to_string(), 20), "  ", jigsaw::name(tensor.dtype), "  ",
                          padded(human_bytes(bytes_of(tensor)), 8), layout));
    ++count;
    elements += tensor.shape.count();
    bytes += bytes_of(tensor);
  }
  return concat("  ", printable(group), ": ", counted(count, "tensor"), " of ", counted(elements, "element"),
                ", ", human_bytes(bytes), "\n", group == "parameters" ? tree.text() : "");
}

/// The data sets of these pieces of a shard.
std::vector<std::string> data_sets(const ShardRecord& shard, const std::vector<std::size_t>& pieces) {
  std::vector<std::string> names;
  std::map<std::string, std::size_t> numbers;
  for (std::size_t i = 0; i < shard.pieces.size(); ++i) {
    const std::string& tensor = shard.pieces[i].tensor;
    const std::string name = data_set_name(tensor, numbers[tensor]++);
    if (std::ranges::find(pieces, i) != pieces.end()) names.push_back(printable(name));
  }
  return names;
}

/// "" when the file is whole.
std::string verdict(const std::string& checkpoint, const FileRecord& file, const ShardRecord* shard,
                    bool by_pieces) {
  const std::string path = concat(checkpoint, "/", file.name);
  try {
    check_size(checkpoint, file);
    const ExpectedFile expected =
        shard != nullptr ? expected_file(*shard, by_pieces) : ExpectedFile{file, {}, false};
    const Verdict found = verify_bytes(path, expected);
    if (found.whole()) return "";
    return found.damaged.empty() ? "damaged"
                                 : concat("damaged in ", join(data_sets(*shard, found.damaged), ", "));
  } catch (const Error& error) {
    std::error_code unreadable;
    return fs::exists(path, unreadable) || unreadable ? error.what() : "missing";
  }
}

Inspection inspect_folder(const std::string& folder) {
  const StoredManifest stored = read_manifest(manifest_text(folder), manifest_path(folder));
  const CheckpointManifest& manifest = stored.manifest;
  Inspection result;
  result.text = concat(folder, "\n  step ", manifest.step, ", saved as number ", stored.serial, ", by ",
                       counted(std::ssize(stored.shards), "rank"), " on the mesh ",
                       printable(manifest.mesh.dump()), "\n");
  if (manifest.score)
    result.text +=
        concat("  ", printable(manifest.score->metric), " ", manifest.score->value, " in validation\n");
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
    const std::string what = verdict(folder, files[i], i < stored.shards.size() ? &stored.shards[i] : nullptr,
                                     stored.digests_by_pieces());
    if (!what.empty()) damaged.push_back(files[i].name);
    result.text +=
        concat("    ", padded(printable(files[i].name), 16), padded(human_bytes(files[i].bytes), 10),
               "xxh64 ", printable(files[i].digest), "  ", what.empty() ? "whole" : what, "\n");
  }
  if (!damaged.empty())
    result.damage = concat("the checkpoint ", folder, " is not whole: ", join(damaged, ", "));
  return result;
}

Inspection inspect_checkpoint(const std::string& path) {
  return with_checkpoint_at(path, [](const std::string& folder) {
    Inspection result = inspect_folder(folder);
    if (!result.damage.empty()) manifest_text(folder);  // which throws where the checkpoint is gone by now
    return result;
  });
}

Inspection inspect_safetensors(const std::string& path) {
  Tree tree;
  for (const SafetensorsEntry& entry : read_safetensors_header(path).entries) {
    tree.add(entry.name, concat(padded(entry.shape.to_string(), 20), "  ", padded(printable(entry.dtype), 4),
                                "  ", human_bytes(entry.end - entry.begin)));
  }
  return {concat(path, "\n", tree.text()), ""};
}

/// As its bytes stand, and with the names of dimensions, null where it has none.
struct DataFiles {
  std::unique_ptr<VariableFile> stored, named;
};

DataFiles open_data(const std::string& path) {
  probe_files({path}, Dimensions::kByNumber, External::kRefused);
  DataFiles files{open_variables(path, Dimensions::kByNumber), nullptr};
  try {
    probe_files({path}, Dimensions::kByName, External::kRefused);
    files.named = open_variables(path, Dimensions::kByName);
    // NetCDF leaves out what of HDF5 it has no type for.
    if (files.named->variables().size() != files.stored->variables().size()) files.named.reset();
  } catch (const DataError&) {
  }
  return files;
}

/// "float16  24 KiB": the type on disk, what unpacks it, and the bytes of all numbers without compression.
std::string describe_numbers(const FileVariable& variable) {
  std::string text;
  // Of HDF5, whose library converts it, a half is of the type that it becomes. Bits of GRIB are of none.
  const bool half = is_floating(variable.type) && variable.bytes == size_of(StoredType::kF16);
  if (variable.numeric() && (half || variable.bytes == size_of(variable.type))) {
    text = numpy_name(half ? StoredType::kF16 : variable.type);
    for (const char* attribute : {"scale_factor", "add_offset"}) {
      const auto found = variable.numbers.find(attribute);
      if (found != variable.numbers.end() && found->second.size() == 1)
        text += concat(", ", attribute, " ", found->second[0]);
    }
    text += "  ";
  }
  return concat(text, human_bytes(variable.shape.count() * variable.bytes));
}

Inspection inspect_data(const std::string& path) {
  Inspection result{path + "\n", ""};
  const DataFiles files = open_data(path);
  for (const FileVariable& variable : (files.named ? files.named : files.stored)->variables()) {
    std::vector<std::string> dims;
    for (int i = 0; i < variable.shape.rank(); ++i) {
      const auto dim = static_cast<std::size_t>(i);
      std::string name = dim < variable.dimensions.size() ? variable.dimensions[dim] + " " : "";
      if (name.find("phony_dim_") != std::string::npos) name.clear();  // NetCDF's, where HDF5 has no names
      dims.push_back(concat(printable(name), variable.shape[i]));
    }
    const FileVariable* found = files.stored->find(variable.name);
    const FileVariable& stored = found != nullptr && found->fault.empty() ? *found : variable;
    const std::string units = printable(variable.text("units")), name = printable(variable.text("long_name"));
    result.text += concat("    ", padded(printable(variable.name), 16), " [", join(dims, ", "), "]  ");
    if (variable.fault.empty()) {
      result.text +=
          concat(describe_numbers(stored), units.empty() ? "" : "  in ", units, name.empty() ? "" : "  ",
                 name, stored.chunks.rank() == 0 ? "" : concat("  chunks ", stored.chunks),
                 stored.compressed ? " compressed" : "", "\n");
    } else {
      result.text += concat("cannot be read: ", variable.fault, "\n");
    }
  }
  if (auto* const nifti = dynamic_cast<NiftiFile*>(files.stored.get())) result.text += describe_nifti(*nifti);
  return result;
}

}  // namespace

Inspection inspect(const std::string& path) {
  if (is_zarr_store(path)) return inspect_data(path);
  std::error_code unreadable;  // is told where it is opened
  if (fs::is_directory(path, unreadable) || is_named_as_pointer(path)) return inspect_checkpoint(path);
  if (path.ends_with(".safetensors")) return inspect_safetensors(path);
  return inspect_data(path);
}

}  // namespace jigsaw::inline checkpoint
