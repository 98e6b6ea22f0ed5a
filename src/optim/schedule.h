#pragma once
#include "optim/options.h"

namespace jigsaw {

/// Learning rate of step 1, 2, …: rate·step/warmup while warming up, then the constant rate, or
/// final + (rate − final)·(1 + cos(π·(step − warmup)/(steps − warmup)))/2.
double learning_rate_at(const ScheduleOptions& schedule, double rate, std::int64_t step, std::int64_t steps);

}  // namespace jigsaw
