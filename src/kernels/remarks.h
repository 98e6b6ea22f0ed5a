#pragma once
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "array/context.h"

namespace jigsaw::inline kernels {

/// What kernels have to tell people, each sentence once, until somebody takes it. Lies in the state of the
/// rank's context.
class Remarks {
 public:
  void add(const std::string& sentence) {
    if (known_.insert(sentence).second) fresh_.push_back(sentence);
  }
  std::vector<std::string> take() { return std::exchange(fresh_, {}); }

 private:
  std::set<std::string> known_;
  std::vector<std::string> fresh_;
};

/// What is new since the last call.
inline std::vector<std::string> take_remarks(Context& context) {
  return context.state<Remarks>().take();
}

}  // namespace jigsaw::inline kernels
