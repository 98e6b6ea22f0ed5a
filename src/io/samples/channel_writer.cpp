#include "samples/channel_writer.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace jigsaw::inline samples {

namespace {

/// From so many bytes of a sample on nothing of it is left in the cache when it is used.
constexpr std::int64_t kLargeSample = std::int64_t{8} << 20;

/// to[i · stride + j] = from[j · width + i] for i < count, j < channels.
template <typename T>
[[gnu::always_inline]] inline void write_rows(const T* from, std::int64_t width, std::int64_t count,
                                              std::int64_t channels, T* to, std::int64_t stride) {
  std::int64_t done = 0;
  if constexpr (std::is_same_v<T, float>) {
    // Squares of 8 x 8, in three rounds of exchanges between pairs of vectors.
    using Vector = float __attribute__((vector_size(32), aligned(alignof(float)), may_alias));
    constexpr std::int64_t kSide = 8;
    const std::int64_t whole = count / kSide * kSide;
    for (; done + kSide <= channels; done += kSide) {
      for (std::int64_t i = 0; i < whole; i += kSide) {
        Vector a[kSide], b[kSide];
        for (std::int64_t j = 0; j < kSide; ++j)
          a[j] = *reinterpret_cast<const Vector*>(from + (done + j) * width + i);
        for (std::int64_t j = 0; j < kSide; j += 2) {
          b[j] = __builtin_shufflevector(a[j], a[j + 1], 0, 8, 1, 9, 4, 12, 5, 13);
          b[j + 1] = __builtin_shufflevector(a[j], a[j + 1], 2, 10, 3, 11, 6, 14, 7, 15);
        }
        for (std::int64_t j = 0; j < kSide; j += 4) {
          a[j] = __builtin_shufflevector(b[j], b[j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
          a[j + 1] = __builtin_shufflevector(b[j], b[j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
          a[j + 2] = __builtin_shufflevector(b[j + 1], b[j + 3], 0, 1, 8, 9, 4, 5, 12, 13);
          a[j + 3] = __builtin_shufflevector(b[j + 1], b[j + 3], 2, 3, 10, 11, 6, 7, 14, 15);
        }
        for (std::int64_t j = 0; j < kSide / 2; ++j) {
          b[j] = __builtin_shufflevector(a[j], a[j + 4], 0, 1, 2, 3, 8, 9, 10, 11);
          b[j + 4] = __builtin_shufflevector(a[j], a[j + 4], 4, 5, 6, 7, 12, 13, 14, 15);
        }
        for (std::int64_t j = 0; j < kSide; ++j)
          *reinterpret_cast<Vector*>(to + (i + j) * stride + done) = b[j];
      }
      for (std::int64_t i = whole; i < count; ++i) {
        for (std::int64_t j = done; j < done + kSide; ++j) to[i * stride + j] = from[j * width + i];
      }
    }
  }
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t j = done; j < channels; ++j) to[i * stride + j] = from[j * width + i];
  }
}

#if defined(__x86_64__)
template <typename T>
[[gnu::target("avx2")]] void write_rows_wide(const T* from, std::int64_t width, std::int64_t count,
                                             std::int64_t channels, T* to, std::int64_t stride) {
  write_rows(from, width, count, channels, to, stride);
}

constexpr bool kPastCache = true;
constexpr std::size_t kVector = 16;

/// Copies past the cache what is whole vectors of it.
void copy_past_cache(const float* from, std::size_t count, float* to) {
  const auto misaligned = reinterpret_cast<std::uintptr_t>(to) % kVector;
  const std::size_t before = std::min(count, (kVector - misaligned) % kVector / sizeof(float));
  std::copy_n(from, before, to);
  std::size_t i = before;
  for (; i + kVector / sizeof(float) <= count; i += kVector / sizeof(float))
    _mm_stream_ps(to + i, _mm_loadu_ps(from + i));
  std::copy(from + i, from + count, to + i);
}
/// What was copied so is there before what follows.
void end_copies() {
  _mm_sfence();
}
#else
constexpr bool kPastCache = false;
void copy_past_cache(const float* from, std::size_t count, float* to) {
  std::copy_n(from, count, to);
}
void end_copies() {}
#endif

/// The runs of jobs that are neighbours.
template <typename Jobs>
auto neighbours(const Jobs& jobs) {
  using Job = typename Jobs::value_type;
  std::vector<std::span<const Job>> runs;
  for (std::size_t first = 0, end = 0; first < jobs.size(); first = end) {
    for (end = first + 1; end < jobs.size() && jobs[end].sample == jobs[first].sample &&
                          jobs[end].channel == jobs[end - 1].channel + 1;)
      ++end;
    runs.push_back(std::span(jobs).subspan(first, end - first));
  }
  return runs;
}

}  // namespace

bool ChannelWriter::has_wide_vectors() {
#if defined(__x86_64__)
  static const bool wide = __builtin_cpu_supports("avx2") > 0;
  return wide;
#else
  return false;
#endif
}

void ChannelWriter::flush(std::int64_t window, const std::function<void(std::int64_t end)>& enter) {
  std::int64_t points = 0;
  const auto sort = [&](auto& jobs) {
    std::sort(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) {
      return a.sample == b.sample ? a.channel < b.channel : std::less<>()(a.sample, b.sample);
    });
    for (const auto& job : jobs) points = std::max(points, job.points);
    return neighbours(jobs);
  };
  const auto floats = sort(floats_);
  const auto doubles = sort(doubles_);
  // Of all samples the same points, which may have been computed from the same planes.
  for (std::int64_t begin = 0; begin < points; begin += window) {
    const std::int64_t end = std::min(points, begin + window);
    enter(end);
    for (const auto& run : floats) write(run, begin, end);
    for (const auto& run : doubles) write(run, begin, end);
  }
  end_copies();
  clear();
}

/// The points from `begin` to `end`, as far as there are any.
template <typename T>
void ChannelWriter::write(std::span<const Job<T>> jobs, std::int64_t begin, std::int64_t end) {
  const Job<T>& first = jobs.front();
  const std::int64_t channels = first.channels, here = std::ssize(jobs);
  const bool past_cache = kPastCache && std::is_same_v<T, float> && here == channels &&
                          first.points * channels * std::int64_t{sizeof(T)} >= kLargeSample;
  if (past_cache) rows_.resize(static_cast<std::size_t>(kPoints * channels));
  end = std::min(end, first.points);
  for (; begin < end; begin += kPoints) {
    const std::int64_t count = std::min(kPoints, end - begin);
    T* const place = first.sample + begin * channels + first.channel;
    T* to = place;
    if constexpr (std::is_same_v<T, float>) to = past_cache ? rows_.data() : place;
    for (std::int64_t c = 0; c < here; c += kChannels) {
      alignas(64) T tile[kChannels * kPoints];
      const std::int64_t width = std::min(kChannels, here - c);
      for (std::int64_t j = 0; j < width; ++j)
        jobs[static_cast<std::size_t>(c + j)].fill(
            begin, std::span<T>(tile + j * kPoints, static_cast<std::size_t>(count)));
#if defined(__x86_64__)
      if (has_wide_vectors()) {
        write_rows_wide(tile, kPoints, count, width, to + c, channels);
        continue;
      }
#endif
      write_rows(tile, kPoints, count, width, to + c, channels);
    }
    if constexpr (std::is_same_v<T, float>) {
      if (past_cache) copy_past_cache(rows_.data(), static_cast<std::size_t>(count * channels), place);
    }
  }
}

}  // namespace jigsaw::inline samples
