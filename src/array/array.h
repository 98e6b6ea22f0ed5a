#pragma once
#include <memory>
#include <span>

#include "array/arena.h"
#include "array/context.h"
#include "array/dtype.h"
#include "array/shape.h"

namespace jigsaw::inline array {

/// Complete only where array/raw_memory.h was included.
struct RawMemory;

/// A contiguous row-major array on one device. A handle: copies share the memory, which is treated as
/// immutable once others may see it; a kernel writes what it is given as Array&, never a const Array&. A view
/// of consecutive elements (`slice`, `reshaped`) shares it too.
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
  const void* identity() const { return storage_.get() + offset_; }

  // The memory itself, which on a device the host cannot read: for kernels, see array/raw_memory.h. What
  // others need of elements HostView and array/transfer.h give.
  template <typename Access = RawMemory>
  std::byte* raw() {
    static_assert(sizeof(Access) > 0);  // NOLINT(bugprone-sizeof-expression)
    return storage_.get() + offset_;
  }
  template <typename Access = RawMemory>
  const std::byte* raw() const {
    static_assert(sizeof(Access) > 0);  // NOLINT(bugprone-sizeof-expression)
    return storage_.get() + offset_;
  }
  template <typename T, typename Access = RawMemory>
  T* data() {
    return reinterpret_cast<T*>(raw<Access>());
  }
  template <typename T, typename Access = RawMemory>
  const T* data() const {
    return reinterpret_cast<const T*>(raw<Access>());
  }
  template <typename T, typename Access = RawMemory>
  std::span<T> span() {
    return {data<T, Access>(), static_cast<std::size_t>(count())};
  }
  template <typename T, typename Access = RawMemory>
  std::span<const T> span() const {
    return {data<T, Access>(), static_cast<std::size_t>(count())};
  }

  /// The array as kernels of the device see it; does not keep the memory alive.
  Array seen_by_kernels(HostKernelRuntime& runtime) const;

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

}  // namespace jigsaw::inline array
