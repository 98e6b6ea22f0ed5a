#pragma once
#include <functional>
#include <string>
#include <vector>

#include "autograd/operation.h"
#include "autograd/tape.h"

namespace jigsaw {

/// One way to call an operation: its letters, options, what may be left out.
struct OperationCase {
  /// The call on inputs of certain shapes. `run` calls the operation once; its random numbers may depend on
  /// the tape's, its gradients are wanted for all inputs.
  struct Instance {
    std::vector<Shape> inputs;
    Tape::Function run;
  };
  std::string name;  ///< what varies: letters, options
  /// A row is right when it is right in all of them. Together they let every dim be cut evenly, unevenly and
  /// with pieces left empty by 2 and 3 ranks, in ways that differ from unit to unit.
  std::vector<Instance> instances;
};

/// What the validator tries of an operation. A new operation adds a file of cases and a line here.
std::vector<OperationCase> operation_cases(Operation operation);

/// Every shape with the same call.
OperationCase make_case(std::string name, const std::vector<std::vector<Shape>>& inputs, Tape::Function run);

std::vector<OperationCase> contraction_cases();
std::vector<OperationCase> pointwise_cases();
std::vector<OperationCase> layer_norm_cases();
std::vector<OperationCase> rms_norm_cases();
std::vector<OperationCase> group_norm_cases();
std::vector<OperationCase> batch_norm_cases();
std::vector<OperationCase> patchify_cases();
std::vector<OperationCase> unpatchify_cases();
std::vector<OperationCase> attention_cases();
std::vector<OperationCase> cross_attention_cases();
std::vector<OperationCase> rotary_cases();
std::vector<OperationCase> window_attention_cases();
std::vector<OperationCase> concatenate_cases();
std::vector<OperationCase> convolution_cases();
std::vector<OperationCase> global_average_cases();
std::vector<OperationCase> pad_cases();
std::vector<OperationCase> pooling_cases();
std::vector<OperationCase> resample_cases();
std::vector<OperationCase> transposed_convolution_cases();

}  // namespace jigsaw
