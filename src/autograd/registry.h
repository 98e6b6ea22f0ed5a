#pragma once
#include <functional>
#include <string>
#include <vector>

#include "autograd/tape.h"

namespace jigsaw::inline autograd {

/// One way to call an operation whose rules are to be proved: its letters, options, what may be left out.
struct ProofCase {
  using Run = std::function<std::vector<Variable>(Tape&, const std::vector<Variable>&)>;
  /// The call on inputs of certain shapes. `run` calls the operation once; its random numbers may depend on
  /// the tape's, its gradients are wanted for all inputs.
  struct Instance {
    std::vector<Shape> inputs;
    Run run;
  };
  std::string name;  ///< what varies: letters, options
  /// A rule is right when it is right in all of them. Together they let every dim be cut evenly, unevenly and
  /// with pieces left empty by 2 and 3 ranks, in ways that differ from unit to unit.
  std::vector<Instance> instances;
};

/// Every shape with the same call, which gives one value.
ProofCase make_case(std::string name, const std::vector<std::vector<Shape>>& inputs, Tape::Function run);
/// Adds a call that gives one value.
void add_instance(ProofCase& one, const std::vector<Shape>& inputs, Tape::Function run);

/// An operation of autograd/operations.h and autograd/field_operations.h, and the cases that prove its rules;
/// they stand in the operation's own file.
struct RegisteredOperation {
  std::string name;
  std::vector<ProofCase> (*cases)();
};

/// All differentiable operations. A new one adds its cases' declaration and its line in registry.cpp.
const std::vector<RegisteredOperation>& all_operations();
const RegisteredOperation& find_operation(const std::string& name);

std::vector<ProofCase> attention_cases();
std::vector<ProofCase> batch_norm_cases();
std::vector<ProofCase> concatenate_cases();
std::vector<ProofCase> contract_cases();
std::vector<ProofCase> contract_fixed_cases();
std::vector<ProofCase> convolution_cases();
std::vector<ProofCase> cross_attention_cases();
std::vector<ProofCase> global_average_cases();
std::vector<ProofCase> group_norm_cases();
std::vector<ProofCase> layer_norm_cases();
std::vector<ProofCase> multiply_cases();
std::vector<ProofCase> pad_cases();
std::vector<ProofCase> patchify_cases();
std::vector<ProofCase> pointwise_cases();
std::vector<ProofCase> pooling_cases();
std::vector<ProofCase> prelu_cases();
std::vector<ProofCase> resample_cases();
std::vector<ProofCase> rms_norm_cases();
std::vector<ProofCase> rotary_cases();
std::vector<ProofCase> split_cases();
std::vector<ProofCase> transposed_convolution_cases();
std::vector<ProofCase> unpatchify_cases();
std::vector<ProofCase> window_attention_cases();

}  // namespace jigsaw::inline autograd
