#include <cublasLt.h>
#include <cuda.h>

#include "kernels/cuda/driver.h"
#include "kernels/cuda_links.h"

namespace jigsaw::inline kernels {

namespace {

bool peers_have(CUdevice_P2PAttribute attribute, int device, int peer) {
  int value = 0;
  const auto ask = cuda::driver_function<decltype(cuDeviceGetP2PAttribute)>("cuDeviceGetP2PAttribute");
  const CUresult status = ask(&value, attribute, device, peer);
  if (status != CUDA_SUCCESS)
    fail(concat("CUDA could not tell what connects GPUs ", device, " and ", peer, ": error ",
                static_cast<int>(status)));
  return value != 0;
}

}  // namespace

PeerLink peer_link(int device, int peer) {
  if (!peers_have(CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, device, peer)) return PeerLink::kHost;
  return peers_have(CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, device, peer) ? PeerLink::kNvlink
                                                                                   : PeerLink::kPcie;
}

std::int64_t free_device_bytes() {
  std::size_t free = 0, total = 0;
  cuda::check(cudaMemGetInfo(&free, &total), "ask for the device's memory");
  return static_cast<std::int64_t>(free);
}

int cublas_version() {
  return static_cast<int>(cublasLtGetVersion());
}

}  // namespace jigsaw::inline kernels
