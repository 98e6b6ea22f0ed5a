#include "array/raw_memory.h"
#include "kernels/cuda/device.cuh"
#include "kernels/front/blending_kernels.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// Adds element i of a part, times its point's weight, to its place in the sums.
struct AddWeighted {
  int dims = 0;  ///< of the points
  std::int64_t channels = 0;
  std::int64_t extent[Shape::kMaxRank] = {}, of_weight[Shape::kMaxRank] = {}, of_sum[Shape::kMaxRank] = {};
  AnyElements values;
  const double* weights = nullptr;
  double* sums = nullptr;

  __device__ void operator()(std::int64_t i) const {
    std::int64_t point = i / channels, weight = 0, sum = i % channels;
    for (int dim = dims - 1; dim >= 0; --dim) {
      const std::int64_t index = point % extent[dim];
      point /= extent[dim];
      weight += index * of_weight[dim];
      sum += index * of_sum[dim];
    }
    sums[sum] += weights[weight] * values.get<double>(i);
  }
};

class Blending : public BlendingKernels {
 public:
  void add_weighted(Context& context, const Array& values, const Array& weights, const Box& of, Array& target,
                    const Box& to, unsigned mirrored) const override {
    const Shape of_weights = weights.shape().strides(), of_target = target.shape().strides();
    AddWeighted add;
    add.dims = of.extent.rank();
    add.channels = values.shape().back();
    add.values = any_elements(values);
    add.weights = weights.data<double>();
    add.sums = target.data<double>() + to.begin[add.dims];
    for (int dim = 0; dim < add.dims; ++dim) {
      add.extent[dim] = of.extent[dim];
      const bool backwards = (mirrored >> dim & 1) != 0;
      const std::int64_t first = backwards ? of.extent[dim] - 1 : 0;
      add.of_weight[dim] = backwards ? -of_weights[dim] : of_weights[dim];
      add.of_sum[dim] = backwards ? -of_target[dim] : of_target[dim];
      add.weights += (of.begin[dim] + first) * of_weights[dim];
      add.sums += (to.begin[dim] + first) * of_target[dim];
    }
    for_elements(context, values.count(), add);
  }
};

}  // namespace

template <>
const BlendingKernels& kernels() {
  static const Blending instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cuda
