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
constexpr std::int64_t kPiece = std::int64_t{1} << 18;

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

  void update(Context& context, const UpdateStep& step, std::span<const TrainedRun> runs, Array parameter,
              const Array& gradient, std::span<Array> state) const override {
    for (const TrainedRun& run : runs) {
      const double rate = run.learning_rate * step.rate_factor;
      for (std::int64_t done = 0; done < run.count; done += kPiece) {
        const std::int64_t at = run.at + done;
        const Shape piece = {std::min(kPiece, run.count - done)};
        Array p = parameter.slice(at, piece), v = state[0].slice(at, piece);
        scale(context, v, momentum_);
        add_scaled(context, v, step.gradient_scale, gradient.slice(at, piece));
        scale(context, p, 1.0 - rate * run.weight_decay);
        add_scaled(context, p, -rate, v);
      }
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
