#pragma once
#include <map>
#include <set>

#include "array/array.h"

namespace jigsaw::inline kernels::cpu {

/// Weights that stay as they are for now, and what a rank's kernels have packed of them. See keep_packed().
class PackedWeights {
 public:
  void keep(const Array& weight) { kept_.insert(weight.identity()); }
  bool keeps(const Array& weight) const { return kept_.contains(weight.identity()); }
  void forget() {
    kept_.clear();
    packed_.clear();
    bytes_ = 0;
  }

  /// What `pack` gives; of a kept weight, while there is room, only once for each part of it and user (a
  /// primitive).
  template <typename F>
  Array packed(const Array& weight, const std::byte* part, const void* user, const F& pack) {
    if (!keeps(weight)) return pack();
    const auto found = packed_.find({part, user});
    if (found != packed_.end()) return found->second;
    Array packed = pack();
    if (bytes_ + packed.bytes() <= kRoom) {
      bytes_ += packed.bytes();
      packed_.emplace(std::pair(part, user), packed);
    }
    return packed;
  }

 private:
  /// Copies take up to so much memory: packing costs far less than a product of a weight that large.
  static constexpr std::int64_t kRoom = std::int64_t{16} << 20;

  std::set<const void*> kept_;  ///< identities
  std::map<std::pair<const void*, const void*>, Array> packed_;
  std::int64_t bytes_ = 0;
};

}  // namespace jigsaw::inline kernels::cpu
