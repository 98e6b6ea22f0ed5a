#include "train/device.h"

#include "base/error.h"
#include "kernels/cuda_context.h"

namespace jigsaw::inline train {

PrecisionTypes types_of(Precision precision) {
  switch (precision) {
    case Precision::kFloat64:
      return {DType::kFloat64, DType::kFloat64};
    case Precision::kBfloat16:
      return {DType::kBfloat16, DType::kFloat32};
    case Precision::kFloat32:
      break;
  }
  return {DType::kFloat32, DType::kFloat32};
}

Context make_context(DeviceChoice device, Precision precision, int threads, int rank_on_machine) {
  if (device == DeviceChoice::kCuda) {
    const int devices = cuda_device_count();
    return make_cuda_context(devices > 0 ? rank_on_machine % devices : 0);
  }
  return Context::make_host(precision == Precision::kFloat64 ? Backend::kReference : Backend::kCpu, threads);
}

}  // namespace jigsaw::inline train
