#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "array/array.h"
#include "array/box.h"
#include "array/dtype.h"
#include "array/host_view.h"
#include "samples/planes.h"

namespace jigsaw::inline samples {

/// Writes channels of a batch, several together: channels stand side by side, so that one that was written
/// alone would bring every line of the batch into the cache for itself. Some points of neighbouring channels
/// are computed one channel after the other into a tile that stays in the cache, and written from there by
/// rows. Where these are all channels of a large array, its lines go past the cache, which they would first
/// be read into.
class ChannelWriter {
 public:
  /// Notes that value(i, x…) is to be written for each point i of one channel of one sample, x being the
  /// values of planes there. Until flush() the array, the planes and all that `value` refers to must stay.
  template <typename Value, typename... Planes>
  void add(Array& array, const Box& piece, std::int64_t sample, int channel, Value value,
           const Planes&... planes) {
    const int last = piece.begin.rank() - 1;
    const std::int64_t points = piece.extent.count(1, last), channels = piece.extent[last];
    const std::int64_t first = (sample - piece.begin[0]) * points * channels;
    const auto note = [&](auto* data) {
      using T = std::remove_pointer_t<decltype(data)>;
      jobs<T>().push_back(
          {data + first, points, channels, channel - piece.begin[last],
           [value = std::move(value), ... views = PlaneView(planes)](std::int64_t begin, std::span<T> to) {
             with_values(
                 begin, [&](const auto*... x) { compute(begin, to, value, x...); }, views...);
           }});
    };
    if (array.dtype() == DType::kFloat64) {
      note(HostView<double>(array).data());
    } else {
      note(HostView<float>(array).data());
    }
  }

  /// Writes all that was noted, a window of points of all channels after the other.
  /// @param window  points. @param enter  called with the end of each before it is written.
  void flush(std::int64_t window, const std::function<void(std::int64_t end)>& enter);
  /// Forgets it.
  void clear() {
    floats_.clear();
    doubles_.clear();
  }
  std::size_t size() const { return floats_.size() + doubles_.size(); }

 private:
  /// A tile: what one line of the cache holds of channels in float, and points that keep it in the cache's
  /// first level, with the rows that are written.
  static constexpr std::int64_t kChannels = 16, kPoints = 64;

  /// One channel of one sample.
  template <typename T>
  struct Job {
    T* sample = nullptr;  ///< [points, channels]
    std::int64_t points = 0, channels = 0, channel = 0;
    std::function<void(std::int64_t begin, std::span<T> to)> fill;
  };

  template <typename T>
  std::vector<Job<T>>& jobs() {
    if constexpr (std::is_same_v<T, double>) {
      return doubles_;
    } else {
      return floats_;
    }
  }

  template <typename Use>
  static void with_values(std::int64_t /*begin*/, const Use& use) {
    use();
  }
  /// Calls use with a pointer to the value of each plane at a point.
  template <typename Use, typename... Rest>
  static void with_values(std::int64_t begin, const Use& use, const PlaneView& first, const Rest&... rest) {
    first.from(begin, [&](const auto* values) {
      with_values(
          begin, [&](const auto*... others) { use(values, others...); }, rest...);
    });
  }

  template <typename T, typename Value, typename... X>
  [[gnu::always_inline]] static void loop(std::int64_t begin, std::span<T> to, const Value& value,
                                          const X*... x) {
    for (std::size_t i = 0; i < to.size(); ++i)
      to[i] = static_cast<T>(value(static_cast<std::size_t>(begin) + i, static_cast<double>(x[i])...));
  }
#if defined(__x86_64__)
  /// Products and sums stay two operations, as on machines without AVX2: the same bits everywhere.
  template <typename T, typename Value, typename... X>
  [[gnu::target("avx2")]] static void wide_loop(std::int64_t begin, std::span<T> to, const Value& value,
                                                const X*... x) {
    loop(begin, to, value, x...);
  }
#endif
  static bool has_wide_vectors();
  template <typename T, typename Value, typename... X>
  static void compute(std::int64_t begin, std::span<T> to, const Value& value, const X*... x) {
#if defined(__x86_64__)
    if (has_wide_vectors()) return wide_loop(begin, to, value, x...);
#endif
    loop(begin, to, value, x...);
  }

  template <typename T>
  void write(std::span<const Job<T>> neighbours, std::int64_t begin, std::int64_t end);

  std::vector<Job<float>> floats_;
  std::vector<Job<double>> doubles_;
  std::vector<float> rows_;  ///< of all channels of an array, before they go past the cache
};

}  // namespace jigsaw::inline samples
