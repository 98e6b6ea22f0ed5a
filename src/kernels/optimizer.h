#pragma once
#include <cmath>
#include <span>

#include "array/array.h"

namespace jigsaw::inline kernels {

/// Elements [at, at + count) of flat arrays, those of one parameter, and what they are trained with. Several
/// follow one another and do not overlap.
struct TrainedRun {
  std::int64_t at = 0, count = 0;
  double learning_rate = 0, weight_decay = 0;
};

/// What a step has found and what its update is told, in numbers where the context's arrays stand: f64
/// [kKinds]. On a device they are made there, so that an update waits for no host.
struct UpdateNumbers {
  static constexpr int kKinds = 8;
  enum Kind : std::uint8_t {
    kSum,  ///< of the loss, as MeanParts has it
    kWeight,
    kEmpty,
    kSquares,        ///< Σ g² of the gradients
    kApplies,        ///< 1; or 0 where loss or gradient norm is not finite: the update changes nothing
    kGradientScale,  ///< what gradients are multiplied by
    kRateFactor,     ///< what every learning rate is multiplied by, which whoever owns the numbers writes
    kUpdates         ///< made so far, this one among them: from 1 on, for bias correction
  };
};

/// L2 norm of gradients times `scale`. @param squares  Σ g².
inline double gradient_norm(double squares, double scale) {
  return std::sqrt(squares) * scale;
}
/// What a gradient of this norm is multiplied by, so that its norm is at most `clip_norm` (0: 1), as
/// torch.nn.utils.clip_grad_norm_ does.
inline double clip_factor(double norm, double clip_norm) {
  return clip_norm > 0 && norm > clip_norm ? clip_norm / (norm + 1e-6) : 1.0;
}

/// Gradients as they were added up, before a step's mean and clipping.
struct GradientTerms {
  double full_weight = 1;  ///< they were divided by this in place of MeanParts::kWeight
  double clip_norm = 0;    ///< 0: they are not clipped
};

/// Takes over what a step found, decides whether its update applies and by what it multiplies gradients:
/// full_weight / kWeight times clip_factor(). kUpdates becomes one more where it applies; kRateFactor stays.
/// @param loss     MeanParts, f64 [3], of the whole step.
/// @param squares  f64 [1].
/// @param numbers  UpdateNumbers of the step before.
void decide_update(Context& context, const GradientTerms& terms, const Array& loss, const Array& squares,
                   Array& numbers);

struct AdamwOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  bool decoupled = true;  ///< else decay·p is a part of the gradient
};

/// torch.optim.AdamW (decoupled decay, Loshchilov and Hutter 2019), in place on runs of flat arrays of one
/// type, f32 or f64: p ← p·(1 − lr·decay) − lr·m̂/(√v̂ + eps). Or torch.optim.Adam: g ← g + decay·p, scaled
/// before, and no other decay. What lies between the runs stays as it is.
/// @param numbers  UpdateNumbers: where they do not apply nothing is changed.
/// @param copy     bf16, as long as the parameter: gets what the runs become. Undefined: there is none.
void adamw(Context& context, const AdamwOptions& options, std::span<const TrainedRun> runs,
           const Array& numbers, Array& parameter, const Array& gradient, Array& moment1, Array& moment2,
           Array copy = {});

/// How much of the last step's direction v the next one keeps, and whether it looks ahead along the new one
/// (Nesterov).
struct Momentum {
  double kept = 0.9;
  bool nesterov = false;
  bool decoupled = true;  ///< as in AdamwOptions
};

/// torch.optim.SGD with momentum, and decoupled decay: v ← kept·v + g, p ← p·(1 − lr·decay) − lr·v, or of
/// Nesterov − lr·(g + kept·v). Or torch.optim.SGD with its own: g ← g + decay·p. The rest as in adamw().
void sgd(Context& context, const Momentum& momentum, std::span<const TrainedRun> runs, const Array& numbers,
         Array& parameter, const Array& gradient, Array& velocity, Array copy = {});

/// Running statistics: p ← p − lr·g, where the numbers apply; of them nothing else counts. Arrays as in
/// adamw().
void follow(Context& context, std::span<const TrainedRun> runs, const Array& numbers, Array& statistic,
            const Array& gradient, Array copy = {});

/// By how much an average keeps to what it was at the t-th update: `decay`, but for the first ones, in which
/// it is (1 + t) / (10 + t), so that what parameters were at the begin is forgotten, as
/// tf.train.ExponentialMovingAverage with num_updates.
inline double average_decay(double decay, double updates) {
  return std::fmin(decay, (1.0 + updates) / (10.0 + updates));
}
/// average ← d·average + (1 − d)·parameter, where the numbers apply, with d of average_decay() at kUpdates.
void exponential_average(Context& context, double decay, const Array& numbers, Array& average,
                         const Array& parameter);

/// sum += Σ x² over each run, formed in float64 in an order that depends on its count only; one run after the
/// other.
/// @param x    flat.
/// @param sum  one number, f64.
void add_squares_of_runs(Context& context, std::span<const TrainedRun> runs, const Array& x, Array& sum);

}  // namespace jigsaw::inline kernels
