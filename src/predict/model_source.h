#pragma once
#include <span>
#include <string>

#include "predict/trained_model.h"

namespace jigsaw::inline predict {

/// What the attribute `source` of files says that models made, by which their checkpoints are known again, on
/// rank 0: "jigsaw-train, averaged weights of step 200 of runs/uk/checkpoints/step_00000200 (digest
/// 0123456789abcdef)", parted by semicolons.
std::string source_of(std::span<const TrainedModel> models);

}  // namespace jigsaw::inline predict
