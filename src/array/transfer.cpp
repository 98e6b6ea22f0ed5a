#include "array/transfer.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw {

namespace {

std::span<std::byte> bytes_of(const Array& array) {
  return {array.raw(), static_cast<std::size_t>(array.bytes())};
}

}  // namespace

Array upload(Context& context, const Array& host, Purpose purpose) {
  if (!host.defined() || host.device() == context.device()) return host;
  require(host.device() == Device::kCpu, "what is uploaded stands on the host");
  Array array(context, host.shape(), host.dtype(), purpose);
  if (DeviceRuntime* const runtime = context.runtime(); runtime != nullptr && host.count() > 0) {
    runtime->upload(context.stream(), bytes_of(host), array.raw());
  }
  return array;
}

Array download(Context& context, const Array& array, Purpose purpose) {
  if (!array.defined() || context.runtime() == nullptr || array.device() == Device::kCpu) return array;
  Array host(context.host(), array.shape(), array.dtype(), purpose);
  if (array.count() > 0) context.runtime()->download(context.stream(), array.raw(), bytes_of(host));
  return host;
}

std::vector<double> download_values(Context& context, const Array& array) {
  std::vector<double> values(static_cast<std::size_t>(array.count()), 0.0);
  if (array.device() == Device::kMeta) return values;
  const Array host = download(context, array);
  visit(array.dtype(), [&](auto zero) {
    using T = decltype(zero);
    std::ranges::transform(host.span<T>(), values.begin(), [](T x) { return static_cast<double>(x); });
  });
  return values;
}

void fill_from_host(Context& context, const Array& target, const std::function<void(const Array&)>& fill) {
  if (target.device() == Device::kMeta || target.count() == 0) return;
  if (target.device() == Device::kCpu) return fill(target);
  const Array host(context.host(), target.shape(), target.dtype(), Purpose::kWorkspace);
  fill(host);
  context.runtime()->upload(context.stream(), bytes_of(host), target.raw());
}

void write_values(Context& context, const Array& target, std::span<const double> values) {
  if (std::ssize(values) != target.count()) {
    throw ShapeError(concat(values.size(), " numbers do not fill the shape ", target.shape()));
  }
  fill_from_host(context, target, [&](const Array& host) {
    visit(host.dtype(), [&](auto zero) {
      using T = decltype(zero);
      std::ranges::transform(values, host.span<T>().begin(), [](double x) { return static_cast<T>(x); });
    });
  });
}

Array constant(Context& context, const Shape& shape, DType dtype, std::span<const double> values,
               Purpose purpose) {
  Array array(context, shape, dtype, purpose);
  write_values(context, array, values);
  return array;
}

void copy_elements(Context& context, const Array& source, std::int64_t from, const Array& target,
                   std::int64_t to, std::int64_t count) {
  require(source.dtype() == target.dtype(), "elements are copied between arrays of one type");
  require(
      from >= 0 && to >= 0 && count >= 0 && from + count <= source.count() && to + count <= target.count(),
      "the elements that are copied lie in both arrays");
  if (target.device() == Device::kMeta || count == 0) return;
  const std::int64_t size = size_of(source.dtype());
  const std::byte* const begin = source.raw() + from * size;
  const auto bytes = static_cast<std::size_t>(count * size);
  if (DeviceRuntime* const runtime = context.runtime()) {
    runtime->copy(context.stream(), begin, target.raw() + to * size, bytes);
  } else {
    std::memcpy(target.raw() + to * size, begin, bytes);
  }
}

}  // namespace jigsaw
