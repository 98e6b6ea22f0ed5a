#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "array/context.h"
#include "checkpoint/checkpoint.h"

namespace jigsaw::inline checkpoint {

/// A tensor of a safetensors file (github.com/huggingface/safetensors, "Format"): 8 bytes, little-endian,
/// with the length of a JSON header; the header; the elements of all tensors, row-major.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;  ///< "F32", "F64", "F16", "BF16", …
  Shape shape;
  std::int64_t begin = 0, end = 0;  ///< of its bytes in the file
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;        ///< in the order of the bytes
  std::map<std::string, std::string> metadata;  ///< texts by name
};

/// The header of a file. @throws DataError  that names the file when it is no safetensors file, or its
/// tensors are not all of its bytes, each once.
SafetensorsHeader read_safetensors_header(const std::string& path);

/// Writes the tensors "<group>/<name>" of a checkpoint as whole tensors "<name>", atomically, and the run's
/// statistics as the metadata "jigsaw.statistics". No more than rows of about 64 MiB are held at a time.
/// @return  how many tensors.
/// @throws ConfigError  when `output` is there and no safetensors file. @throws CheckpointError, FileError
int export_safetensors(const FoundCheckpoint& checkpoint, const std::string& group, const std::string& output,
                       Context& context);

/// Throws the DataError of a text that holds no statistics, by the name that the text has there.
using CheckStatistics = std::function<void(const std::string& text, const std::string& source)>;

/// A checkpoint of tensors of a file, and the names of those that are no parameters.
struct Imported {
  std::string path;
  std::vector<std::string> left_out;
};

/// Writes a checkpoint of parameters, and of statistics if the file has them, for --init-from, into `folder`;
/// F16 and BF16 become fp32. Tensors of whole numbers, as PyTorch's num_batches_tracked, are left out. No
/// more than about 256 MiB are held at a time. Where it fails, it leaves no folder that was not there before.
/// @param check  of the statistics, which lie in a room above.
/// @throws DataError  when the file cannot be used; CheckpointError, FileError
Imported import_safetensors(const std::string& input, const std::string& folder, Context& context,
                            const CheckStatistics& check);

}  // namespace jigsaw::inline checkpoint
