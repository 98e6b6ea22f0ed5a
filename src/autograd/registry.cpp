#include "autograd/registry.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline autograd {

const std::vector<RegisteredOperation>& all_operations() {
  static const std::vector<RegisteredOperation> all = {
      {"attention", attention_cases},
      {"batch_norm", batch_norm_cases},
      {"concatenate", concatenate_cases},
      {"contract", contract_cases},
      {"contract_fixed", contract_fixed_cases},
      {"convolution", convolution_cases},
      {"cross_attention", cross_attention_cases},
      {"global_average", global_average_cases},
      {"group_norm", group_norm_cases},
      {"layer_norm", layer_norm_cases},
      {"multiply", multiply_cases},
      {"pad", pad_cases},
      {"patchify", patchify_cases},
      {"pointwise", pointwise_cases},
      {"pooling", pooling_cases},
      {"prelu", prelu_cases},
      {"resample", resample_cases},
      {"rms_norm", rms_norm_cases},
      {"rotary", rotary_cases},
      {"split", split_cases},
      {"transposed_convolution", transposed_convolution_cases},
      {"unpatchify", unpatchify_cases},
      {"window_attention", window_attention_cases},
  };
  return all;
}

const RegisteredOperation& find_operation(const std::string& name) {
  const auto& all = all_operations();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
  if (found == all.end()) fail(concat("no operation is called ", name));
  return *found;
}

void add_instance(ProofCase& one, const std::vector<Shape>& inputs, Tape::Function run) {
  one.instances.push_back({inputs, [run = std::move(run)](Tape& tape, const std::vector<Variable>& x) {
                             return std::vector<Variable>{run(tape, x)};
                           }});
}

ProofCase make_case(std::string name, const std::vector<std::vector<Shape>>& inputs, Tape::Function run) {
  ProofCase result{std::move(name), {}};
  for (const std::vector<Shape>& shapes : inputs) add_instance(result, shapes, run);
  return result;
}

}  // namespace jigsaw::inline autograd
