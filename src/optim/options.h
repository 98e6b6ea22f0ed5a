#pragma once
#include <optional>
#include <string>
#include <vector>

#include "config/keys.h"

namespace jigsaw {

/// Parameters whose names match a pattern train with values of their own.
struct ParameterGroupOptions {
  std::string match;
  std::optional<double> learning_rate;
  std::optional<double> weight_decay;
  bool frozen = false;
};
void declare(Keys<ParameterGroupOptions>& keys);

enum class OptimizerType : std::uint8_t { kAdamw };

struct OptimizerOptions {
  OptimizerType type = OptimizerType::kAdamw;
  double learning_rate = 1e-3;
  std::vector<double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0.01;
  double clip_norm = 1.0;
  double ema_decay = 0.0;
  std::vector<ParameterGroupOptions> groups;
};
void declare(Keys<OptimizerOptions>& keys);

enum class ScheduleType : std::uint8_t { kCosine, kConstant };

struct ScheduleOptions {
  ScheduleType type = ScheduleType::kCosine;
  std::int64_t warmup_steps = 0;
  double final_learning_rate = 0.0;
};
void declare(Keys<ScheduleOptions>& keys);

}  // namespace jigsaw
