#pragma once
#include <memory>
#include <string>
#include <vector>

#include "config/json.h"
#include "images/image_data.h"
#include "samples/cell_weights.h"
#include "samples/dataset.h"
#include "task/class_loss.h"

namespace jigsaw::inline task {

/// What a validation found.
struct ValidationResult {
  double loss = 0;
  /// By lead (0 is the first): {"t2m": {"rmse": …, "bias": …, "persistence_rmse": …}}.
  std::vector<Json> leads;

  const Json& metrics(std::size_t lead) const { return leads[lead]; }
  /// As they stand in metrics.jsonl: {"loss": …, "metrics": {…}, "leads": {"12": {…}, …}}, see number_in().
  Json numbers(const DataOptions& data) const;
};

/// Sums over validation samples of what predictions say of their targets.
class Scores {
 public:
  virtual ~Scores() = default;
  /// A batch of global samples at one lead. Collective over the mesh.
  virtual void add(const Rank& rank, int lead, const ShardedTensor& prediction, const Batch& batch) = 0;
  virtual ValidationResult result() const = 0;
};

/// The numbers of each target in a result by which one model is better than another, of classes "dice.0",
/// "dice.1", …, too.
std::vector<std::string> score_measures(const DataOptions& data, std::int64_t members = 1);
/// √((M + 1)/M) · spread/RMSE.
double spread_skill(double spread, double rmse, std::int64_t members);

/// Of forecasts, in physical units, as WeatherBench 2 defines them: weights from cell bounds with mean 1;
/// RMSE = √(mean over times of the weighted spatial mean of squares); bias; RMSE of persistence. A spatial
/// mean is over the valid points (of persistence: those that are valid at time 0 as well); times without any
/// do not count. The loss is one weighted mean over all windows and leads, as in training with leads alike.
///
/// Of several members RMSE and bias are those of their mean; beside them stand the fair CRPS
/// (ErrorMeasure::crps(1)), the spread, √(mean over times of the weighted spatial mean of the members'
/// variance, by M − 1), and spread_skill, √((M + 1)/M) · spread/RMSE, which is 1 where the spread says how
/// large errors are (Fortin et al. 2014, doi:10.1175/JHM-D-14-0008.1).
/// @param data  fields or sequences. @param cells  how much their points count.
std::unique_ptr<Scores> make_forecast_scores(const SampleSource& data, Predict predict,
                                             const CellWeights& cells, const FieldLoss& loss, int rollout,
                                             std::int64_t members = 1);

/// Of images whose targets are numbers, in their units, over all points of the validation parts: RMSE, bias,
/// PSNR = 20·log10(peak/RMSE) in dB, as evaluate has it with this range; of denoise also RMSE and PSNR of the
/// noisy input. The loss is that of all points together.
///
/// @param peaks  one per target.
std::unique_ptr<Scores> make_image_scores(const ImageData& data, const FieldLoss& loss,
                                          std::vector<double> peaks);

/// Of images whose targets are labels, over all points of the validation parts: accuracy, Dice of each class,
/// their mean and that of classes 1 and up.
std::unique_ptr<Scores> make_class_scores(const ImageData& data, const ClassLoss& loss);

/// Names of channels.
std::vector<std::string> channel_names(const std::vector<Channel>& channels);
/// The scale of a target in physical units.
double target_scale(const Channel& target, const Statistics& statistics, Predict predict);

}  // namespace jigsaw::inline task
