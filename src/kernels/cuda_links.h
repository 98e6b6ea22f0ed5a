#pragma once
#include <cstdint>

namespace jigsaw::inline kernels {

/// How a GPU reaches the memory of another of its machine.
enum class PeerLink : std::uint8_t {
  kHost,   ///< not by itself: through the host's memory
  kPcie,   ///< by a link that carries no atomic operations
  kNvlink  ///< by one that carries them, as NVLink does
};
/// As the driver tells of two GPUs that this process sees. Throws Error when it does not answer, and
/// ConfigError in builds without CUDA.
PeerLink peer_link(int device, int peer);

/// Of the current device's memory, what nobody holds; 0 in builds without CUDA.
std::int64_t free_device_bytes();

/// The version of cuBLASLt here, 130002 for 13.0.2; 0 in builds without CUDA.
int cublas_version();

}  // namespace jigsaw::inline kernels
