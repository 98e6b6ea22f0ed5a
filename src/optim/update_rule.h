#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "array/array.h"

namespace jigsaw::inline optim {

/// What one update is told of the elements that it is for.
struct UpdateStep {
  double learning_rate = 0, weight_decay = 0;
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
  /// Changes `parameter` and `state`, one array per name: flat arrays of one type, f32 or f64, and as long as
  /// the gradient.
  virtual void update(Context& context, const UpdateStep& step, Array parameter, const Array& gradient,
                      std::span<Array> state) const = 0;
};

}  // namespace jigsaw::inline optim
