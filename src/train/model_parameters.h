#pragma once
#include <string>
#include <vector>

#include "autograd/parameter.h"
#include "checkpoint/checkpoint.h"

namespace jigsaw::inline train {

/// Part of a parameter, or of what is kept for it, as boxes of the tensor "<kind>/<parameter>" that share the
/// array's memory.
/// @param array  the elements of the segment.
void append_pieces(const std::string& kind, const Segment& segment, const Array& array,
                   std::vector<CheckpointPiece>& pieces);

/// Takes the parameters of a checkpoint into a model that only runs forward, whatever the mesh and the type
/// that they were saved in. Collective.
///
/// @param kind  "parameters", or "average" for their moving average.
/// @return      bytes read by this rank.
/// @throws CheckpointError  when the checkpoint holds other parameters than the model has, or cannot be read.
std::int64_t load_parameters(const FoundCheckpoint& found, const Rank& rank,
                             const std::vector<ParameterBlock*>& blocks, const std::string& kind);

}  // namespace jigsaw::inline train
