#pragma once
#include <cstdint>

namespace jigsaw::inline kernels {

/// The most that one operation on a GPU takes of its memory beside operands and results. Plans of cuDNN that
/// want more are not taken; attention's backward is solved in parts, and convolutions of copies in slabs,
/// that want no more.
inline constexpr std::int64_t kMostCudaWorkspaceBytes = std::int64_t{1} << 29;

}  // namespace jigsaw::inline kernels
