#include "checkpoint/size.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "checkpoint/view.h"
#include "files/hdf5_image.h"

namespace jigsaw::inline checkpoint {
namespace {

/// What HDF5 adds to a shard beyond what it was given for descriptions.
constexpr std::int64_t kShardRest = 2 << 10;
/// The heap of a view, in which virtual data sets name their sources.
constexpr std::int64_t kHeap = 4 << 10, kHeapOfSource = 256;
/// manifest.json: configuration and statistics, then a line of each tensor, with its layout, and each piece.
constexpr std::int64_t kManifest = 8 << 10, kManifestOfTensor = 128, kManifestOfPiece = 64;

/// Whether it holds the first element of its tensor, as just one of its pieces does.
bool is_first(const CheckpointPiece& piece) {
  return std::ranges::all_of(piece.box.begin, [](std::int64_t begin) { return begin == 0; });
}

}  // namespace

std::int64_t checkpoint_bytes(const std::vector<CheckpointPiece>& own, Communicator& communicator) {
  std::int64_t numbers = 0, pieces = 0, tensors = 0;
  std::array<std::int64_t, 2> sources{}, viewed{};  // in parameters.h5, in average.h5
  for (const CheckpointPiece& piece : own) {
    if (piece.box.empty()) continue;
    const std::int64_t first = is_first(piece) ? 1 : 0;
    numbers += piece.array.bytes();
    ++pieces;
    tensors += first;
    const bool average = piece.tensor.starts_with("average/");
    if (!average && !piece.tensor.starts_with("parameters/")) continue;
    ++sources[average ? 1 : 0];
    viewed[average ? 1 : 0] += first;
  }
  const std::int64_t described = shard_description_bytes(static_cast<std::size_t>(pieces)) + kShardRest,
                     shard = std::max(numbers + described, Hdf5Image::kLeastBytes);
  std::array<double, 7> all{};
  std::ranges::transform(std::array{shard, pieces, tensors, sources[0], sources[1], viewed[0], viewed[1]},
                         all.begin(), [](std::int64_t count) { return static_cast<double>(count); });
  const auto sums = communicator.all_reduce(all, ReduceOp::kSum);
  const auto sum = [&](std::size_t which) { return std::llround(sums[which]); };
  std::int64_t bytes = sum(0) + kManifest + kManifestOfTensor * sum(2) + kManifestOfPiece * sum(1);
  for (const std::size_t view : {0, 1}) {
    if (view == 1 && sum(4) == 0) continue;  // there is no average.h5
    const std::int64_t shown =
        view_description_bytes(sum(5 + view), sum(3 + view)) + kHeap + kHeapOfSource * sum(3 + view);
    bytes += std::max(shown, Hdf5Image::kLeastBytes);
  }
  return bytes;
}

}  // namespace jigsaw::inline checkpoint
