#pragma once
#include <cstdint>
#include <vector>

namespace jigsaw::inline nccl {

/// The order in which a rank that holds the summands of all ranks adds them, so that it gets the same bits as
/// a reduction by levels (comm/levels.h). Sums are nested: `ends` says how many of them a summand completes,
/// innermost first; a completed sum is added to the one around it.
struct Summand {
  std::int32_t rank = 0;
  std::int32_t ends = 0;
};
struct SumOrder {
  std::vector<Summand> summands;  ///< each rank once
  int depth = 0;                  ///< depth of the nesting
  static constexpr int kMostDepth = 16;
};

/// The order of reduce_for(owner, …) (comm/reduce.h), of as many ranks.
SumOrder order_for(int owner, int ranks);
/// That of reduce_for_all().
SumOrder order_for_all(int ranks);

}  // namespace jigsaw::inline nccl
