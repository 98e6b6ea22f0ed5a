#pragma once
#include <initializer_list>
#include <memory>
#include <string_view>
#include <tuple>

#include "array/array.h"
#include "kernels/deferred.h"

namespace jigsaw::inline kernels {

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

/// The implementation for contexts of a host or a CUDA device; null on meta, where there is nothing to
/// compute. Float64 has no fast CPU kernels: it is there for proofs.
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
    case Backend::kSimulated:
      break;
  }
  fail("unknown backend");
}

/// Runs a kernel of the context's backend: launch(context, dtype, &CopyKernels::permute, x, order, y). On a
/// simulated device it runs later, on what the arguments hold now.
template <typename Kernels, typename... Parameters, typename... Arguments>
void launch(Context& context, DType dtype, void (Kernels::*kernel)(Context&, Parameters...) const,
            Arguments&&... arguments) {
  if (context.backend() == Backend::kSimulated) {
    auto& runtime = static_cast<HostKernelRuntime&>(*context.runtime());
    auto kept =
        std::make_shared<std::tuple<Deferred<Parameters>...>>(Deferred<Parameters>(runtime, arguments)...);
    runtime.launch(context.stream(), [kept, dtype, kernel](Context& host) {
      std::apply([&](auto&... each) { (kernels_of<Kernels>(host, dtype)->*kernel)(host, each.value()...); },
                 *kept);
    });
  } else if (const Kernels* const kernels = kernels_of<Kernels>(context, dtype)) {
    (kernels->*kernel)(context, std::forward<Arguments>(arguments)...);
  }
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

}  // namespace jigsaw::inline kernels
