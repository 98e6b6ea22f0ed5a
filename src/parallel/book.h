#pragma once
#include <memory>
#include <utility>
#include <vector>

namespace jigsaw::inline parallel {

/// What a rank has compiled, by what it was compiled for: part of its context's state.
template <typename Key, typename Value>
class Book {
 public:
  /// The value of a key, which `make` gives at its first use.
  template <typename Make>
  std::shared_ptr<const Value> of(const Key& key, const Make& make) {
    for (const auto& [known, value] : entries_) {
      if (known == key) return value;
    }
    std::shared_ptr<const Value> value = make();
    entries_.emplace_back(key, value);
    return value;
  }

 private:
  std::vector<std::pair<Key, std::shared_ptr<const Value>>> entries_;
};

}  // namespace jigsaw::inline parallel
