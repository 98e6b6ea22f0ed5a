#include "kernels/reference/ensemble.h"

#include <algorithm>
#include <vector>

#include "array/raw_memory.h"
#include "kernels/front/ensemble_kernels.h"

namespace jigsaw::inline kernels::reference {

namespace {

/// Global number of a box's point among all points of the field. @param point  its number in the box.
std::int64_t global_point(const MemberBox& of, std::int64_t point) {
  std::int64_t number = 0, stride = 1;
  for (int dim = of.whole.rank() - 2; dim >= 1; --dim) {
    number += (of.box.begin[dim] + point % of.box.extent[dim]) * stride;
    point /= of.box.extent[dim];
    stride *= of.whole[dim];
  }
  return number;
}

}  // namespace

void write_member_points(const Array& fields, const MemberBox& of, const MemberNoise& noise,
                         std::int64_t begin, std::int64_t end, Array& inputs) {
  const int last = of.whole.rank() - 1;
  const std::int64_t points = of.box.extent.count(1, last), channels = of.box.extent[last],
                     first_noise = of.whole[last] - noise.channels(), data = of.channels_below(first_noise),
                     all_points = of.whole.count(1, last);
  const auto behind = static_cast<std::size_t>(noise.local + noise.global);
  std::vector<double> of_field(behind);  // of a member, those that are the same at all points
  std::int64_t known = -1;               // whose
  visit(inputs.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = of.box.begin[0] + i / points, point = i % points;
      const std::int64_t sample = row / of.members - of.first_sample(), member = row % of.members;
      T* const to = inputs.data<T>() + i * channels;
      for (std::int64_t c = 0; c < data; ++c) {
        to[c] = fields.defined() ? fields.data<T>()[(sample * points + point) * data + c] : T(0.0F);
      }
      if (noise.positions.empty()) {
        std::fill(to + data, to + channels, T(0.0F));
        continue;
      }
      RandomPosition position = noise.positions[static_cast<std::size_t>(sample)];
      position.sample += static_cast<std::uint64_t>(member);
      const auto drawn = [&](std::int64_t element) {
        return noise.stream.normal(position, static_cast<std::uint64_t>(element));
      };
      for (std::int64_t g = noise.local; row != known && g < std::ssize(of_field); ++g)
        of_field[static_cast<std::size_t>(g)] = drawn(all_points * noise.local + g - noise.local);
      known = row;
      const std::int64_t first = global_point(of, point) * noise.local;
      for (std::int64_t c = data; c < channels; ++c) {
        const std::int64_t number = of.box.begin[last] + c - first_noise;
        to[c] = static_cast<T>(number < noise.local ? drawn(first + number)
                                                    : of_field[static_cast<std::size_t>(number)]);
      }
    }
  });
}

namespace {

class Ensemble : public EnsembleKernels {
 public:
  void member_inputs(Context&, const Array& fields, const MemberBox& of, const MemberNoise& noise,
                     Array& inputs) const override {
    write_member_points(fields, of, noise, 0, of.box.extent.count(0, of.box.extent.rank() - 1), inputs);
  }
};

}  // namespace

template <>
const EnsembleKernels& kernels() {
  static const Ensemble instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::reference
