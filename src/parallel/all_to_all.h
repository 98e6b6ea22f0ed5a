#pragma once
#include "parallel/redistribute.h"

namespace jigsaw::inline parallel {

/// How an all-to-all of a redistribution goes: told by the layouts, and so the same on all ranks.
struct AllToAllWay {
  double peers = 0;        ///< others that a rank sends to at most
  std::int64_t block = 0;  ///< elements, of Communicator::start_all_to_all(): 0 when each is sent to directly
  /// Of the busiest rank. Bytes that are sent again because ranks forward are counted as messages of their
  /// time.
  double messages = 0;
};
AllToAllWay all_to_all_way(const MeshShape& mesh, const Step& step, const Layout& held, double element_bytes);

}  // namespace jigsaw::inline parallel
