#pragma once
#include "array/array.h"
#include "parallel/mesh.h"

namespace jigsaw::inline parallel {

/// One global tensor, of which this rank holds `piece`, cut as `layout` says.
struct ShardedTensor {
  Array piece;
  Layout layout;

  bool defined() const { return piece.defined(); }
  DType dtype() const { return piece.dtype(); }
};

/// What one rank computes with: its kernels' context and its place in the mesh.
struct Rank {
  Context& context;
  Mesh& mesh;

  Box box(const Layout& layout) const { return layout.box(mesh.shape(), mesh.coordinates()); }
};

}  // namespace jigsaw::inline parallel
