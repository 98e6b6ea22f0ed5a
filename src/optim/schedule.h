#pragma once
#include <memory>
#include <vector>

#include "config/keys.h"

namespace jigsaw::inline optim {

/// How rates change over a run: a factor of each parameter's own learning rate.
class Schedule {
 public:
  virtual ~Schedule() = default;
  /// Of step 1, 2, … of `steps`.
  virtual double factor(std::int64_t step, std::int64_t steps) const = 0;
  /// Numbers of steps that are given, and once they are done the rate is another.
  virtual std::vector<std::int64_t> milestones() const { return {}; }
};

struct ConstantOptions {
  std::int64_t warmup_steps = 0;
  std::int64_t cooldown_steps = 0;
};
void declare(Keys<ConstantOptions>& keys);

struct CosineOptions {
  std::int64_t warmup_steps = 0;
  double final_learning_rate = 0.0;
};
void declare(Keys<CosineOptions>& keys);

struct PolyOptions {
  std::int64_t warmup_steps = 0;
  double power = 0.9;
};
void declare(Keys<PolyOptions>& keys);

struct StepsOptions {
  std::int64_t warmup_steps = 0;
  std::vector<std::int64_t> at;
  double factor = 0.1;
};
void declare(Keys<StepsOptions>& keys);

/// step/warmup while warming up, then 1; in the last `cooldown` steps (steps − step + 1)/(cooldown + 1), so
/// that every step moves.
///
/// @param learning_rate  the optimizer's, which the factor belongs to.
std::unique_ptr<Schedule> make_schedule(const ConstantOptions& options, double learning_rate);
/// The same warm-up, then final + (1 − final)·(1 + cos(π·(step − 1 − warmup)/(steps − warmup)))/2, where
/// final is the final learning rate over `learning_rate`: torch.optim.lr_scheduler.CosineAnnealingLR with the
/// steps after warm-up as T_max. The final rate would be that of the step after the last, so that every step
/// moves.
/// @throws ConfigError  when the rate would rise from 0, for which there is no factor.
std::unique_ptr<Schedule> make_schedule(const CosineOptions& options, double learning_rate);
/// The same warm-up, then (1 − (step − 1 − warmup)/(steps − warmup))^power:
/// torch.optim.lr_scheduler.PolynomialLR with the steps after warm-up as total_iters, nnU-Net's schedule.
std::unique_ptr<Schedule> make_schedule(const PolyOptions& options, double learning_rate);
/// The same warm-up, then factor^n, n how many of `at` are below the step's number:
/// torch.optim.lr_scheduler.MultiStepLR with `at` as milestones and `factor` as gamma.
std::unique_ptr<Schedule> make_schedule(const StepsOptions& options, double learning_rate);

}  // namespace jigsaw::inline optim
