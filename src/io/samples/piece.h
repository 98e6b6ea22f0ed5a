#pragma once
#include <cstdint>
#include <type_traits>

#include "array/array.h"
#include "array/box.h"
#include "array/host_view.h"

namespace jigsaw::inline samples {

/// Whether a piece of [B, space…, C] holds a channel.
inline bool covers(const Box& piece, int channel) {
  const int last = piece.begin.rank() - 1;
  return !piece.empty() && channel >= piece.begin[last] && channel < piece.end(last);
}

/// Writes value(i) for each point i of one channel of one sample, both global numbers.
template <typename Value>
void write_channel(Array& array, const Box& piece, std::int64_t sample, int channel, const Value& value) {
  const int last = piece.begin.rank() - 1;
  const std::int64_t points = piece.extent.count(1, last), channels = piece.extent[last];
  const std::int64_t first = (sample - piece.begin[0]) * points * channels + (channel - piece.begin[last]);
  const auto write = [&](auto* data) {
    for (std::int64_t i = 0; i < points; ++i) {
      data[first + i * channels] =
          static_cast<std::remove_pointer_t<decltype(data)>>(value(static_cast<std::size_t>(i)));
    }
  };
  if (array.dtype() == DType::kFloat64) {
    write(HostView<double>(array).data());
  } else {
    write(HostView<float>(array).data());
  }
}

/// Throws ShapeError unless the piece lies in a batch [samples, space…, channels].
void require_piece(const Box& piece, std::int64_t samples, const Shape& space, std::size_t channels);

}  // namespace jigsaw::inline samples
