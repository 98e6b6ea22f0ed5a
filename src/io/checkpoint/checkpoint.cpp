#include "checkpoint/checkpoint.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "array/box_runs.h"
#include "base/file.h"
#include "base/text.h"
#include "checkpoint/folder.h"
#include "comm/agreement.h"
#include "files/digest.h"

namespace jigsaw {
namespace {

namespace fs = std::filesystem;

/// All ranks run `body`; when it throws on any of them, all throw.
template <typename Body>
void agree(Communicator& communicator, Body&& body) {
  const std::string failure = first_failure(communicator, body);
  if (!failure.empty()) throw CheckpointError(failure);
}

void check_digest(const std::string& checkpoint, const FileRecord& file) {
  const std::string path = concat(checkpoint, "/", file.name);
  if (digest_of_file(path) != file.digest) {
    throw CheckpointError(concat("the checkpoint file ", path, " is damaged: its digest does not fit"));
  }
}

std::string describe(const TensorRecord& tensor) {
  return concat("\"", tensor.name, "\" of shape ", tensor.shape, " in ", name(tensor.dtype));
}

std::string group_of(const std::string& tensor) {
  return tensor.substr(0, tensor.find('/') + 1);
}

/// Elements [first, first + array.count()) of the piece's data set, converted to the array's type.
void read_elements(const File& file, const PieceRecord& piece, std::int64_t first, const Array& to) {
  const std::int64_t offset = piece.offset + first * size_of(piece.dtype);
  const auto bytes = [](const Array& array) {
    return std::span(array.raw(), static_cast<std::size_t>(array.bytes()));
  };
  if (piece.dtype == to.dtype()) return file.read(bytes(to), offset);
  visit(piece.dtype, [&](auto from_zero) {
    using From = decltype(from_zero);
    std::vector<From> stored(static_cast<std::size_t>(to.count()));
    file.read(std::as_writable_bytes(std::span(stored)), offset);
    visit(to.dtype(), [&](auto to_zero) {
      using To = decltype(to_zero);
      std::ranges::transform(stored, to.data<To>(),
                             [](From x) { return static_cast<To>(static_cast<double>(x)); });
    });
  });
}

/// Reads what a stored piece has of a wanted one; how many elements that are.
std::int64_t read_common(const File& file, const PieceRecord& stored, const Box& common,
                         const CheckpointPiece& wanted) {
  for_each_common_run(common, stored.box, wanted.box,
                      [&](std::int64_t from, std::int64_t to, std::int64_t count) {
                        read_elements(file, stored, from, wanted.array.slice(to, {count}));
                      });
  return common.extent.count();
}

}  // namespace

FoundCheckpoint open_checkpoint(const std::string& path, Communicator& communicator, Verify verify) {
  FoundCheckpoint found;
  std::string text;
  agree(communicator, [&] {
    if (communicator.rank() != 0) return;
    const std::string folder = checkpoint_at(path);
    text = concat(folder, "\n", manifest_text(folder));
  });
  text = communicator.all_gather_text(text).front();
  const std::size_t line = text.find('\n');
  found.path = text.substr(0, line);
  found.stored = read_manifest(std::string_view(text).substr(line + 1), manifest_path(found.path));
  agree(communicator, [&] {
    const std::vector<FileRecord> files = found.stored.files();
    const auto ranks = static_cast<std::size_t>(communicator.size());
    for (auto i = static_cast<std::size_t>(communicator.rank()); i < files.size(); i += ranks) {
      check_size(found.path, files[i]);
      if (verify == Verify::kSizesOnly) continue;
      check_digest(found.path, files[i]);
      found.verified_bytes += files[i].bytes;
    }
  });
  return found;
}

std::optional<FoundCheckpoint> newest_checkpoint(const std::string& checkpoints_dir,
                                                 Communicator& communicator,
                                                 std::vector<std::string>& warnings, Verify verify) {
  std::string text;
  agree(communicator, [&] {
    if (communicator.rank() != 0) return;
    const CheckpointFolder::Survey present = CheckpointFolder(checkpoints_dir).survey();
    Json names = Json::array();
    for (const auto& entry : present.whole) names.push_back(entry.name);
    text = Json::array({names, present.warnings}).dump(-1, ' ', false, Json::error_handler_t::replace);
  });
  const Json found = Json::parse(communicator.all_gather_text(text).front());
  for (const Json& warning : found[1]) warnings.push_back(warning.get<std::string>());
  for (const Json& name : found[0]) {
    try {
      return open_checkpoint(concat(checkpoints_dir, "/", name.get<std::string>()), communicator, verify);
    } catch (const CheckpointError& error) {
      warnings.push_back(concat(error.what(), "; it is passed over"));
    }
  }
  return std::nullopt;
}

void check_tensors(const FoundCheckpoint& checkpoint, const std::vector<TensorRecord>& expected) {
  const auto refuse = [&](const std::string& there, const std::string& here) {
    throw CheckpointError(concat("the checkpoint ", checkpoint.path, " holds ", there, " where this run has ",
                                 here, "; model, precision and optimizer must be those it was saved with"));
  };
  std::set<std::string> names, groups;
  for (const TensorRecord& tensor : expected) {
    names.insert(tensor.name);
    groups.insert(group_of(tensor.name));
    if (tensor.shape.count() == 0) continue;
    const TensorRecord* stored = checkpoint.stored.find(tensor.name);
    if (stored == nullptr) refuse("no such tensor", describe(tensor));
    if (!(stored->shape == tensor.shape) || stored->dtype != tensor.dtype)
      refuse(describe(*stored), describe(tensor));
  }
  for (const TensorRecord& tensor : checkpoint.stored.tensors) {
    if (groups.contains(group_of(tensor.name)) && !names.contains(tensor.name))
      refuse(describe(tensor), "no such tensor");
  }
}

std::int64_t read_pieces(const FoundCheckpoint& checkpoint, const std::vector<CheckpointPiece>& wanted) try {
  std::multimap<std::string, std::size_t> by_tensor;
  std::vector<std::int64_t> missing;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    by_tensor.emplace(wanted[i].tensor, i);
    missing.push_back(wanted[i].box.extent.count());
  }
  std::int64_t bytes = 0;
  for (const ShardRecord& shard : checkpoint.stored.shards) {
    std::optional<File> file;
    for (const PieceRecord& piece : shard.pieces) {
      const auto [begin, end] = by_tensor.equal_range(piece.tensor);
      for (auto it = begin; it != end; ++it) {
        const CheckpointPiece& target = wanted[it->second];
        if (!(target.shape == piece.shape)) {
          throw CheckpointError(concat("the checkpoint ", checkpoint.path, " holds \"", piece.tensor,
                                       "\" of shape ", piece.shape, ", wanted is ", target.shape));
        }
        const Box common = intersect(piece.box, target.box);
        if (common.empty()) continue;
        if (!file) file.emplace(concat(checkpoint.path, "/", shard.file.name), O_RDONLY);
        const std::int64_t count = read_common(*file, piece, common, target);
        missing[it->second] -= count;
        bytes += count * size_of(piece.dtype);
      }
    }
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (missing[i] == 0) continue;
    throw CheckpointError(concat("the checkpoint ", checkpoint.path, " does not hold all of \"",
                                 wanted[i].tensor, "\", ", wanted[i].box, " of ", wanted[i].shape));
  }
  return bytes;
} catch (const FileError& error) {
  throw CheckpointError(error.what());
}

}  // namespace jigsaw
