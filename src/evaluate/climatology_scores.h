#pragma once
#include <string>
#include <vector>

#include "base/log.h"
#include "train/run_observer.h"

namespace jigsaw::inline evaluate {

/// Adds "climatology_rmse" to validations: of the climatology of data.train (see climatology.h) what
/// validation says of forecasts, √(mean over windows of the area-weighted mean of squares), in physical
/// units. It is the same in every validation and computed once, when the run begins.
class ClimatologyScores final : public RunObserver {
 public:
  explicit ClimatologyScores(Log& log) : log_(log) {}

  void begin(OpenedRun& run, const RunDirectory& directory, std::int64_t step) override;
  bool needs_origin() const override { return false; }
  void metrics(const Json& /*line*/) override {}
  void predicted(std::int64_t /*batch*/, int /*lead*/, const ShardedTensor& /*prediction*/,
                 const Batch& /*truth*/) override {}
  void validated(std::int64_t step, ValidationResult& result) override;
  void end() override {}

 private:
  Log& log_;
  std::vector<std::string> targets_;
  std::vector<std::vector<double>> rmse_;  ///< by lead and target; NaN where data.train says nothing
};

}  // namespace jigsaw::inline evaluate
