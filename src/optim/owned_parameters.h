#pragma once
#include <vector>

#include "autograd/parameter.h"
#include "kernels/optimizer.h"
#include "optim/options.h"

namespace jigsaw::inline optim {

/// What this rank owns of the parameters of a model, and what a step may do to it. Everything that changes
/// parameters works through it.
class OwnedParameters {
 public:
  /// Of a group's flat buffer. What is in neither list is frozen.
  struct Part {
    ParameterGroup* group;
    std::vector<TrainedRun> trained;
    std::vector<Segment> followed;  ///< running statistics, see Parameter::momentum()
  };

  /// @throws ConfigError when a group's pattern matches no parameter.
  OwnedParameters(const Rank& rank, const std::vector<ParameterBlock*>& blocks,
                  const OptimizerOptions& options);

  const Rank& rank() const { return rank_; }
  const std::vector<Part>& parts() const { return parts_; }

  /// Forgets the gradients of the last step.
  void zero_gradients();
  /// Sums gradients over `data`. Collective.
  void synchronise_gradients();
  /// Owned elements have changed: other ranks learn of it. Collective.
  void share();
  /// As stored.
  std::int64_t bytes() const;

 private:
  Rank rank_;
  std::vector<Part> parts_;
};

/// Σ g² over the gradients of what is trained, over all ranks, f64 [1] where the context's arrays stand; an
/// element that several hold counts once. Collective; the host waits for nothing that a device computes.
Array gradient_squares(const OwnedParameters& owned);

/// L2 norm of gradients times `scale`. @param squares  of the gradients, as gradient_squares() adds them up.
double gradient_norm(double squares, double scale);

/// What a gradient of this norm is multiplied by, so that its norm is at most `clip_norm` (0: 1), as
/// torch.nn.utils.clip_grad_norm_ does.
double clip_factor(double norm, double clip_norm);

/// Running statistics go their momentum of the way to the mean of what `forwards` passes found. Their
/// gradient is the sum of those ways.
void follow_statistics(OwnedParameters& owned, std::int64_t forwards);

}  // namespace jigsaw::inline optim
