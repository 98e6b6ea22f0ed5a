#pragma once
#include <dnnl.hpp>

#include "array/array.h"
#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline kernels::cpu {

// What our uses of oneDNN share. Versions 2 and 3 differ in how primitives are described.

inline dnnl::memory::data_type onednn_type(DType dtype) {
  return dtype == DType::kBfloat16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

inline dnnl::memory::dims extents_of(const dnnl::memory::desc& description) {
#if DNNL_VERSION_MAJOR >= 3
  return description.get_dims();
#else
  return description.dims();
#endif
}

/// The same extents in the layout that oneDNN likes best.
inline dnnl::memory::desc any_layout(const dnnl::memory::desc& plain) {
#if DNNL_VERSION_MAJOR >= 3
  return {extents_of(plain), plain.get_data_type(), dnnl::memory::format_tag::any};
#else
  return {extents_of(plain), plain.data_type(), dnnl::memory::format_tag::any};
#endif
}

/// An array of the arena that holds what `description` describes.
inline Array workspace_of(Context& context, const dnnl::memory::desc& description) {
  const auto bytes = static_cast<std::int64_t>(description.get_size());
  return Array(context, {(bytes + 3) / 4}, DType::kFloat32, Purpose::kWorkspace);
}

/// oneDNN reads through pointers that are not const.
inline void* address(const std::byte* data) {
  return const_cast<std::byte*>(data);
}

/// oneDNN speaks of its own errors; ours say what was computed.
[[noreturn]] inline void rethrow(const dnnl::error& error, const char* what) {
  fail(concat("oneDNN could not run ", what, ": ", error.what()));
}

/// Copies `from` into another layout or type.
inline void reorder(const dnnl::engine& engine, dnnl::stream& stream, const dnnl::memory::desc& from,
                    const std::byte* source, const dnnl::memory::desc& to, std::byte* target) {
  dnnl::memory before(from, engine, address(source)), after(to, engine, target);
  dnnl::reorder(before, after).execute(stream, before, after);
  stream.wait();
}

}  // namespace jigsaw::inline kernels::cpu
