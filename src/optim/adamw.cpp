#include "optim/adamw.h"

#include <utility>

#include "config/config.h"

namespace jigsaw::inline optim {

void declare(Keys<AdamWOptions>& keys) {
  using O = AdamWOptions;
  declare_common(keys);
  keys.add("betas", &O::betas).length(2).at_least(0).below(1).doc("Decay of the first and second moment.");
  keys.add("eps", &O::eps).above(0).doc("Added to the root of the second moment.");
}

namespace {

class AdamW : public UpdateRule {
 public:
  explicit AdamW(const AdamWOptions& options) : options_(options) {}

  std::vector<std::string> state_names() const override { return {"adamw.moment1", "adamw.moment2"}; }

  void update(Context& context, std::span<const TrainedRun> runs, const Array& numbers, Array parameter,
              const Array& gradient, std::span<Array> state, Array copy) const override {
    adamw(context, {options_.betas[0], options_.betas[1], options_.eps, options_.decoupled_weight_decay},
          runs, numbers, parameter, gradient, state[0], state[1], std::move(copy));
  }

 private:
  AdamWOptions options_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_rule(const AdamWOptions& options) {
  return std::make_unique<AdamW>(options);
}

}  // namespace jigsaw::inline optim
