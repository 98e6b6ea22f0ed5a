#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "array/array.h"

namespace jigsaw::inline array {

// How numbers cross between the host and the memory of a context. On a host context nothing is copied that
// need not be; on meta there are no numbers.

/// The same array where kernels of the context can read it: the array itself if it stands there.
/// @param host  an array on the host (on meta: of any context).
Array upload(const Context& context, const Array& host, Purpose purpose = Purpose::kActivations);
/// The same array on the host, once the work that fills it is done: the array itself if it stands there.
Array download(const Context& context, const Array& array, Purpose purpose = Purpose::kWorkspace);
/// The same, into arrays that are there, of equal count and type.
void upload_into(const Context& context, const Array& host, Array target);
void download_into(const Context& context, const Array& array, Array host);
/// Fills `host`, an array of the runtime's page_locked(), when its turn in the context's stream comes. For a
/// context on a device.
void start_download_into(const Context& context, const Array& array, Array host);
/// All elements as float64; zeros on meta.
std::vector<double> download_values(const Context& context, const Array& array);

/// Lets `fill` write the elements of `target`, which stands anywhere: it is given a host array of the same
/// shape and type, `target` itself on a host context, and not called on meta.
void fill_from_host(const Context& context, Array target, const std::function<void(Array&)>& fill);

/// Every element of `target`, rounded to its type.
void write_values(const Context& context, Array target, std::span<const double> values);
/// An array of given numbers, rounded to the type.
Array constant(const Context& context, const Shape& shape, DType dtype, std::span<const double> values,
               Purpose purpose = Purpose::kWorkspace);

/// The same for kernels of the context's stream to read alone: on a device the numbers are uploaded once and
/// then found by their value, as long as the context lives, so that the host need not wait for the upload.
/// @param values  each stands shape.count() / values.size() times in a row.
Array kept_constant(Context& context, const Shape& shape, DType dtype, std::span<const double> values);

/// target[to, to + count) = source[from, from + count), elements in row-major order; equal types, both in the
/// context's memory.
void copy_elements(const Context& context, const Array& source, std::int64_t from, Array& target,
                   std::int64_t to, std::int64_t count);

}  // namespace jigsaw::inline array
