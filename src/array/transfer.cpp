#include "array/transfer.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <tuple>

#include "array/raw_memory.h"
#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline array {

namespace {

std::span<const std::byte> bytes_of(const Array& array) {
  return {array.raw(), static_cast<std::size_t>(array.bytes())};
}

/// The device that the array stands on; null when it stands on the host, or nowhere.
DeviceRuntime* runtime_of(const Context& context, const Array& array) {
  if (array.device() == Device::kCpu || array.device() == Device::kMeta) return nullptr;
  require(array.device() == context.device() && context.runtime() != nullptr,
          "numbers of another device than the context's cannot be moved");
  return context.runtime();
}

void require_alike(const Array& a, const Array& b) {
  require(a.dtype() == b.dtype() && a.count() == b.count(),
          "what is moved has one type and count on both sides");
}

/// What kept_constant() gave, by what it is: how often each number stands in a row, the type, the numbers'
/// bytes.
struct KeptConstants {
  std::map<std::tuple<std::int64_t, DType, std::string>, Array> known;
};

}  // namespace

void upload_into(const Context& context, const Array& host, Array target) {
  require_alike(host, target);
  if (target.device() == Device::kMeta || target.count() == 0) return;
  if (DeviceRuntime* const runtime = runtime_of(context, target)) {
    runtime->upload(context.stream(), bytes_of(host), target.raw(), context.host().threads());
  } else {
    std::memcpy(target.raw(), host.raw(), static_cast<std::size_t>(host.bytes()));
  }
}

void download_into(const Context& context, const Array& array, Array host) {
  require_alike(array, host);
  if (array.device() == Device::kMeta || array.count() == 0) return;
  if (DeviceRuntime* const runtime = runtime_of(context, array)) {
    runtime->download(context.stream(), array.raw(), {host.raw(), static_cast<std::size_t>(host.bytes())});
  } else {
    std::memcpy(host.raw(), array.raw(), static_cast<std::size_t>(host.bytes()));
  }
}

void start_download_into(const Context& context, const Array& array, Array host) {
  require_alike(array, host);
  if (array.count() == 0) return;
  DeviceRuntime* const runtime = runtime_of(context, array);
  require(runtime != nullptr, "what stands on the host needs no download");
  runtime->start_download(context.stream(), array.raw(),
                          {host.raw(), static_cast<std::size_t>(host.bytes())});
}

Array upload(const Context& context, const Array& host, Purpose purpose) {
  if (!host.defined() || host.device() == context.device()) return host;
  Array array(context, host.shape(), host.dtype(), purpose);
  upload_into(context, host, array);
  return array;
}

Array download(const Context& context, const Array& array, Purpose purpose) {
  if (!array.defined() || runtime_of(context, array) == nullptr) return array;
  Array host(context.host(), array.shape(), array.dtype(), purpose);
  download_into(context, array, host);
  return host;
}

std::vector<double> download_values(const Context& context, const Array& array) {
  std::vector<double> values(static_cast<std::size_t>(array.count()), 0.0);
  if (array.device() == Device::kMeta) return values;
  const Array host = download(context, array);
  visit(array.dtype(), [&](auto zero) {
    using T = decltype(zero);
    std::ranges::transform(host.span<T>(), values.begin(), [](T x) { return static_cast<double>(x); });
  });
  return values;
}

void fill_from_host(const Context& context, Array target, const std::function<void(Array&)>& fill) {
  if (target.device() == Device::kMeta || target.count() == 0) return;
  if (runtime_of(context, target) == nullptr) return fill(target);
  Array host(context.host(), target.shape(), target.dtype(), Purpose::kWorkspace);
  fill(host);
  upload_into(context, host, target);
}

void write_values(const Context& context, Array target, std::span<const double> values) {
  if (std::ssize(values) != target.count()) {
    throw ShapeError(concat(values.size(), " numbers do not fill the shape ", target.shape()));
  }
  fill_from_host(context, target, [&](Array& host) {
    visit(host.dtype(), [&](auto zero) {
      using T = decltype(zero);
      std::ranges::transform(values, host.span<T>().begin(), [](double x) { return static_cast<T>(x); });
    });
  });
}

Array constant(const Context& context, const Shape& shape, DType dtype, std::span<const double> values,
               Purpose purpose) {
  Array array(context, shape, dtype, purpose);
  write_values(context, array, values);
  return array;
}

Array kept_constant(Context& context, const Shape& shape, DType dtype, std::span<const double> values) {
  const std::int64_t times = values.empty() ? 0 : shape.count() / std::ssize(values);
  if (times * std::ssize(values) != shape.count()) {
    throw ShapeError(concat(values.size(), " numbers do not fill the shape ", shape, " in equal runs"));
  }
  const auto make = [&] {
    std::vector<double> all;
    all.reserve(static_cast<std::size_t>(shape.count()));
    for (const double value : values) all.insert(all.end(), static_cast<std::size_t>(times), value);
    return constant(context, shape, dtype, all);
  };
  if (context.runtime() == nullptr) return make();
  const std::span<const std::byte> bytes = std::as_bytes(values);
  std::string numbers(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  Array& kept = context.state<KeptConstants>().known[{times, dtype, std::move(numbers)}];
  if (!kept.defined()) kept = make();
  return kept.reshaped(shape);
}

void copy_elements(const Context& context, const Array& source, std::int64_t from, Array& target,
                   std::int64_t to, std::int64_t count) {
  require(source.dtype() == target.dtype(), "elements are copied between arrays of one type");
  require(
      from >= 0 && to >= 0 && count >= 0 && from + count <= source.count() && to + count <= target.count(),
      "the elements that are copied lie in both arrays");
  if (target.device() == Device::kMeta || count == 0) return;
  const std::int64_t size = size_of(source.dtype());
  const std::byte* const begin = source.raw() + from * size;
  const auto bytes = static_cast<std::size_t>(count * size);
  if (DeviceRuntime* const runtime = runtime_of(context, target)) {
    runtime->copy(context.stream(), begin, target.raw() + to * size, bytes);
  } else {
    std::memcpy(target.raw() + to * size, begin, bytes);
  }
}

}  // namespace jigsaw::inline array
