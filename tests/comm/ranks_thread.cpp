#include <gtest/gtest.h>

#include "comm/ranks.h"
#include "comm/thread/run_ranks.h"

namespace jigsaw {

void on_ranks(const std::function<void(Communicator&)>& body) {
  for (const int ranks : {1, 2, 3, 4, 5, 8, 18}) {
    SCOPED_TRACE(ranks);
    run_ranks(ranks, body);
  }
}

}  // namespace jigsaw
