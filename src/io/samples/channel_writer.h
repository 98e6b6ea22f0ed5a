#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "samples/piece.h"

namespace jigsaw::inline samples {

/// Writes channels of a batch, several together: channels stand side by side, so that one that was written
/// alone would bring every line of the batch into the cache for itself.
class ChannelWriter {
 public:
  /// Notes that value(i) is to be written for each point i of one channel of one sample. Until flush() the
  /// array and all that `value` refers to must stay.
  template <typename Value>
  void add(Array& array, const Box& piece, std::int64_t sample, int channel, Value value) {
    const int last = piece.begin.rank() - 1;
    const std::int64_t points = piece.extent.count(1, last), channels = piece.extent[last];
    const std::int64_t first = (sample - piece.begin[0]) * points * channels + (channel - piece.begin[last]);
    points_ = std::max(points_, points);
    if (array.dtype() == DType::kFloat64) {
      add_job(HostView<double>(array).data() + first, points, channels, std::move(value));
    } else {
      add_job(HostView<float>(array).data() + first, points, channels, std::move(value));
    }
  }

  /// Writes all that was noted.
  void flush() {
    for (std::int64_t begin = 0; begin < points_; begin += kPoints) {
      for (const Job& job : jobs_) job(begin, begin + kPoints);
    }
    clear();
    points_ = 0;
  }
  /// Forgets it.
  void clear() { jobs_.clear(); }
  std::size_t size() const { return jobs_.size(); }

 private:
  /// Points that are written of one channel after the other: some channels of them stay in the cache.
  static constexpr std::int64_t kPoints = 256;
  using Job = std::function<void(std::int64_t begin, std::int64_t end)>;

  template <typename T, typename Value>
  void add_job(T* to, std::int64_t points, std::int64_t channels, Value value) {
    jobs_.emplace_back([=](std::int64_t begin, std::int64_t end) {
      end = std::min(end, points);
      for (std::int64_t i = begin; i < end; ++i)
        to[i * channels] = static_cast<T>(value(static_cast<std::size_t>(i)));
    });
  }

  std::vector<Job> jobs_;
  std::int64_t points_ = 0;
};

}  // namespace jigsaw::inline samples
