#include "kernels/backend.h"

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline kernels {

void missing_kernel(std::string_view kernel) {
  throw Error(ExitCode::kConfig,
              concat("this build has no CUDA kernel for ", kernel,
                     ": set \"device\" to \"cpu\", or build with -DJIGSAW_CUDA=ON if it was off"));
}

void count_work(Context& context, double flops, std::initializer_list<const Array*> touched) {
  context.tally().flops += flops;
  for (const Array* array : touched) {
    if (array->defined()) context.tally().bytes += static_cast<double>(array->bytes());
  }
}

void require_same_shape(std::string_view kernel, const Shape& a, const Shape& b) {
  if (!(a == b)) throw ShapeError(concat(kernel, ": the shapes ", a, " and ", b, " should be equal"));
}

void require_same_type(std::string_view kernel, const Array& a, const Array& b) {
  if (a.dtype() != b.dtype()) {
    throw ShapeError(
        concat(kernel, ": the types ", name(a.dtype()), " and ", name(b.dtype()), " should be equal"));
  }
}

void require_count(std::string_view kernel, std::string_view what, const Array& array, std::int64_t count) {
  if (array.count() != count) {
    throw ShapeError(concat(kernel, ": ", what, " ", array.shape(), " should hold ", count, " elements"));
  }
}

}  // namespace jigsaw::inline kernels
