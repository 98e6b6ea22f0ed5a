#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/optimizer.h"

namespace jigsaw::inline optim {

/// What one update is told, besides what each run of elements is trained with.
struct UpdateStep {
  double rate_factor = 1;     ///< multiplies every learning rate
  std::int64_t step = 1;      ///< 1 for the first update
  double gradient_scale = 1;  ///< multiplies the gradient
};

/// How an optimizer moves parameters, element by element: AdamW, gradient descent, …. Without state of its
/// own: what it keeps per element it is given with the elements.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  /// Arrays that are kept beside the parameters, which begin with zeros, as checkpoints name them:
  /// "adamw.moment1".
  virtual std::vector<std::string> state_names() const = 0;
  /// Changes these runs of `parameter` and of `state`, one array per name: flat arrays of one type, f32 or
  /// f64, and as long as the gradient. All of them at once, for a model has many small parameters.
  virtual void update(Context& context, const UpdateStep& step, std::span<const TrainedRun> runs,
                      Array parameter, const Array& gradient, std::span<Array> state) const = 0;
};

}  // namespace jigsaw::inline optim
