#pragma once
#include <vector>

#include "kernels/attention.h"
#include "kernels/backend.h"

namespace jigsaw::inline kernels {

/// Cosine and sine of the angles along one axis, [points, pairs], in the order of points.
struct RotationTable {
  std::vector<double> cosine, sine;
  std::int64_t pairs = 0;
};

/// The attention family as a backend implements it. See attention.h.
class AttentionKernels {
 public:
  virtual ~AttentionKernels() = default;
  virtual void forward(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v,
                       const AttentionOptions& options, AttentionResult& result) const;
  virtual void combine(Context& context, AttentionResult& into, const AttentionResult& more) const;
  virtual void row_sums(Context& context, const Array& y, const Array& dy, Array& sums) const;
  /// @param sums_are_formed  or else a backend that reads row_sums forms them.
  virtual void backward(Context& context, const HeadRows& q, const HeadRows& k, const HeadRows& v,
                        const Array& y, const Array& dy, const Array& log_sum_exp, Array row_sums,
                        bool sums_are_formed, const AttentionOptions& options, HeadRows dq, HeadRows dk,
                        HeadRows dv, Array dbias) const;
  /// @param tables  one an axis; of the inverse where it is asked for.
  virtual void rotate(Context& context, const Array& x, const Shape& space,
                      const std::vector<RotationTable>& tables, Array& y) const;
};

template <>
const AttentionKernels& reference::kernels();
template <>
const AttentionKernels& cpu::kernels();
template <>
const AttentionKernels& cuda::kernels();

}  // namespace jigsaw::inline kernels
