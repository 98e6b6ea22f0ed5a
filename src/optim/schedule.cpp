#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace jigsaw {

double learning_rate_at(const ScheduleOptions& schedule, double rate, std::int64_t step, std::int64_t steps) {
  const std::int64_t warmup = schedule.warmup_steps;
  if (step <= warmup) return rate * static_cast<double>(step) / static_cast<double>(warmup);
  if (schedule.type == ScheduleType::kConstant) return rate;
  const double done =
      static_cast<double>(step - warmup) / static_cast<double>(std::max<std::int64_t>(steps - warmup, 1));
  const double cosine = 0.5 * (1.0 + std::cos(std::numbers::pi * std::min(done, 1.0)));
  return schedule.final_learning_rate + (rate - schedule.final_learning_rate) * cosine;
}

}  // namespace jigsaw
