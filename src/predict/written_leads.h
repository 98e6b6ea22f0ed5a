#pragma once
#include <cstdint>
#include <optional>

namespace jigsaw::inline predict {

/// Which steps of a forecast its file holds, and as what. Steps count from the start, 1 for the first one.
struct WrittenLeads {
  int first = 0;       ///< steps that were made before, of which the file holds none
  int last = 1;        ///< the last step that is made
  int every = 1;       ///< of steps those that are multiples of it; or, of means, over so many each
  bool means = false;  ///< over steps first + 1 … first + every, and so on; a rest has none

  /// Leads of the file.
  int count() const { return means ? (last - first) / every : last / every - first / every; }
  /// The step that lead number `lead` (from 0 on) of the file is of; of a mean its last one.
  int step_of(int lead) const {
    return ((means ? 0 : first / every) + lead + 1) * every + (means ? first : 0);
  }
  /// The lead that this step ends; nothing where the file has none then.
  std::optional<int> lead_of(int step) const {
    const int from = means ? step - first : step;
    if (from % every != 0) return std::nullopt;
    return from / every - (means ? 0 : first / every) - 1;
  }
};

}  // namespace jigsaw::inline predict
