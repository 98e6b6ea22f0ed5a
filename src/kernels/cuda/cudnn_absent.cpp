#include "base/error.h"
#include "kernels/cuda/cudnn_convolution.h"
#include "kernels/cuda_context.h"

std::string jigsaw::cudnn_version() {
  return "";
}

namespace jigsaw::inline kernels::cuda {

const CudnnPlan* cudnn_plan(Context&, const CudnnProblem&) {
  return nullptr;
}

void cudnn_run(Context&, const CudnnPlan&, const CudnnOperands&) {
  fail("the program is built without cuDNN");
}

}  // namespace jigsaw::inline kernels::cuda
