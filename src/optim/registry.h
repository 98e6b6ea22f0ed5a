#pragma once
#include <memory>

#include "config/tagged.h"
#include "optim/options.h"
#include "optim/schedule.h"
#include "optim/update_rule.h"

namespace jigsaw::inline optim {

/// The optimizers that configurations may name, with their keys. A new one is one file and one line in
/// registry.cpp.
const TagRegistry& optimizer_types();
/// What one of them has in common with all.
const OptimizerOptions& common_options(const Tagged& optimizer);
std::unique_ptr<UpdateRule> make_rule(const Tagged& optimizer);

/// The schedules that configurations may name.
const TagRegistry& schedule_types();
/// @param learning_rate  the optimizer's. @throws ConfigError
std::unique_ptr<Schedule> make_schedule(const Tagged& schedule, double learning_rate);

}  // namespace jigsaw::inline optim
