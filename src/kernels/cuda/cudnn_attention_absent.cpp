#include "base/error.h"
#include "kernels/cuda/cudnn_attention.h"

namespace jigsaw::inline kernels::cuda {

const CudnnAttentionPlan* cudnn_attention_plan(Context&, const CudnnAttentionProblem&, std::string&) {
  return nullptr;
}

std::int64_t cudnn_attention_workspace(const CudnnAttentionPlan&) {
  fail("the program is built without attention by cuDNN");
}

void cudnn_attention_run(Context&, const CudnnAttentionPlan&, const CudnnAttentionOperands&) {
  fail("the program is built without attention by cuDNN");
}

bool cudnn_attention_built() {
  return false;
}

}  // namespace jigsaw::inline kernels::cuda
