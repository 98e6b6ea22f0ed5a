#include "optim/sgd.h"

#include <utility>

#include "config/config.h"

namespace jigsaw::inline optim {

void declare(Keys<SgdOptions>& keys) {
  declare_common(keys);
  keys.add("momentum", &SgdOptions::momentum)
      .at_least(0)
      .below(1)
      .doc("How much of the last step's direction the next one keeps.");
  keys.add("nesterov", &SgdOptions::nesterov)
      .counts_where(here("momentum").above(0))
      .doc("Nesterov's momentum: a step is the gradient and what the next one would keep of the direction.");
}

namespace {

class Sgd : public UpdateRule {
 public:
  explicit Sgd(const SgdOptions& options)
      : momentum_{options.momentum, options.nesterov, options.decoupled_weight_decay} {}

  std::vector<std::string> state_names() const override { return {"sgd.momentum"}; }

  void update(Context& context, std::span<const TrainedRun> runs, const Array& numbers, Array parameter,
              const Array& gradient, std::span<Array> state, Array copy) const override {
    sgd(context, momentum_, runs, numbers, parameter, gradient, state[0], std::move(copy));
  }

 private:
  Momentum momentum_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_rule(const SgdOptions& options) {
  return std::make_unique<Sgd>(options);
}

}  // namespace jigsaw::inline optim
