#include "kernels/reference/ensemble.h"

#include "array/parallel.h"
#include "kernels/front/ensemble_kernels.h"

namespace jigsaw::inline kernels::cpu {

namespace {

/// The reference's numbers, on several threads: what they cost is drawing them.
class Ensemble : public EnsembleKernels {
 public:
  void member_inputs(Context& context, const Array& fields, const MemberBox& of, const MemberNoise& noise,
                     Array& inputs) const override {
    const int last = of.box.extent.rank() - 1;
    const std::int64_t points = of.box.extent.count(0, last);
    for_ranges(threads_for(context, points, of.box.extent[last]), points, 1,
               [&](std::int64_t begin, std::int64_t end, int) {
                 reference::write_member_points(fields, of, noise, begin, end, inputs);
               });
  }
};

}  // namespace

template <>
const EnsembleKernels& kernels() {
  static const Ensemble instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cpu
