#pragma once
#include <span>
#include <string>
#include <vector>

#include "kernels/optimizer.h"

namespace jigsaw::inline optim {

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
  /// @param numbers  UpdateNumbers: where they do not apply nothing changes.
  /// @param copy     bf16, for what the runs of `parameter` become; undefined where there is none.
  virtual void update(Context& context, std::span<const TrainedRun> runs, const Array& numbers,
                      Array parameter, const Array& gradient, std::span<Array> state, Array copy) const = 0;
};

}  // namespace jigsaw::inline optim
