#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/keys.h"
#include "io/time_axis.h"

namespace jigsaw {

/// A variable of the files, on some of its levels.
struct VariableOptions {
  std::string name;
  std::vector<double> levels;

  bool operator==(const VariableOptions&) const = default;
};

/// What is known of any place and time without files.
enum class ForcingKind { kLatitude, kLongitude, kTimeOfDay, kDayOfYear };
/// What the model's output means: the state at the target time, or its difference from time 0.
enum class Predict { kState, kIncrement };
enum class Task { kForecast };

/// The configuration's section `data`.
struct DataOptions {
  std::vector<std::string> files;
  std::vector<std::int64_t> shape;  ///< rows and columns; empty when the files say
  std::vector<VariableOptions> variables, diagnostic, constants;
  std::vector<ForcingKind> forcings;
  std::vector<int> input_hours = {0};
  int lead_hours = 6;
  Predict predict = Predict::kIncrement;
  std::vector<Period> train, valid;
  std::optional<std::string> normalization;  ///< a stats file, or nothing for "auto"
  Task task = Task::kForecast;
};

void declare(Keys<VariableOptions>& keys);
void declare(Keys<DataOptions>& keys);

}  // namespace jigsaw
