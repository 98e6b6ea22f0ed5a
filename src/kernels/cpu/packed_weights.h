#pragma once
#include <map>
#include <set>

#include "array/array.h"

namespace jigsaw::cpu {

/// Weights that stay as they are for now, and what a rank's kernels have packed of them. See keep_packed().
class PackedWeights {
 public:
  void keep(const Array& weight) { kept_.insert(weight.identity()); }
  bool keeps(const Array& weight) const { return kept_.contains(weight.identity()); }
  void forget() {
    kept_.clear();
    packed_.clear();
  }

  /// What `pack` gives; of a kept weight only once for each part of it and user (a primitive).
  template <typename F>
  Array packed(const Array& weight, const std::byte* part, const void* user, const F& pack) {
    if (!keeps(weight)) return pack();
    Array& packed = packed_[{part, user}];
    if (!packed.defined()) packed = pack();
    return packed;
  }

 private:
  std::set<const void*> kept_;  ///< identities
  std::map<std::pair<const void*, const void*>, Array> packed_;
};

}  // namespace jigsaw::cpu
