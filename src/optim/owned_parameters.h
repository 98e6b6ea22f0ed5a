#pragma once
#include <string>
#include <vector>

#include "autograd/parameter.h"
#include "kernels/optimizer.h"
#include "optim/options.h"

namespace jigsaw::inline optim {

/// What of a model a group of the options decides, and how it trains.
struct GroupShare {
  std::string match;  ///< "" of what is in no group
  bool frozen = false;
  double learning_rate = 0, weight_decay = 0;
  std::int64_t tensors = 0;
  std::int64_t parameters = 0;  ///< numbers in them
  std::int64_t statistics = 0;  ///< those of running statistics, which follow and are not trained
};
/// Of each group, and at last of what is in none.
std::vector<GroupShare> group_shares(const std::vector<ParameterBlock*>& blocks,
                                     const OptimizerOptions& options);

/// What this rank owns of the parameters of a model, and what a step may do to it. Everything that changes
/// parameters works through it.
class OwnedParameters {
 public:
  /// Of a group's flat buffer. What is in neither list is frozen.
  struct Part {
    ParameterGroup* group;
    std::vector<TrainedRun> trained;
    /// Running statistics, see Parameter::momentum(), which is their rate.
    std::vector<TrainedRun> followed;
  };

  /// @throws ConfigError when a group's pattern matches no parameter, or none that groups before it leave, or
  ///                     all are frozen.
  OwnedParameters(const Rank& rank, const std::vector<ParameterBlock*>& blocks,
                  const OptimizerOptions& options);

  const Rank& rank() const { return rank_; }
  const std::vector<Part>& parts() const { return parts_; }

  /// Forgets the gradients of the last step.
  void zero_gradients();
  /// Sums gradients over `data`. Collective.
  void synchronise_gradients();
  /// Owned elements have changed: other ranks learn of it. Collective.
  /// @param copied  whoever changed them wrote owned_copy() of each group, too.
  void share(bool copied = false);
  /// As stored.
  std::int64_t bytes() const;

 private:
  Rank rank_;
  std::vector<Part> parts_;
};

/// Σ g² over the gradients of what is trained, over all ranks, f64 [1] where the context's arrays stand; an
/// element that several hold counts once. Collective; the host waits for nothing that a device computes.
Array gradient_squares(const OwnedParameters& owned);

/// Running statistics go their momentum of the way to the mean of what `forwards` passes found, where the
/// UpdateNumbers apply. Their gradient is the sum of those ways.
void follow_statistics(OwnedParameters& owned, const Array& numbers, std::int64_t forwards);

}  // namespace jigsaw::inline optim
