#pragma once
#include <string>
#include <vector>

#include "autograd/parameter.h"
#include "optim/options.h"

namespace jigsaw {

/// AdamW (torch.optim.AdamW) over the parts of the parameters that this rank owns; its state lives beside
/// them and is cut as they are. Gradient norm and clipping are global: an element that several ranks hold
/// counts once.
class AdamW {
 public:
  /// @throws ConfigError when a group's pattern matches no parameter.
  AdamW(const Rank& rank, std::vector<ParameterBlock*> blocks, const OptimizerOptions& options);

  /// Forgets the gradients of the last step.
  void zero_gradients();
  /// Sums gradients over `data`; returns the global L2 norm of the gradients times `scale`, before clipping.
  double finish_gradients(double scale);
  /// One update.
  /// @param rate_factor  the schedule's rate over optimizer.learning_rate.
  /// @param scale, norm  as given to and by finish_gradients().
  void step(double rate_factor, double scale, double norm);

  std::int64_t steps_done() const { return steps_; }

  /// While it lives the parameters are the averaged ones (no effect when there is no average). Collective.
  class Averaged {
   public:
    explicit Averaged(AdamW& optimizer);
    ~Averaged();
    Averaged(const Averaged&) = delete;
    Averaged& operator=(const Averaged&) = delete;

   private:
    AdamW& optimizer_;
  };

  std::int64_t parameter_bytes() const;
  std::int64_t optimizer_bytes() const;

  /// Part of a parameter, or of what is kept for it, for checkpoints.
  struct State {
    const char* kind;  ///< "parameters", "adamw.moment1", "adamw.moment2" or "average"
    Segment segment;   ///< whose range is the array itself
    Array array;       ///< shared: writing it changes the optimizer
  };
  enum class Share : std::uint8_t {
    kHeld,   ///< all that this rank holds
    kSaved,  ///< of that what no other rank saves
  };
  /// In an order that depends on the model and mesh only.
  std::vector<State> state(Share share) const;
  /// After the arrays of state() were written: restores what is derived from them. Collective.
  void restore(std::int64_t steps_done);
  /// After those of the parameters were, before the first step: averages begin there. Collective.
  void restart();

 private:
  struct Part {
    ParameterGroup* group;
    std::vector<Segment> segments;
    std::vector<ParameterGroupOptions> options;  // per segment, with all values resolved
    Array moment1, moment2, average;

    /// The average is what the parameters are.
    void begin_average(Context& context);
  };
  void swap_average();
  void parameters_changed();

  Rank rank_;
  OptimizerOptions options_;
  std::vector<Part> parts_;
  std::int64_t steps_ = 0;
};

}  // namespace jigsaw
