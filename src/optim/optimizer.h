#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/tagged.h"
#include "optim/owned_parameters.h"
#include "optim/parameter_average.h"
#include "optim/update_rule.h"

namespace jigsaw::inline optim {

/// Makes the steps of training: an update rule over the trained parameters that this rank owns, with clipping
/// by the global norm, running statistics and a moving average. Its state lies beside the parameters and is
/// cut as they are.
class Optimizer {
 public:
  /// @throws ConfigError when a group's pattern matches no parameter, or all are frozen.
  Optimizer(const Rank& rank, const std::vector<ParameterBlock*>& blocks, const OptimizerOptions& options,
            std::unique_ptr<UpdateRule> rule);
  /// Of the type that a configuration chose.
  Optimizer(const Rank& rank, const std::vector<ParameterBlock*>& blocks, const Tagged& options);
  /// Of the type whose options these are.
  template <std::derived_from<OptimizerOptions> O>
  Optimizer(const Rank& rank, const std::vector<ParameterBlock*>& blocks, const O& options)
      : Optimizer(rank, blocks, options, make_rule(options)) {}

  const OptimizerOptions& options() const { return options_; }

  /// Forgets the gradients of the last step.
  void zero_gradients() { owned_.zero_gradients(); }
  /// Sums gradients over `data`; gives their gradient_squares(), for which nobody waited. Collective.
  Array finish_gradients();
  /// The same, waited for: the global L2 norm of the gradients times `scale`, before clipping. Collective.
  double finish_gradients(double scale);

  /// What multiplies every learning rate from the next update on.
  void set_rate_factor(double factor) { write_number(UpdateNumbers::kRateFactor, factor); }
  /// One update, unless loss or gradient norm are not finite, which is decided where arrays stand; numbers()
  /// then say so, and count() takes what the host learned of it. Collective; the host waits for nothing that
  /// a device computes.
  /// @param full_weight  by which gradients were divided, see GradientTerms.
  /// @param loss         MeanParts of the step.
  /// @param squares      of finish_gradients().
  /// @param forwards     passes whose gradients were added up: running statistics follow their mean.
  void step(double full_weight, const Array& loss, const Array& squares, std::int64_t forwards);
  /// UpdateNumbers of the last update.
  const Array& numbers() const { return numbers_; }
  /// An update that was decided on the device did apply, or did not.
  void count(bool applied) { steps_ += applied ? 1 : 0; }
  /// One update, which applies. Collective.
  /// @param rate_factor  of every learning rate.
  /// @param scale        of the gradients.
  /// @param norm         gradient_norm() of them at that scale.
  void step(double rate_factor, double scale, double norm, std::int64_t forwards = 1);

  /// Updates that applied, as far as they were counted.
  std::int64_t steps_done() const { return steps_; }

  /// Calls `use` while the parameters are the averaged ones (no effect when there is no average). They stay
  /// so if it throws: ranks that an error parted, or a device that failed, can change nothing back.
  /// Collective.
  void with_averages(const std::function<void()>& use);

  std::int64_t parameter_bytes() const { return owned_.bytes(); }
  std::int64_t optimizer_bytes() const;

  /// Part of a parameter, or of what is kept for it, for checkpoints.
  struct State {
    std::string kind;  ///< one of kinds()
    Segment segment;   ///< whose range is the array itself
    Array array;       ///< shared: writing it changes the optimizer
  };
  enum class Share : std::uint8_t {
    kHeld,   ///< all that this rank holds
    kSaved,  ///< of that what no other rank saves
  };
  /// "parameters", what the rule keeps for each, and "average" where there is one.
  std::vector<std::string> kinds() const;
  /// In an order that depends on the model and mesh only.
  std::vector<State> state(Share share) const;
  /// After the arrays of state() were written: restores what is derived from them. Collective.
  void restore(std::int64_t steps_done);
  /// After those of the parameters were, before the first step: averages begin there. Collective.
  void restart();

 private:
  void update(std::int64_t forwards);
  void write_number(UpdateNumbers::Kind kind, double value);

  OptimizerOptions options_;
  std::unique_ptr<UpdateRule> rule_;
  OwnedParameters owned_;
  std::vector<std::vector<Array>> states_;  // by part, then as the rule names them
  ParameterAverage average_;
  Array numbers_;  ///< UpdateNumbers
  std::int64_t steps_ = 0;
};

}  // namespace jigsaw::inline optim
