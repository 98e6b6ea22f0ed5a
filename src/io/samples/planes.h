#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "array/box.h"
#include "base/text.h"
#include "fields/field.h"
#include "fields/members.h"
#include "files/byte_buffer.h"
#include "files/file_variable.h"
#include "files/hyperslab_stream.h"

namespace jigsaw::inline samples {

/// A plane that is read while its values are taken up: only a window of its points is in memory, which moves
/// from the first point to the last.
class StreamedPlane {
 public:
  /// @param single  in float, which holds its values. @param memory  of the window.
  StreamedPlane(HyperslabStream values, std::int64_t points, bool single, ByteBuffer& memory)
      : values_(std::move(values)), points_(points), single_(single), memory_(&memory) {}

  /// Moves the window on to the points up to `end`, as far as there are any.
  void advance(std::int64_t end) {
    begin_ = end_;
    end_ = std::clamp(end, begin_, points_);
    if (end_ == begin_) return;
    window_ = memory_->take(static_cast<std::size_t>((end_ - begin_) * value_bytes()));
    if (single_) {
      values_.read(window<float>());
    } else {
      values_.read(window<double>());
    }
  }
  /// Calls use with a pointer to the value of a point of the window, which those behind it follow.
  template <typename Use>
  void from(std::int64_t point, const Use& use) const {
    if (single_) {
      use(static_cast<const float*>(window<float>().data()) + (point - begin_));
    } else {
      use(static_cast<const double*>(window<double>().data()) + (point - begin_));
    }
  }
  std::int64_t value_bytes() const {
    return single_ ? std::int64_t{sizeof(float)} : std::int64_t{sizeof(double)};
  }
  const HyperslabStream& values() const { return values_; }

 private:
  template <typename T>
  std::span<T> window() const {
    return {reinterpret_cast<T*>(window_.data()), window_.size() / sizeof(T)};
  }

  HyperslabStream values_;
  std::int64_t points_;
  bool single_;
  ByteBuffer* memory_;
  std::span<std::byte> window_;
  std::int64_t begin_ = 0, end_ = 0;
};

/// Planes whose windows move together. Their memory is kept.
class StreamedPlanes {
 public:
  /// Planes, and files that stand open for them, that are enough: of more the windows would be too small, or
  /// leave the cache.
  static constexpr std::size_t kEnough = 2048, kEnoughFiles = 16;

  bool enough() const { return planes_.size() >= kEnough || files_.size() >= kEnoughFiles; }
  /// Adds a plane; null where there are enough already and it is in yet another file.
  const StreamedPlane* add(HyperslabStream values, std::int64_t points, bool single) {
    if (enough() && !files_.contains(&values.file())) return nullptr;
    files_.insert(&values.file());
    if (planes_.size() == memory_.size()) memory_.emplace_back();
    return &planes_.emplace_back(std::move(values), points, single, memory_[planes_.size()]);
  }
  void advance(std::int64_t end) {
    for (StreamedPlane& plane : planes_) plane.advance(end);
  }
  void clear() {
    planes_.clear();
    files_.clear();
  }
  std::size_t size() const { return planes_.size(); }
  /// Points of a window with which those of all planes stay in the caches of a core, and each read is worth
  /// its call.
  std::int64_t window() const {
    constexpr std::int64_t kBytes = std::int64_t{4} << 20, kFewest = 1024, kMost = 16384;
    std::int64_t bytes = 1;
    for (const StreamedPlane& plane : planes_) bytes += plane.value_bytes();
    return std::clamp(kBytes / bytes / kFewest * kFewest, kFewest, kMost);
  }
  /// "v0", or "v0 and 68 more".
  std::string name() const {
    const std::string& first = planes_.front().values().variable().name;
    return planes_.size() == 1 ? first : concat(first, " and ", planes_.size() - 1, " more");
  }
  /// Bytes that the system was asked for so far.
  std::int64_t fetched() const {
    std::int64_t sum = 0;
    for (const StreamedPlane& plane : planes_) sum += plane.values().fetched();
    return sum;
  }

 private:
  std::deque<ByteBuffer> memory_;
  std::deque<StreamedPlane> planes_;
  std::set<const File*> files_;
};

/// The values of a plane, in float where that holds them (Unpacking::exact_in_float), else in double.
class PlaneView {
 public:
  PlaneView() = default;
  PlaneView(std::span<const double> values) : doubles_(values.data()) {}
  PlaneView(std::span<const float> values) : floats_(values.data()) {}
  /// Of the window that is in memory when they are taken, by from().
  PlaneView(const StreamedPlane& stream) : stream_(&stream) {}

  /// Of one that is not streamed.
  double operator[](std::size_t i) const {
    return floats_ != nullptr ? static_cast<double>(floats_[i]) : doubles_[i];
  }
  /// Calls use with a pointer to float or double: the value of a point, which those behind it follow.
  template <typename Use>
  void from(std::int64_t point, const Use& use) const {
    if (stream_ != nullptr) {
      stream_->from(point, use);
    } else if (floats_ != nullptr) {
      use(floats_ + point);
    } else {
      use(doubles_ + point);
    }
  }

 private:
  const float* floats_ = nullptr;
  const double* doubles_ = nullptr;
  const StreamedPlane* stream_ = nullptr;
};

/// Memory of planes, kept from batch to batch: each fresh one would cost the system a page fault for every
/// 4 KiB.
class PlanePool {
 public:
  /// Its values are not set, and stay until give_back().
  template <typename T>
  std::span<T> take(std::int64_t count) {
    if (taken_ == buffers_.size()) buffers_.emplace_back();
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    bytes_ += static_cast<std::int64_t>(bytes);
    return {reinterpret_cast<T*>(buffers_[taken_++].take(bytes).data()), static_cast<std::size_t>(count)};
  }
  void give_back() {
    taken_ = 0;
    bytes_ = 0;
  }
  /// Bytes taken now.
  std::int64_t bytes() const { return bytes_; }

 private:
  std::deque<ByteBuffer> buffers_;
  std::size_t taken_ = 0;
  std::int64_t bytes_ = 0;
};

/// Planes that one read leaves for the next, which says beforehand that it takes them. Memory is kept as the
/// pool does.
class KeptPlanes {
 public:
  /// Says that the next read takes this plane.
  void want(const Field& field, Moment time, const Box& box) {
    Plane* known = find(field, time, box);
    if (known == nullptr) known = &planes_[{field, time}].emplace_back(Plane{box});
    known->wanted = true;
  }
  /// A plane as the read before left it, or this one; none where it is neither.
  std::optional<PlaneView> known(const Field& field, Moment time, const Box& box) {
    const Plane* plane = find(field, time, box);
    return plane != nullptr && plane->filled ? std::optional(plane->values) : std::nullopt;
  }
  bool wants(const Field& field, Moment time, const Box& box) {
    const Plane* plane = find(field, time, box);
    return plane != nullptr && plane->wanted;
  }
  /// Keeps a plane that the next read wants; `read` fills its values.
  template <typename T, typename Read>
  PlaneView keep(const Field& field, Moment time, const Box& box, const Read& read) {
    Plane& plane = *find(field, time, box);
    const auto count = static_cast<std::size_t>(box.extent.count());
    plane.bytes = count * sizeof(T);
    plane.memory = spare(plane.bytes);
    const std::span<T> values(reinterpret_cast<T*>(plane.memory.take(plane.bytes).data()), count);
    read(values);
    plane.values = std::span<const T>(values);
    plane.filled = true;
    return plane.values;
  }
  /// What the next read does not want goes.
  void end_read() {
    for (auto& [state, planes] : planes_) {
      for (Plane& plane : planes) {
        if (!plane.wanted) give_back(plane);
        plane.wanted = false;
      }
      std::erase_if(planes, [](const Plane& plane) { return !plane.filled; });
    }
    std::erase_if(planes_, [](const auto& entry) { return entry.second.empty(); });
  }
  void clear() {
    for (auto& [state, planes] : planes_) {
      for (Plane& plane : planes) give_back(plane);
    }
    planes_.clear();
  }
  /// Bytes of the planes that are kept.
  std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (const auto& [state, planes] : planes_) {
      for (const Plane& plane : planes) sum += plane.filled ? static_cast<std::int64_t>(plane.bytes) : 0;
    }
    return sum;
  }

 private:
  struct Plane {
    Box box;
    bool wanted = false;  ///< by the next read
    bool filled = false;
    std::size_t bytes = 0;
    ByteBuffer memory = {};
    PlaneView values = {};
  };

  Plane* find(const Field& field, Moment time, const Box& box) {
    const auto state = planes_.find({field, time});
    if (state == planes_.end()) return nullptr;
    std::vector<Plane>& planes = state->second;
    const auto found =
        std::find_if(planes.begin(), planes.end(), [&](const Plane& plane) { return plane.box == box; });
    return found == planes.end() ? nullptr : &*found;
  }
  ByteBuffer spare(std::size_t bytes) {
    const auto found = spare_.find(bytes);
    if (found == spare_.end()) return {};
    ByteBuffer memory = std::move(found->second);
    spare_.erase(found);
    return memory;
  }
  void give_back(Plane& plane) {
    if (plane.filled) spare_.emplace(plane.bytes, std::move(plane.memory));
    plane.filled = false;
  }

  std::map<std::pair<Field, Moment>, std::vector<Plane>> planes_;
  std::multimap<std::size_t, ByteBuffer> spare_;  ///< by their bytes
};

}  // namespace jigsaw::inline samples
