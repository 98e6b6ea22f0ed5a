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

namespace jigsaw::inline samples {

/// Writes channels of a batch, several together: channels stand side by side, so that one that was written
/// alone would bring every line of the batch into the cache for itself. Some points of neighbouring channels
/// are computed one channel after the other into a tile that stays in the cache, and written from there by
/// rows.
class ChannelWriter {
 public:
  /// Notes that value(i) is to be written for each point i of one channel of one sample. Until flush() the
  /// array and all that `value` refers to must stay.
  template <typename Value>
  void add(Array& array, const Box& piece, std::int64_t sample, int channel, Value value) {
    const int last = piece.begin.rank() - 1;
    const std::int64_t points = piece.extent.count(1, last), channels = piece.extent[last];
    const std::int64_t first = (sample - piece.begin[0]) * points * channels;
    const auto note = [&](auto* data) {
      using T = std::remove_pointer_t<decltype(data)>;
      jobs<T>().push_back({data + first, points, channels, channel - piece.begin[last],
                           [value = std::move(value)](std::int64_t begin, std::span<T> to) {
                             for (std::size_t i = 0; i < to.size(); ++i)
                               to[i] = static_cast<T>(value(static_cast<std::size_t>(begin) + i));
                           }});
    };
    if (array.dtype() == DType::kFloat64) {
      note(HostView<double>(array).data());
    } else {
      note(HostView<float>(array).data());
    }
  }

  /// Writes all that was noted.
  void flush() {
    flush(floats_);
    flush(doubles_);
    clear();
  }
  /// Forgets it.
  void clear() {
    floats_.clear();
    doubles_.clear();
  }
  std::size_t size() const { return floats_.size() + doubles_.size(); }

 private:
  /// A tile: what one line of the cache holds of channels in float, and points enough to fill few pages.
  static constexpr std::int64_t kChannels = 16, kPoints = 256;

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

  template <typename T>
  static void flush(std::vector<Job<T>>& jobs) {
    std::sort(jobs.begin(), jobs.end(), [](const Job<T>& a, const Job<T>& b) {
      return a.sample == b.sample ? a.channel < b.channel : std::less<T*>()(a.sample, b.sample);
    });
    std::int64_t points = 0;
    for (const Job<T>& job : jobs) points = std::max(points, job.points);
    // Of all samples the same points, which may have been computed from the same planes.
    for (std::int64_t begin = 0; begin < points; begin += kPoints) {
      for (auto first = jobs.begin(); first != jobs.end();) {
        const auto end = end_of_tile(first, jobs.end());
        write_tile(std::span<const Job<T>>(first, end), begin);
        first = end;
      }
    }
  }

  /// Behind the jobs from `first` on that are neighbours.
  template <typename Iterator>
  static Iterator end_of_tile(Iterator first, Iterator last) {
    Iterator end = first + 1;
    while (end != last && end - first < kChannels && end->sample == first->sample &&
           end->channel == first->channel + (end - first))
      ++end;
    return end;
  }

  template <typename T>
  static void write_tile(std::span<const Job<T>> jobs, std::int64_t begin) {
    const Job<T>& first = jobs.front();
    const std::int64_t count = std::min(kPoints, first.points - begin);
    if (count <= 0) return;
    T tile[kChannels][kPoints];
    for (std::size_t j = 0; j < jobs.size(); ++j)
      jobs[j].fill(begin, std::span<T>(tile[j], static_cast<std::size_t>(count)));
    T* const to = first.sample + begin * first.channels + first.channel;
    if (jobs.size() == kChannels) {
      for (std::int64_t i = 0; i < count; ++i) {
        for (std::int64_t j = 0; j < kChannels; ++j) to[i * first.channels + j] = tile[j][i];
      }
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        for (std::size_t j = 0; j < jobs.size(); ++j)
          to[i * first.channels + static_cast<std::int64_t>(j)] = tile[j][i];
      }
    }
  }

  std::vector<Job<float>> floats_;
  std::vector<Job<double>> doubles_;
};

}  // namespace jigsaw::inline samples
