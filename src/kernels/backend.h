#pragma once
#include <initializer_list>
#include <string_view>

#include "array/array.h"

namespace jigsaw {

// A kernel family is an interface (contraction_kernels.h, …) whose functions fill results that the front has
// checked and allocated. Each backend has one instance of it. The functions of the interface itself throw
// missing_kernel(), so that a backend may lack some.
namespace reference {
template <typename Kernels>
const Kernels& kernels();
}
namespace cpu {
template <typename Kernels>
const Kernels& kernels();
}
namespace cuda {
template <typename Kernels>
const Kernels& kernels();
}

/// The implementation that the context asks for; null on meta, where there is nothing to compute. Float64 has
/// no fast CPU kernels: it is there for proofs.
template <typename Kernels>
const Kernels* kernels_of(const Context& context, DType dtype) {
  switch (context.backend()) {
    case Backend::kReference:
      return &reference::kernels<Kernels>();
    case Backend::kCpu:
      return dtype == DType::kFloat64 ? &reference::kernels<Kernels>() : &cpu::kernels<Kernels>();
    case Backend::kCuda:
      return &cuda::kernels<Kernels>();
    case Backend::kMeta:
      return nullptr;
  }
  fail("unknown backend");
}

/// Throws Error: this build has no CUDA version of a kernel.
[[noreturn]] void missing_kernel(std::string_view kernel);

/// Adds to the context's tally: floating-point operations, and the bytes of the arrays (those that are
/// defined).
void count_work(Context& context, double flops, std::initializer_list<const Array*> touched);

/// Throws ShapeError that names the kernel and both shapes unless the shapes are equal.
void require_same_shape(std::string_view kernel, const Shape& a, const Shape& b);
/// Throws ShapeError that names the kernel unless the element types are equal.
void require_same_type(std::string_view kernel, const Array& a, const Array& b);
/// Throws ShapeError unless `array`, called `what`, holds `count` elements.
void require_count(std::string_view kernel, std::string_view what, const Array& array, std::int64_t count);

/// The type in which sums over elements of `dtype` are formed.
constexpr DType accumulator_of(DType dtype) {
  return dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

}  // namespace jigsaw
