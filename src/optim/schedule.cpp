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
    return after(step, steps);
  }

 protected:
  /// The factor of a step after warm-up.
  virtual double after(std::int64_t step, std::int64_t steps) const = 0;

  /// Which part of the steps after warm-up is done before this one, in [0, 1].
  double done_before(std::int64_t step, std::int64_t steps) const {
    return std::clamp(static_cast<double>(step - 1 - warmup_) /
                          static_cast<double>(std::max<std::int64_t>(steps - warmup_, 1)),
                      0.0, 1.0);
  }

 private:
  std::int64_t warmup_;
};

class Constant : public WarmUp {
 public:
  Constant(std::int64_t warmup, std::int64_t cooldown) : WarmUp(warmup), cooldown_(cooldown) {}

 protected:
  double after(std::int64_t step, std::int64_t steps) const override {
    const auto to_come = static_cast<double>(std::max<std::int64_t>(steps - step + 1, 0));
    return std::min(to_come / static_cast<double>(cooldown_ + 1), 1.0);
  }

 private:
  std::int64_t cooldown_;
};

class Steps : public WarmUp {
 public:
  explicit Steps(const StepsOptions& options)
      : WarmUp(options.warmup_steps), at_(options.at), factor_(options.factor) {}
  std::vector<std::int64_t> milestones() const override { return at_; }

 protected:
  double after(std::int64_t step, std::int64_t) const override {
    return std::pow(factor_,
                    static_cast<double>(std::ranges::count_if(at_, [&](auto at) { return at < step; })));
  }

 private:
  std::vector<std::int64_t> at_;
  double factor_;
};

class Cosine : public WarmUp {
 public:
  Cosine(std::int64_t warmup, double final_factor) : WarmUp(warmup), final_(final_factor) {}

 protected:
  double after(std::int64_t step, std::int64_t steps) const override {
    const double done = done_before(step, steps);
    return final_ + (1.0 - final_) * 0.5 * (1.0 + std::cos(std::numbers::pi * done));
  }

 private:
  double final_;
};

class Poly : public WarmUp {
 public:
  Poly(std::int64_t warmup, double power) : WarmUp(warmup), power_(power) {}

 protected:
  double after(std::int64_t step, std::int64_t steps) const override {
    return std::pow(1.0 - done_before(step, steps), power_);
  }

 private:
  double power_;
};

}  // namespace

void declare(Keys<ConstantOptions>& keys) {
  declare_warmup(keys);
  keys.add("cooldown_steps", &ConstantOptions::cooldown_steps)
      .at_least(0)
      .doc(
          "The last steps, over which the rate falls linearly to 0. A run can be made longer from any "
          "checkpoint before them (train.steps).");
}

void declare(Keys<StepsOptions>& keys) {
  declare_warmup(keys);
  keys.add("at", &StepsOptions::at)
      .required()
      .not_empty()
      .at_least(1)
      .must("ascend", [](const auto& at) { return std::ranges::is_sorted(at, std::less_equal<>()); })
      .doc(
          "Numbers of steps: once so many are done, the rate is multiplied by factor, such as [3000, 4500].");
  keys.add("factor", &StepsOptions::factor)
      .above(0)
      .at_most(1)
      .doc("By which the rate is multiplied each time.");
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
  return std::make_unique<Constant>(options.warmup_steps, options.cooldown_steps);
}

std::unique_ptr<Schedule> make_schedule(const StepsOptions& options, double) {
  return std::make_unique<Steps>(options);
}

std::unique_ptr<Schedule> make_schedule(const CosineOptions& options, double learning_rate) {
  const double last = options.final_learning_rate;
  if (last > 0 && !(learning_rate > 0)) {
    throw ConfigError("schedule.final_learning_rate must be 0 where optimizer.learning_rate is 0");
  }
  return std::make_unique<Cosine>(options.warmup_steps, last > 0 ? last / learning_rate : 0.0);
}

}  // namespace jigsaw::inline optim
