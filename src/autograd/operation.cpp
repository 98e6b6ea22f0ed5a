#include "autograd/operation.h"

namespace jigsaw {

std::string_view name(Operation operation) {
  switch (operation) {
    case Operation::kContract:
      return "contract";
    case Operation::kPointwise:
      return "pointwise";
    case Operation::kLayerNorm:
      return "layer_norm";
    case Operation::kPatchify:
      return "patchify";
    case Operation::kUnpatchify:
      return "unpatchify";
    case Operation::kAttention:
      return "attention";
    case Operation::kCrossAttention:
      return "cross_attention";
    case Operation::kRotary:
      return "rotary";
    case Operation::kWindowAttention:
      return "window_attention";
    case Operation::kConcatenate:
      return "concatenate";
    case Operation::kConvolution:
      return "convolution";
    case Operation::kGlobalAverage:
      return "global_average";
    case Operation::kPad:
      return "pad";
    case Operation::kPooling:
      return "pooling";
    case Operation::kResample:
      return "resample";
    case Operation::kTransposedConvolution:
      return "transposed_convolution";
    case Operation::kRmsNorm:
      return "rms_norm";
    case Operation::kGroupNorm:
      return "group_norm";
    case Operation::kBatchNorm:
      return "batch_norm";
  }
  return "";
}

std::vector<Operation> all_operations() {
  std::vector<Operation> operations;
  for (int number = 0; number < 256; ++number) {
    const auto operation = static_cast<Operation>(number);
    if (!name(operation).empty()) operations.push_back(operation);
  }
  return operations;
}

}  // namespace jigsaw
