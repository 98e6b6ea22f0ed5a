#pragma once
#include <span>
#include <type_traits>
#include <vector>

#include "array/array.h"

namespace jigsaw::inline kernels {

/// Calls f(array) for each array in an argument of a kernel. A structure with arrays in it has an overload
/// beside it, which launch() finds.
template <typename F>
void for_each_array(Array& array, const F& f) {
  f(array);
}

/// What is kept of an argument of type Parameter for a kernel that runs later: a copy whose arrays are where
/// kernels see them and do not keep memory alive, for on a device a queued kernel does not, either.
template <typename Parameter>
class Deferred {
  using Value = std::remove_cvref_t<Parameter>;

 public:
  Deferred(HostKernelRuntime& runtime, const Value& value) : value_(value) {
    if constexpr (requires(Value & v) { for_each_array(v, [](Array&) {}); })
      for_each_array(value_, [&](Array& array) { array = array.seen_by_kernels(runtime); });
  }
  Value& value() { return value_; }

 private:
  Value value_;
};

/// Of a span the elements.
template <typename T>
class Deferred<std::span<const T>> {
 public:
  Deferred(HostKernelRuntime& runtime, std::span<const T> values) : values_(values.begin(), values.end()) {
    if constexpr (requires(T & v) { for_each_array(v, [](Array&) {}); }) {
      for (T& value : values_)
        for_each_array(value, [&](Array& array) { array = array.seen_by_kernels(runtime); });
    }
  }
  std::span<const T> value() const { return values_; }

 private:
  std::vector<T> values_;
};

}  // namespace jigsaw::inline kernels
