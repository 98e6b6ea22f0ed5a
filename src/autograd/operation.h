#pragma once
#include <string_view>
#include <vector>

#include "parallel/rule.h"

namespace jigsaw {

/// The differentiable operations, one for each function of autograd/operations.h and
/// autograd/field_operations.h. The validator proves the rows of every one of them
/// (proof/operation_cases.h).
enum class Operation : std::uint8_t {
  kContract,
  kPointwise,
  kLayerNorm,
  kPatchify,
  kUnpatchify,
  kAttention,
  kCrossAttention,
  kRotary,
  kWindowAttention,
  kConcatenate,
  kConvolution,
  kGlobalAverage,
  kPad,
  kPooling,
  kResample,
  kTransposedConvolution,
  kRmsNorm,
  kGroupNorm,
  kBatchNorm,
};

/// The function's name; empty for a number that names none.
std::string_view name(Operation operation);
std::vector<Operation> all_operations();

}  // namespace jigsaw
