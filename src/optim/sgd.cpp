#include "optim/sgd.h"

#include <algorithm>

#include "config/config.h"
#include "kernels/copy.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline optim {

void declare(Keys<SgdOptions>& keys) {
  declare_common(keys);
  keys.add("momentum", &SgdOptions::momentum)
      .at_least(0)
      .below(1)
      .doc("How much of the last step's direction the next one keeps.");
}

namespace {

/// Elements that are updated at a time, so that what lies between two kernels is small.
constexpr std::int64_t kRun = std::int64_t{1} << 18;

/// y ← y + factor·x.
void add_scaled(Context& context, Array y, double factor, const Array& x) {
  Array scaled = extract_box(context, x, Box::whole(x.shape()), Purpose::kWorkspace);
  scale(context, scaled, factor);
  accumulate(context, y, scaled);
}

class Sgd : public UpdateRule {
 public:
  explicit Sgd(const SgdOptions& options) : momentum_(options.momentum) {}

  std::vector<std::string> state_names() const override { return {"sgd.momentum"}; }

  void update(Context& context, const UpdateStep& step, Array parameter, const Array& gradient,
              std::span<Array> state) const override {
    for (std::int64_t at = 0; at < parameter.count(); at += kRun) {
      const Shape run = {std::min(kRun, parameter.count() - at)};
      Array p = parameter.slice(at, run), v = state[0].slice(at, run);
      scale(context, v, momentum_);
      add_scaled(context, v, step.gradient_scale, gradient.slice(at, run));
      scale(context, p, 1.0 - step.learning_rate * step.weight_decay);
      add_scaled(context, p, -step.learning_rate, v);
    }
  }

 private:
  double momentum_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_rule(const SgdOptions& options) {
  return std::make_unique<Sgd>(options);
}

}  // namespace jigsaw::inline optim
