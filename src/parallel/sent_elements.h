#pragma once
#include <cstdint>
#include <memory>

#include "parallel/redistribute.h"

namespace jigsaw::inline parallel {

/// Elements that the busiest rank sends in all-to-alls of a mesh. What was found of single dims, which
/// layouts share, is remembered: it takes longest, and on many ranks long. For one thread.
class SentElements {
 public:
  explicit SentElements(const MeshShape& mesh);
  ~SentElements();
  SentElements(const SentElements&) = delete;
  SentElements& operator=(const SentElements&) = delete;

  /// Exact where some axis of the step does not cut the held layout; where all do, an estimate from the
  /// largest pieces.
  std::int64_t most(const Step& step, const Layout& held);

 private:
  class Dims;

  MeshShape mesh_;
  std::unique_ptr<Dims> dims_;
};

}  // namespace jigsaw::inline parallel
