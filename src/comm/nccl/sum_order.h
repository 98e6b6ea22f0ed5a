#pragma once
#include <cstdint>
#include <vector>

namespace jigsaw::inline nccl {

/// Whose summand is added when, so that a rank that has those of all others gets the bits that they would
/// have brought it by levels (comm/levels.h). Sums are nested: `ends` says how many of them a summand ends,
/// innermost first; each is added to the one around it.
struct Summand {
  std::int32_t rank = 0;
  std::int32_t ends = 0;
};
struct SumOrder {
  std::vector<Summand> summands;  ///< each rank once
  int depth = 0;                  ///< sums within one another
  static constexpr int kMostDepth = 16;
};

/// The order of reduce_for(owner, …) (comm/reduce.h), of as many ranks.
SumOrder order_for(int owner, int ranks);
/// That of reduce_for_all().
SumOrder order_for_all(int ranks);

}  // namespace jigsaw::inline nccl
