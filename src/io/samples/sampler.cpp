#include "samples/sampler.h"

#include <numeric>
#include <utility>

#include "array/random.h"
#include "base/error.h"

namespace jigsaw::inline samples {

Sampler::Sampler(std::int64_t windows, std::int64_t batch_size, Order order, std::uint64_t seed)
    : windows_(windows), batch_size_(batch_size), order_(order), seed_(seed) {
  require(windows > 0 && batch_size > 0, "a sampler needs windows and a batch size");
}

/// Fisher–Yates with random numbers at (epoch, element).
void Sampler::shuffle(std::int64_t epoch) {
  if (epoch == epoch_) return;
  permutation_.resize(static_cast<std::size_t>(windows_));
  std::iota(permutation_.begin(), permutation_.end(), 0);
  const RandomStream stream(seed_, RandomPurpose::kShuffle, "windows");
  const RandomPosition position{.step = static_cast<std::uint64_t>(epoch)};
  for (std::uint64_t i = permutation_.size() - 1; i > 0; --i) {
    const std::uint64_t other = (std::uint64_t{stream.bits(position, i)} * (i + 1)) >> 32;
    std::swap(permutation_[i], permutation_[other]);
  }
  epoch_ = epoch;
}

std::vector<std::int64_t> Sampler::batch(std::int64_t step) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < batch_size_; ++i) {
    const std::int64_t sample = seen_.in(step, batch_size_) + i;
    if (order_ == Order::kSequential) {
      indices.push_back(sample % windows_);
      continue;
    }
    shuffle(sample / windows_);
    indices.push_back(permutation_[static_cast<std::size_t>(sample % windows_)]);
  }
  return indices;
}

}  // namespace jigsaw::inline samples
