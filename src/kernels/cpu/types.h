#pragma once
#include "array/dtype.h"

namespace jigsaw::inline kernels::cpu {

/// visit() over the types that have fast kernels; float64 runs on the reference backend.
template <typename F>
decltype(auto) visit_fast(DType dtype, F&& f) {
  require(dtype != DType::kFloat64, "float64 has no fast CPU kernels");
  return dtype == DType::kFloat32 ? f(float{}) : f(BFloat16{});
}

}  // namespace jigsaw::inline kernels::cpu
