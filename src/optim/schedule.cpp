#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "config/config.h"

namespace jigsaw::inline optim {

namespace {

template <typename O>
void declare_warmup(Keys<O>& keys) {
  keys.add("warmup_steps", &O::warmup_steps)
      .at_least(0)
      .doc("Steps over which the rate rises linearly to its value.");
}

class WarmUp : public Schedule {
 public:
  explicit WarmUp(std::int64_t steps) : warmup_(steps) {}

  double factor(std::int64_t step, std::int64_t steps) const final {
    if (step <= warmup_) return static_cast<double>(step) / static_cast<double>(warmup_);
    const double done = static_cast<double>(step - 1 - warmup_) /
                        static_cast<double>(std::max<std::int64_t>(steps - warmup_, 1));
    return after(std::clamp(done, 0.0, 1.0));
  }

 protected:
  /// The factor when this part of the steps after warm-up is done, in [0, 1].
  virtual double after(double done) const = 0;

 private:
  std::int64_t warmup_;
};

class Constant : public WarmUp {
 public:
  using WarmUp::WarmUp;

 protected:
  double after(double) const override { return 1.0; }
};

class Cosine : public WarmUp {
 public:
  Cosine(std::int64_t warmup, double final_factor) : WarmUp(warmup), final_(final_factor) {}

 protected:
  double after(double done) const override {
    return final_ + (1.0 - final_) * 0.5 * (1.0 + std::cos(std::numbers::pi * done));
  }

 private:
  double final_;
};

class Poly : public WarmUp {
 public:
  Poly(std::int64_t warmup, double power) : WarmUp(warmup), power_(power) {}

 protected:
  double after(double done) const override { return std::pow(1.0 - done, power_); }

 private:
  double power_;
};

}  // namespace

void declare(Keys<ConstantOptions>& keys) {
  declare_warmup(keys);
}

void declare(Keys<CosineOptions>& keys) {
  declare_warmup(keys);
  keys.add("final_learning_rate", &CosineOptions::final_learning_rate)
      .at_least(0)
      .doc(
          "Rate that is reached when the last step is done, which itself still has a little more; parameters "
          "with a rate of their own end at the same part of it. Above 0 only where optimizer.learning_rate "
          "is.");
}

void declare(Keys<PolyOptions>& keys) {
  declare_warmup(keys);
  keys.add("power", &PolyOptions::power)
      .above(0)
      .doc("The rate is that power of the part of the steps after warm-up that is still to come.");
}

std::unique_ptr<Schedule> make_schedule(const PolyOptions& options, double) {
  return std::make_unique<Poly>(options.warmup_steps, options.power);
}

std::unique_ptr<Schedule> make_schedule(const ConstantOptions& options, double) {
  return std::make_unique<Constant>(options.warmup_steps);
}

std::unique_ptr<Schedule> make_schedule(const CosineOptions& options, double learning_rate) {
  const double last = options.final_learning_rate;
  if (last > 0 && !(learning_rate > 0)) {
    throw ConfigError("schedule.final_learning_rate must be 0 where optimizer.learning_rate is 0");
  }
  return std::make_unique<Cosine>(options.warmup_steps, last > 0 ? last / learning_rate : 0.0);
}

}  // namespace jigsaw::inline optim
