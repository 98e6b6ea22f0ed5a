#pragma once
#include <cstdint>

namespace jigsaw::inline layers {

// Bounds of the sizes that configurations may name. They are far beyond what any machine holds, and small
// enough that the sizes of parameters and activations, which are products of a few of them, can be counted.

inline constexpr double kMostChannels = 1 << 20;
/// Along an axis: of a patch, a kernel, a window.
inline constexpr double kMostPoints = 1 << 20;
/// Of a parameter, and of what a layer makes of a sample; times any of the others it can still be counted.
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 42;
/// Hidden size of an MLP over its width.
inline constexpr double kLargestRatio = 1024;
/// Layers one after the other.
inline constexpr double kMostBlocks = 10000;

}  // namespace jigsaw::inline layers
