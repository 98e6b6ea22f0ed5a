#pragma once
#include <cstdint>
#include <vector>

namespace jigsaw::inline samples {

/// How many samples were seen in how many steps, when the batch size became what it is.
struct SamplesSeen {
  std::int64_t steps = 0, samples = 0;

  /// In so many steps, at least `steps`, with that batch size.
  std::int64_t in(std::int64_t all_steps, std::int64_t batch_size) const {
    return samples + (all_steps - steps) * batch_size;
  }
};

/// Which windows the global batch of each step holds: a pure function of (seed, step), and of how many
/// samples were seen with other batch sizes, so that a run goes on anywhere without state. An epoch's order
/// continues into the next, so every batch is full.
class Sampler {
 public:
  enum class Order { kShuffled, kSequential };

  /// @param windows  how many there are, at least 1. @param batch_size  global, at least 1.
  Sampler(std::int64_t windows, std::int64_t batch_size, Order order, std::uint64_t seed);

  /// Indices of the windows of step 0, 1, …, one per global sample. Shuffled, each epoch is a permutation of
  /// its own; sequential, all epochs are 0, 1, …, windows − 1.
  std::vector<std::int64_t> batch(std::int64_t step);

  /// From step `seen.steps` on batches go on behind the samples that were seen before.
  void go_on_behind(const SamplesSeen& seen) { seen_ = seen; }

 private:
  void shuffle(std::int64_t epoch);

  std::int64_t windows_, batch_size_;
  SamplesSeen seen_;
  Order order_;
  std::uint64_t seed_;
  std::int64_t epoch_ = -1;  ///< whose order `permutation_` is
  std::vector<std::int64_t> permutation_;
};

}  // namespace jigsaw::inline samples
