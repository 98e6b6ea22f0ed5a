#include "train/model_parameters.h"

#include "array/box_runs.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "optim/owned_parameters.h"
#include "train/training_state.h"

namespace jigsaw::inline train {

void append_pieces(const std::string& kind, const Segment& segment, const Array& array,
                   std::vector<CheckpointPiece>& pieces) {
  const std::string tensor = concat(kind, "/", segment.parameter->name());
  std::int64_t at = 0;
  for (const Box& box : boxes_of_run(segment.box, segment.first, segment.count)) {
    pieces.push_back({tensor, segment.parameter->shape(), box, array.slice(at, box.extent)});
    at += box.extent.count();
  }
}

std::int64_t load_parameters(const FoundCheckpoint& found, const Rank& rank,
                             const std::vector<ParameterBlock*>& blocks, const std::string& kind) {
  Communicator& world = rank.mesh.world();
  std::vector<CheckpointPiece> pieces;
  together(world, [&] {
    const TensorRecord* any = found.stored.find_group(kind);
    if (any == nullptr)
      throw CheckpointError(concat("the checkpoint ", found.path, " holds no tensor ", kind, "/…"));
    check_tensors(found, expected_tensors(blocks, any->dtype, {kind}));
    for (ParameterBlock* block : blocks) {
      for (const auto& group : block->groups()) {
        const Array stored = group->stored();
        for (const Segment& segment : group->stored_segments())
          append_pieces(kind, segment, stored.slice(segment.at, {segment.count}), pieces);
      }
    }
  });
  std::int64_t bytes = 0;
  together(world, [&] { bytes = read_pieces(found, pieces, world); });
  OwnedParameters(rank, blocks, {}).share();
  return bytes;
}

}  // namespace jigsaw::inline train
