#pragma once
#include <memory>
#include <span>

#include "array/arena.h"
#include "array/context.h"
#include "array/dtype.h"
#include "array/shape.h"

namespace jigsaw {

/// A contiguous row-major array on one device. A handle: copies share the memory, which is
/// treated as immutable once others may see it. A view of consecutive elements (`slice`,
/// `reshaped`) shares it too.
class Array {
 public:
  Array() = default;
  /// Uninitialised.
  Array(const Context& context, const Shape& shape, DType dtype, Purpose purpose = Purpose::kActivations);
  /// All zero bits (memory must be on the host or meta).
  static Array zeros(const Context& context, const Shape& shape, DType dtype,
                     Purpose purpose = Purpose::kActivations);

  bool defined() const { return storage_.use_count() > 0; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  std::int64_t count() const { return shape_.count(); }
  std::int64_t bytes() const { return count() * size_of(dtype_); }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  /// No one else shares the memory: it may be written again.
  bool unique() const { return storage_.use_count() == 1; }
  /// A number that names the memory while it lives.
  const void* identity() const { return raw(); }

  std::byte* raw() const { return storage_.get() + offset_; }
  template <typename T>
  T* data() const {
    return reinterpret_cast<T*>(raw());
  }
  template <typename T>
  std::span<T> span() const {
    return {data<T>(), static_cast<std::size_t>(count())};
  }

  /// The same elements under another shape of equal count.
  Array reshaped(const Shape& shape) const;
  /// `shape.count()` elements from element `first` on, as a view.
  Array slice(std::int64_t first, const Shape& shape) const;

 private:
  std::shared_ptr<std::byte> storage_;
  std::int64_t offset_ = 0;
  Shape shape_;
  DType dtype_ = DType::kFloat32;
  Device device_ = Device::kCpu;
};

}  // namespace jigsaw
