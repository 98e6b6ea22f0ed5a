#pragma once
#include <map>
#include <string>
#include <vector>

#include "config/json.h"
#include "io/prefetch.h"
#include "train/forecaster.h"
#include "train/loss.h"

namespace jigsaw {

/// Errors of one variable at one lead in physical units, as WeatherBench 2 defines them: weights from cell
/// bounds with mean 1; RMSE = √(mean over times of the weighted spatial mean of squares).
struct VariableScore {
  double rmse = 0, bias = 0, persistence_rmse = 0;
};

struct ValidationResult {
  double loss = 0;
  /// By lead (0 is the first), then by variable.
  std::vector<std::map<std::string, VariableScore>> scores;

  /// {"t2m": {"rmse": …, "bias": …, "persistence_rmse": …}} of one lead.
  Json metrics(std::size_t lead) const;
};

/// Runs the forecaster over all validation windows and compares with the truth and with persistence.
class Validation {
 public:
  Validation(const Rank& rank, PlanBook& plans, Forecaster& forecaster, Dataset& data, const FieldLoss& loss,
             std::int64_t batch_size, int rollout, DType dtype, DType input_type);

  /// Collective.
  ValidationResult run();

 private:
  struct Sums;
  BatchRequest request(std::int64_t batch) const;
  void add(const Batch& batch, std::int64_t samples, std::vector<Sums>& sums) const;
  std::map<std::string, VariableScore> scores(const Sums& sums) const;

  Rank rank_;
  PlanBook& plans_;
  Forecaster& forecaster_;
  Dataset& data_;
  BatchReader reader_;
  const FieldLoss& loss_;
  FieldLoss score_;  // area-weighted, every variable alike
  std::int64_t batch_size_;
  int rollout_;
  DType dtype_, input_type_;
};

/// Names of channels, and the scale of a target in physical units.
std::vector<std::string> channel_names(const std::vector<Channel>& channels);
double target_scale(const Channel& target, const Statistics& statistics, Predict predict);

}  // namespace jigsaw
