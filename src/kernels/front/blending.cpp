#include "kernels/blending.h"

#include "base/error.h"
#include "base/text.h"
#include "kernels/front/blending_kernels.h"

namespace jigsaw::inline kernels {

namespace {

bool lies_in(const Box& box, const Shape& shape) {
  bool inside = box.extent.rank() == shape.rank();
  for (int dim = 0; inside && dim < shape.rank(); ++dim)
    inside = box.begin[dim] >= 0 && box.extent[dim] >= 0 && box.end(dim) <= shape[dim];
  return inside;
}

}  // namespace

void add_weighted(Context& context, const Array& values, const Array& weights, const Box& of, Array& target,
                  const Box& to, unsigned mirrored) {
  Shape part = of.extent;
  if (values.rank() > 0) part.append(values.shape().back());
  const bool fits = values.rank() > 1 && values.shape() == part && to.extent == part &&
                    lies_in(of, weights.shape()) && lies_in(to, target.shape());
  if (!fits) {
    throw ShapeError(concat("add_weighted: values ", values.shape(), " with the weights ", of, " of ",
                            weights.shape(), " do not fit ", to, " of ", target.shape()));
  }
  require(weights.dtype() == DType::kFloat64 && target.dtype() == DType::kFloat64,
          "add_weighted: weights and sums are f64");
  count_work(context, 2 * static_cast<double>(values.count()), {&values});
  if (values.count() == 0) return;
  launch(context, target.dtype(), &BlendingKernels::add_weighted, values, weights, of, target, to, mirrored);
}

// What a backend lacks.
void BlendingKernels::add_weighted(Context&, const Array&, const Array&, const Box&, Array&, const Box&,
                                   unsigned) const {
  missing_kernel("add_weighted");
}

}  // namespace jigsaw::inline kernels
