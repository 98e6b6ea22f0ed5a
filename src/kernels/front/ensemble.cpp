#include "kernels/ensemble.h"

#include "base/error.h"
#include "kernels/front/ensemble_kernels.h"

namespace jigsaw::inline kernels {

namespace {

constexpr double kNoiseFlops = 20;  // a logarithm, a root and a cosine

}  // namespace

Array member_inputs(Context& context, const Array& fields, DType dtype, const MemberBox& of,
                    const MemberNoise& noise) {
  const int last = of.whole.rank() - 1;
  const std::int64_t data = of.channels_below(of.whole[last] - noise.channels());
  if (fields.defined()) {
    Shape wanted = of.box.extent;
    wanted[0] = of.samples();
    wanted[last] = data;
    require_same_shape("member_inputs", fields.shape(), wanted);
    require(fields.dtype() == dtype, "member_inputs: the result has the fields' type");
  }
  require(noise.positions.empty() || std::ssize(noise.positions) == of.samples(),
          "member_inputs: each sample has a position");
  Array inputs(context, of.box.extent, dtype);
  const std::int64_t drawn = of.box.extent.count(0, last) * (of.box.extent[last] - data);
  count_work(context, noise.positions.empty() ? 0 : kNoiseFlops * static_cast<double>(drawn),
             {&fields, &inputs});
  if (inputs.count() > 0) launch(context, dtype, &EnsembleKernels::member_inputs, fields, of, noise, inputs);
  return inputs;
}

// What a backend lacks.
void EnsembleKernels::member_inputs(Context&, const Array&, const MemberBox&, const MemberNoise&,
                                    Array&) const {
  missing_kernel("member_inputs");
}

}  // namespace jigsaw::inline kernels
