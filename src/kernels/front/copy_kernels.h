#pragma once
#include "kernels/backend.h"
#include "kernels/copy.h"

namespace jigsaw::inline kernels {

/// The copy family as a backend implements it. See copy.h.
class CopyKernels {
 public:
  virtual ~CopyKernels() = default;
  virtual void copy_box(Context& context, const Array& source, const Box& from, Array& target,
                        const Box& to) const;
  virtual void add_box(Context& context, const Array& source, const Box& from, Array& target,
                       const Box& to) const;
  virtual void copy_boxes(Context& context, const BoxTable& table, std::span<const Array> sources,
                          Array& target, const ChannelChange& change) const;
  virtual void permute(Context& context, const Array& x, std::span<const int> order, Array& y) const;
};

template <>
const CopyKernels& reference::kernels();
template <>
const CopyKernels& cpu::kernels();
template <>
const CopyKernels& cuda::kernels();

}  // namespace jigsaw::inline kernels
