#include "images/window_reader.h"

#include <algorithm>
#include <cmath>

#include "samples/piece.h"

namespace jigsaw::inline images {

std::vector<double> WindowReader::field(const Field& field, std::int64_t image, const Box& box) const {
  std::vector<double> values(static_cast<std::size_t>(box.extent.count()));
  data_.files().read(field, image, box, values);
  if (!noisy_) return values;
  const std::vector<Channel>& fields = data_.channels().inputs;
  const auto number = std::find_if(fields.begin(), fields.end(),
                                   [&](const Channel& channel) { return channel.field == field; }) -
                      fields.begin();
  const Shape strides = data_.files().extents(image).strides();
  const RandomPosition position = {0, static_cast<std::uint64_t>(image), 0};
  Shape at = box.begin;
  for (double& value : values) {
    std::int64_t point = 0;
    for (int d = 0; d < at.rank(); ++d) point += at[d] * strides[d];
    const auto element = static_cast<std::uint64_t>(point * std::ssize(fields) + number);
    value += *data_.options().noise_sigma * data_.noise(Split::kValid).normal(position, element);
    for (int d = at.rank() - 1; d >= 0; --d) {
      if (++at[d] < box.end(d)) break;
      at[d] = box.begin[d];
    }
  }
  return values;
}

Array WindowReader::read(std::span<const ImageWindow> windows, const Box& input, DType dtype,
                         const Context& context) const {
  require_piece(input, std::ssize(windows), data_.grid().shape(), data_.channels().inputs.size());
  Array array(context, input.extent, dtype, Purpose::kInput);
  if (input.empty()) return array;
  for (std::int64_t b = input.begin[0]; b < input.end(0); ++b) {
    const ImageWindow& window = windows[static_cast<std::size_t>(b)];
    Box box;
    const auto mirrored = [&](int d) { return (window.mirrored >> d & 1) != 0; };
    for (int d = 0; d < window.box.begin.rank(); ++d) {
      const std::int64_t begin = mirrored(d) ? window.box.extent[d] - input.end(d + 1) : input.begin[d + 1];
      append_dim(box, window.box.begin[d] + begin, input.extent[d + 1]);
    }
    const Box inside = intersect(box, Box::whole(data_.files().extents(window.image)));
    const Box there = inside.empty() ? inside : relative_to(inside, box);
    const Shape strides = box.extent.strides(), from = inside.extent.strides();
    for (int c = 0; c < static_cast<int>(data_.channels().inputs.size()); ++c) {
      if (!covers(input, c)) continue;
      const Field& which = data_.channels().inputs[static_cast<std::size_t>(c)].field;
      const InputScale scale = data_.scale_of(window.image, static_cast<std::size_t>(c));
      const std::vector<double> values =
          inside.empty() ? std::vector<double>{} : field(which, window.image, inside);
      write_channel(array, input, b, c, [&](std::size_t i) {
        std::int64_t rest = static_cast<std::int64_t>(i), source = 0;
        for (int d = 0; d < strides.rank(); ++d) {
          const std::int64_t seen = rest / strides[d], at = (mirrored(d) ? box.extent[d] - 1 - seen : seen) -
                                                            (inside.empty() ? 0 : there.begin[d]);
          rest %= strides[d];
          if (inside.empty() || at < 0 || at >= inside.extent[d]) return 0.0;
          source += at * from[d];
        }
        const double value = values[static_cast<std::size_t>(source)];
        return std::isnan(value) ? 0.0 : scale.of(value);
      });
    }
  }
  return array;
}

}  // namespace jigsaw::inline images
