#include "base/text.h"
#include "kernels/cuda/cudnn_convolution.h"

namespace jigsaw::inline kernels::cuda {

std::string CudnnProblem::text() const {
  constexpr const char* kNames[] = {"the convolution", "the data gradient of the convolution",
                                    "the weight gradient of the convolution"};
  return concat(kNames[static_cast<int>(pass)], bias ? " with bias" : "", " of ", name(type), " ", x, " to ",
                y, " by ", convolution.window.extent, ", stride ", convolution.window.stride, ", dilation ",
                convolution.window.dilation, ", groups ", convolution.groups, ", padding ", convolution.low,
                " and ", convolution.high, rounded ? ", factors rounded" : "");
}

}  // namespace jigsaw::inline kernels::cuda
