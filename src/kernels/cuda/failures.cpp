#include "kernels/cuda/failures.h"

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// Whether an error says that the device is of no more use, to any process.
bool is_lost(cudaError_t status) {
  constexpr auto kContained = static_cast<cudaError_t>(226);  // cudaErrorContained, in headers since 12.8
  if (status == kContained) return true;
  switch (status) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorDevicesUnavailable:
    case cudaErrorNoDevice:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool Failures::is_of_the_call(cudaError_t status) {
  switch (status) {
    case cudaErrorInvalidValue:
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorLaunchOutOfResources:
    case cudaErrorMemoryAllocation:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorNotSupported:
      return true;
    default:
      return status >= cudaErrorStreamCaptureUnsupported && status <= cudaErrorStreamCaptureWrongThread;
  }
}

void Failures::check(cudaError_t status) const {
  if (status == cudaSuccess) return;
  if (is_of_the_call(status)) tell(status, "in ", work_->text());
  tell(status, "in ",
       concat(progress_.text(),
              ", or beside it (JIGSAW_CUDA_SYNC=1 lets the host wait for each launch and names it)"));
}

void Failures::tell(cudaError_t status, const std::string& launch, const std::string& operation) const {
  const std::string where = concat(launch, operation, ": ", cudaGetErrorString(status));
  if (!is_lost(status)) fail(concat("CUDA failed ", where));
  fail(concat("the GPU ", described_, " failed ", where, "; nothing is saved from it",
              work_->checkpoint.empty() ? "" : ", the last whole checkpoint is ", work_->checkpoint));
}

}  // namespace jigsaw::inline kernels::cuda
