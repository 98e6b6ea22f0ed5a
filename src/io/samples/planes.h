#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "array/box.h"
#include "files/byte_buffer.h"
#include "samples/field.h"
#include "samples/members.h"

namespace jigsaw::inline samples {

/// The values of a plane, in float where that holds them (Unpacking::exact_in_float), else in double.
class PlaneView {
 public:
  PlaneView() = default;
  PlaneView(std::span<const double> values) : doubles_(values.data()), size_(values.size()) {}
  PlaneView(std::span<const float> values) : floats_(values.data()), size_(values.size()) {}

  double operator[](std::size_t i) const {
    return floats_ != nullptr ? static_cast<double>(floats_[i]) : doubles_[i];
  }
  bool empty() const { return size_ == 0; }

 private:
  const float* floats_ = nullptr;
  const double* doubles_ = nullptr;
  std::size_t size_ = 0;
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
