#include "proof/operation_cases.h"

#include "base/error.h"

namespace jigsaw {

std::vector<OperationCase> operation_cases(Operation operation) {
  switch (operation) {
    case Operation::kContract:
      return contraction_cases();
    case Operation::kPointwise:
      return pointwise_cases();
    case Operation::kLayerNorm:
      return layer_norm_cases();
    case Operation::kPatchify:
      return patchify_cases();
    case Operation::kUnpatchify:
      return unpatchify_cases();
    case Operation::kAttention:
      return attention_cases();
    case Operation::kCrossAttention:
      return cross_attention_cases();
    case Operation::kRotary:
      return rotary_cases();
    case Operation::kWindowAttention:
      return window_attention_cases();
    case Operation::kConcatenate:
      return concatenate_cases();
    case Operation::kConvolution:
      return convolution_cases();
    case Operation::kGlobalAverage:
      return global_average_cases();
    case Operation::kPad:
      return pad_cases();
    case Operation::kPooling:
      return pooling_cases();
    case Operation::kResample:
      return resample_cases();
    case Operation::kTransposedConvolution:
      return transposed_convolution_cases();
    case Operation::kRmsNorm:
      return rms_norm_cases();
    case Operation::kGroupNorm:
      return group_norm_cases();
    case Operation::kBatchNorm:
      return batch_norm_cases();
  }
  fail("a number that is no operation");
}

OperationCase make_case(std::string name, const std::vector<std::vector<Shape>>& inputs, Tape::Function run) {
  OperationCase result{std::move(name), {}};
  for (const std::vector<Shape>& shapes : inputs) result.instances.push_back({shapes, run});
  return result;
}

}  // namespace jigsaw
