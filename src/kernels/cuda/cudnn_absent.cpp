#include "base/error.h"
#include "kernels/cuda/cudnn_convolution.h"
#include "kernels/cuda_context.h"

jigsaw::CudnnLibrary jigsaw::cudnn_library() {
  return {};
}

namespace jigsaw::inline kernels::cuda {

const CudnnPlan* cudnn_plan(Context&, const CudnnProblem&, std::string&) {
  return nullptr;
}

void cudnn_run(Context&, const CudnnPlan&, const CudnnOperands&) {
  fail("the program is built without cuDNN");
}

}  // namespace jigsaw::inline kernels::cuda
