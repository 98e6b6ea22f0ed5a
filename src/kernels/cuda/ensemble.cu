#include "array/raw_memory.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/random.cuh"
#include "kernels/front/ensemble_kernels.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// Writes element i of the inputs of one sample's members.
template <typename T>
struct WriteMember {
  int last = 0;  ///< the dim of channels
  std::int64_t points = 0, channels = 0, data = 0, all_points = 0;
  std::int64_t first_member = 0, first_noise = 0;  ///< of the noise's channels the first one here
  std::int64_t local = 0;
  std::int64_t extent[Shape::kMaxRank] = {}, begin[Shape::kMaxRank] = {}, whole[Shape::kMaxRank] = {};
  const Element<T>* fields = nullptr;  ///< of the sample; null: zeros
  Element<T>* inputs = nullptr;
  bool draws = false;
  RandomDraw draw;

  __device__ std::int64_t global_point(std::int64_t point) const {
    std::int64_t number = 0, stride = 1;
    for (int dim = last - 1; dim >= 1; --dim) {
      number += (begin[dim] + point % extent[dim]) * stride;
      point /= extent[dim];
      stride *= whole[dim];
    }
    return number;
  }
  __device__ void operator()(std::int64_t i) const {
    const std::int64_t channel = i % channels, point = i / channels % points, row = i / channels / points;
    double value = 0;
    if (channel < data) {
      if (fields != nullptr) value = load<double>(fields[point * data + channel]);
    } else if (draws) {
      const std::int64_t number = first_noise + channel - data;
      const std::int64_t element =
          number < local ? global_point(point) * local + number : all_points * local + number - local;
      value =
          draw.normal(static_cast<std::uint64_t>(first_member + row), static_cast<std::uint64_t>(element));
    }
    inputs[i] = stored<Element<T>>(value);
  }
};

template <typename T>
WriteMember<T> writer_of(const MemberBox& of, const MemberNoise& noise) {
  WriteMember<T> write;
  write.last = of.whole.rank() - 1;
  write.points = of.box.extent.count(1, write.last);
  write.channels = of.box.extent[write.last];
  const std::int64_t behind = of.whole[write.last] - noise.channels();
  write.data = of.channels_below(behind);
  write.all_points = of.whole.count(1, write.last);
  write.first_noise = of.box.begin[write.last] + write.data - behind;
  write.local = noise.local;
  for (int dim = 0; dim < of.whole.rank(); ++dim) {
    write.extent[dim] = of.box.extent[dim];
    write.begin[dim] = of.box.begin[dim];
    write.whole[dim] = of.whole[dim];
  }
  return write;
}

class Ensemble : public EnsembleKernels {
 public:
  /// Sample by sample: each has a position of its own.
  void member_inputs(Context& context, const Array& fields, const MemberBox& of, const MemberNoise& noise,
                     Array& inputs) const override {
    visit(inputs.dtype(), [&](auto zero) {
      using T = decltype(zero);
      WriteMember<T> write = writer_of<T>(of, noise);
      std::int64_t row = of.box.begin[0];
      for (std::int64_t sample = 0; sample < of.samples(); ++sample) {
        const std::int64_t end = std::min(of.box.end(0), (of.first_sample() + sample + 1) * of.members);
        write.first_member = row % of.members;
        const std::int64_t first = (row - of.box.begin[0]) * write.points * write.channels;
        write.inputs = elements<T>(inputs) + first;
        if (fields.defined()) write.fields = elements<T>(fields) + sample * write.points * write.data;
        write.draws = !noise.positions.empty();
        if (write.draws)
          place(context, noise.stream, noise.positions[static_cast<std::size_t>(sample)], write.draw);
        for_elements(context, (end - row) * write.points * write.channels, write);
        row = end;
      }
    });
  }
};

}  // namespace

template <>
const EnsembleKernels& kernels() {
  static const Ensemble instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cuda
