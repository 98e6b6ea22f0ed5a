#include "array/array.h"

#include <cstring>

#include "array/raw_memory.h"
#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline array {

Array::Array(const Context& context, const Shape& shape, DType dtype, Purpose purpose)
    : storage_(context.arena().allocate(shape.count() * size_of(dtype), purpose)),
      shape_(shape),
      dtype_(dtype),
      device_(context.device()) {}

Array Array::zeros(const Context& context, const Shape& shape, DType dtype, Purpose purpose) {
  require(context.device() == Device::kCpu || context.device() == Device::kMeta,
          "Array::zeros needs host memory");
  Array array(context, shape, dtype, purpose);
  if (array.device_ == Device::kCpu && array.count() > 0) {
    std::memset(array.raw(), 0, static_cast<std::size_t>(array.bytes()));
  }
  return array;
}

Array Array::seen_by_kernels(HostKernelRuntime& runtime) const {
  if (!defined()) return {};
  Array view = *this;
  const auto nobody = std::make_shared<std::byte>();  // an owner, but not of the memory
  view.storage_ = {nobody, runtime.seen_by_kernels(storage_.get())};
  return view;
}

Array Array::reshaped(const Shape& shape) const {
  if (shape.count() != count()) throw ShapeError(concat("cannot view ", shape_, " as ", shape));
  Array view = *this;
  view.shape_ = shape;
  return view;
}

Array Array::slice(std::int64_t first, const Shape& shape) const {
  if (first < 0 || first + shape.count() > count()) {
    throw ShapeError(concat("elements ", first, " to ", first + shape.count(), " are not all in ", shape_));
  }
  Array view = *this;
  view.shape_ = shape;
  view.offset_ += first * size_of(dtype_);
  return view;
}

}  // namespace jigsaw::inline array
