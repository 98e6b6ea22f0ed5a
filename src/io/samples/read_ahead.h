#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

namespace jigsaw::inline samples {

/// Values that are taken in the order of their keys, and looked at before that: each is read once, as long as
/// no more than `most` are held that were looked at and not taken yet. For one thread.
template <typename Key, typename Value>
class KeptAhead {
 public:
  KeptAhead(std::function<Value(const Key&)> read, std::size_t most) : read_(std::move(read)), most_(most) {}

  Value take(const Key& key) {
    auto known = ahead_.extract(key);
    return known.empty() ? read_(key) : std::move(known.mapped());
  }
  Value peek(const Key& key) {
    if (const auto known = ahead_.find(key); known != ahead_.end()) return known->second;
    Value value = read_(key);
    if (ahead_.size() < most_) ahead_.emplace(key, value);
    return value;
  }

 private:
  std::function<Value(const Key&)> read_;
  std::size_t most_;
  std::map<Key, Value> ahead_;
};

/// So many states of as many points, f64, are held to form increments without reading them twice.
/// @param readers  that hold them beside each other.
inline std::size_t most_ahead(std::int64_t points, std::size_t readers = 1) {
  constexpr std::int64_t kMostBytes = std::int64_t{256} << 20;
  const std::int64_t bytes = points * 8 * static_cast<std::int64_t>(readers);
  return static_cast<std::size_t>((kMostBytes + bytes - 1) / bytes);
}

}  // namespace jigsaw::inline samples
