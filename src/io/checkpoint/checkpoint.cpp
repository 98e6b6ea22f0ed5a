#include "checkpoint/checkpoint.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "array/box_runs.h"
#include "array/host_view.h"
#include "array/transfer.h"
#include "base/file.h"
#include "base/text.h"
#include "checkpoint/verify.h"
#include "comm/agreement.h"
#include "comm/from_first.h"

namespace jigsaw::inline checkpoint {
namespace {

namespace fs = std::filesystem;

/// All ranks run `body`; when it throws on any of them, all throw.
template <typename Body>
void agree(Communicator& communicator, Body&& body) {
  const std::string failure = first_failure(communicator, body);
  if (!failure.empty()) throw CheckpointError(failure);
}

void check_bytes(const std::string& checkpoint, const ExpectedFile& expected) {
  const std::string path = concat(checkpoint, "/", expected.file.name);
  const Verdict verdict = verify_bytes(path, expected);
  if (verdict.whole()) return;
  throw CheckpointError(concat(
      "the checkpoint file ", path,
      " is damaged: ", verdict.file_fits ? "the digest of a piece does not fit" : "its digest does not fit"));
}

std::string description_of(const TensorRecord& tensor) {
  return concat("\"", tensor.name, "\" of shape ", tensor.shape, " in ", name(tensor.dtype));
}

std::string group_of(const std::string& tensor) {
  return tensor.substr(0, tensor.find('/') + 1);
}

/// Elements [first, first + array.count()) of the piece's data set, converted to the array's type.
void read_elements(const File& file, const PieceRecord& piece, std::int64_t first, const Array& to) {
  const std::int64_t offset = piece.offset + first * size_of(piece.dtype);
  if (piece.dtype == to.dtype()) return file.read(HostView<std::byte>(to), offset);
  visit(piece.dtype, [&](auto from_zero) {
    using From = decltype(from_zero);
    std::vector<From> stored(static_cast<std::size_t>(to.count()));
    file.read(std::as_writable_bytes(std::span(stored)), offset);
    visit(to.dtype(), [&](auto to_zero) {
      using To = decltype(to_zero);
      std::ranges::transform(stored, HostView<To>(to).begin(),
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

/// The files in as many parts as there are ranks, for each to verify one.
std::vector<std::string> divide_files(const StoredManifest& stored, int ranks) {
  std::vector<ExpectedFile> files;
  for (const ShardRecord& shard : stored.shards)
    files.push_back(expected_file(shard, stored.digests_by_pieces()));
  for (const FileRecord& view : stored.views) files.push_back({view, {}, false});
  std::vector<Json> parts(static_cast<std::size_t>(ranks), Json::array());
  for (std::size_t i = 0; i < files.size(); ++i)
    parts[i % parts.size()].push_back(describe_expected(files[i]));
  std::vector<std::string> texts;
  for (const Json& part : parts) texts.push_back(part.dump());
  return texts;
}

void check_wanted(const FoundCheckpoint& checkpoint, const std::vector<CheckpointPiece>& wanted) {
  for (const CheckpointPiece& piece : wanted) {
    if (piece.box.empty()) continue;
    const TensorRecord* tensor = checkpoint.stored.find(piece.tensor);
    if (tensor == nullptr) {
      throw CheckpointError(concat("the checkpoint ", checkpoint.path, " does not hold all of \"",
                                   piece.tensor, "\", ", piece.box, " of ", piece.shape));
    }
    if (tensor->shape == piece.shape) continue;
    throw CheckpointError(concat("the checkpoint ", checkpoint.path, " holds \"", piece.tensor,
                                 "\" of shape ", tensor->shape, ", wanted is ", piece.shape));
  }
}

/// [[name, begin, extent], …]
Json describe_wanted(const std::vector<CheckpointPiece>& wanted) {
  Json json = Json::array();
  for (const CheckpointPiece& piece : wanted) {
    const Shape &begin = piece.box.begin, &extent = piece.box.extent;
    if (!piece.box.empty()) {
      json.push_back(Json::array({piece.tensor, std::vector<std::int64_t>(begin.begin(), begin.end()),
                                  std::vector<std::int64_t>(extent.begin(), extent.end())}));
    }
  }
  return json;
}

Shape shape_of(const Json& json) {
  Shape shape;
  for (const Json& extent : json) shape.append(extent.get<std::int64_t>());
  return shape;
}

/// Finds the stored pieces that have elements of a box.
class PieceIndex {
 public:
  explicit PieceIndex(const StoredManifest& stored) : stored_(stored) {
    for (std::size_t s = 0; s < stored.shards.size(); ++s) {
      for (std::size_t p = 0; p < stored.shards[s].pieces.size(); ++p)
        by_tensor_[stored.shards[s].pieces[p].tensor].emplace_back(s, p);
    }
  }

  /// The shards with what of them is wanted, as text. @param request  describe_wanted().
  std::string answer(const Json& request) const {
    std::map<std::size_t, std::set<std::size_t>> found;
    for (const Json& wanted : request) {
      const auto pieces = by_tensor_.find(wanted[0].get<std::string>());
      if (pieces == by_tensor_.end()) continue;
      const Box box{shape_of(wanted[1]), shape_of(wanted[2])};
      for (const auto& [shard, piece] : pieces->second) {
        if (!intersect(stored_.shards[shard].pieces[piece].box, box).empty()) found[shard].insert(piece);
      }
    }
    std::vector<ShardRecord> shards;
    for (const auto& [shard, pieces] : found) {
      ShardRecord& part = shards.emplace_back(ShardRecord{stored_.shards[shard].file, {}});
      for (const std::size_t piece : pieces) part.pieces.push_back(stored_.shards[shard].pieces[piece]);
    }
    return describe_shards(shards).dump();
  }

 private:
  const StoredManifest& stored_;
  std::map<std::string, std::vector<std::pair<std::size_t, std::size_t>>> by_tensor_;  ///< shard, piece
};

/// Of the stored pieces what is wanted; how many bytes that were.
std::int64_t read_from_shards(const std::string& path, const std::vector<ShardRecord>& shards,
                              const std::vector<CheckpointPiece>& wanted) {
  std::multimap<std::string, std::size_t> by_tensor;
  std::vector<std::int64_t> missing;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    by_tensor.emplace(wanted[i].tensor, i);
    missing.push_back(wanted[i].box.extent.count());
  }
  std::int64_t bytes = 0;
  for (const ShardRecord& shard : shards) {
    std::optional<File> file;
    for (const PieceRecord& piece : shard.pieces) {
      const auto [begin, end] = by_tensor.equal_range(piece.tensor);
      for (auto it = begin; it != end; ++it) {
        const CheckpointPiece& target = wanted[it->second];
        const Box common = intersect(piece.box, target.box);
        if (common.empty()) continue;
        if (!file) file.emplace(concat(path, "/", shard.file.name), O_RDONLY);
        const std::int64_t count = read_common(*file, piece, common, target);
        missing[it->second] -= count;
        bytes += count * size_of(piece.dtype);
      }
    }
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (missing[i] == 0) continue;
    throw CheckpointError(concat("the checkpoint ", path, " does not hold all of \"", wanted[i].tensor,
                                 "\", ", wanted[i].box, " of ", wanted[i].shape));
  }
  return bytes;
}

}  // namespace

void open_chosen(FoundCheckpoint& found, Communicator& communicator, Verify verify) {
  std::vector<std::string> parts;
  agree(communicator, [&] {
    if (communicator.rank() != 0) return;
    found.stored = read_manifest(manifest_text(found.path), manifest_path(found.path));
    parts = divide_files(found.stored, communicator.size());
  });
  found.path = communicator.broadcast_text(found.path);
  const std::string head = communicator.broadcast_text(communicator.rank() == 0 ? head_of(found.stored) : "");
  if (communicator.rank() != 0) found.stored = read_head(head);
  const Json mine = Json::parse(communicator.scatter_text(std::move(parts)));
  agree(communicator, [&] {
    for (const Json& each : mine) {
      const ExpectedFile expected = read_expected(each);
      check_size(found.path, expected.file);
      if (verify == Verify::kSizesOnly) continue;
      check_bytes(found.path, expected);
      found.verified_bytes += expected.file.bytes;
    }
  });
}

FoundCheckpoint choose_checkpoint(const std::string& path, Communicator& communicator) {
  FoundCheckpoint found;
  agree(communicator, [&] {
    if (communicator.rank() == 0) found.path = checkpoint_at(path);
  });
  return found;
}

bool chosen_anew(const std::string& path, const FoundCheckpoint& found, Communicator& communicator) {
  const std::string anew =
      from_first(communicator, [&] { return chosen_anew(path, found.path) ? "yes" : ""; });
  return !anew.empty();
}

FoundCheckpoint open_checkpoint(const std::string& path, Communicator& communicator, Verify verify) {
  return with_checkpoint(path, communicator, verify, [](FoundCheckpoint& found) { return std::move(found); });
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
  const Json found = Json::parse(communicator.broadcast_text(text));
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
    if (stored == nullptr) refuse("no such tensor", description_of(tensor));
    if (!(stored->shape == tensor.shape) || stored->dtype != tensor.dtype)
      refuse(description_of(*stored), description_of(tensor));
  }
  for (const TensorRecord& tensor : checkpoint.stored.tensors) {
    if (groups.contains(group_of(tensor.name)) && !names.contains(tensor.name))
      refuse(description_of(tensor), "no such tensor");
  }
}

namespace {

/// The same pieces on the host, where files are read to: those that stand on a device have a copy there.
std::vector<CheckpointPiece> on_host(const Context& context, std::vector<CheckpointPiece> pieces) {
  for (CheckpointPiece& piece : pieces) {
    const Array& array = piece.array;
    if (array.device() != Device::kCpu)
      piece.array = Array(context.host(), array.shape(), array.dtype(), Purpose::kWorkspace);
  }
  return pieces;
}

}  // namespace

std::int64_t read_pieces(const FoundCheckpoint& checkpoint, const std::vector<CheckpointPiece>& wanted,
                         Communicator& communicator) {
  std::vector<std::string> requests;
  agree(communicator, [&] { check_wanted(checkpoint, wanted); });
  requests = communicator.gather_text(describe_wanted(wanted).dump());
  std::vector<std::string> answers;
  agree(communicator, [&] {
    if (communicator.rank() != 0) return;
    const PieceIndex index(checkpoint.stored);
    for (const std::string& request : requests) answers.push_back(index.answer(Json::parse(request)));
  });
  const std::string answer = communicator.scatter_text(std::move(answers));
  std::int64_t bytes = 0;
  agree(communicator, [&] {
    const std::vector<ShardRecord> shards = read_shards(Json::parse(answer), false);
    const std::vector<CheckpointPiece> pieces = on_host(communicator.context(), wanted);
    bytes = read_from_shards(checkpoint.path, shards, pieces);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (wanted[i].array.device() != Device::kCpu)
        upload_into(communicator.context(), pieces[i].array, wanted[i].array);
    }
  });
  return bytes;
}

}  // namespace jigsaw::inline checkpoint
