#include <cmath>
#include <optional>

#include "kernels/pointwise.h"
#include "task/physical_states.h"
#include "task/scores.h"

namespace jigsaw::inline task {

namespace {

/// Sums of all batches as of one sample.
template <typename Sums, typename Found>
void add_merged(const Rank& rank, std::optional<Sums>& total, const Found& batch) {
  const Sums merged = batch.read(rank.context).merged(rank);
  if (total) {
    total->add(merged);
  } else {
    total = merged;
  }
}

class ImageScores : public Scores {
 public:
  ImageScores(const ImageData& data, const FieldLoss& loss, std::vector<double> peaks)
      : data_(data),
        loss_(loss),
        score_({}, data.grid().row_weights(), channel_names(data.channels().targets)),
        physical_(data.channels(), data.statistics(), data.options().predict),
        peaks_(std::move(peaks)) {}

  void add(const Rank& rank, int, const ShardedTensor& prediction, const Batch& batch) override {
    // Where transforms part them, in physical units.
    const bool transformed = physical_.transformed();
    const Array truth = transformed ? batch.state(0) : batch.targets[0],
                predicted = transformed ? states_of(rank, prediction) : prediction.piece;
    const auto add_sums = [&](std::optional<SampleSums>& total, const ErrorMeasure& measure,
                              const Array& piece) {
      add_merged(rank, total, score_.sums(rank, measure, piece, truth, prediction.layout));
    };
    add_merged(rank, losses_, loss_.sums(rank, prediction.piece, batch.targets[0], prediction.layout));
    add_sums(squares_, ErrorNorm::kSquared, predicted);
    add_sums(errors_, ErrorNorm::kSigned, predicted);
    if (batch.baseline.defined()) add_sums(input_squares_, ErrorNorm::kSquared, batch.baseline);
  }

  ValidationResult result() const override {
    ValidationResult result{loss_.mean(*losses_).value(), {Json::object()}};
    const std::vector<Channel>& targets = data_.channels().targets;
    for (std::size_t c = 0; c < targets.size(); ++c) {
      const auto variable = static_cast<std::int64_t>(c);
      const double scale = physical_.transformed()
                               ? 1.0
                               : target_scale(targets[c], data_.statistics(), data_.options().predict);
      const auto psnr = [&](double rmse) { return 20 * std::log10(peaks_[c] / rmse); };
      const double rmse = std::sqrt(squares_->mean(0, variable)) * scale,
                   bias = errors_->mean(0, variable) * scale;
      Json& metrics = result.leads[0][targets[c].name];
      metrics = {{"rmse", rmse}, {"bias", bias}, {"psnr", psnr(rmse)}};
      if (input_squares_) {
        const double input = std::sqrt(input_squares_->mean(0, variable)) * scale;
        metrics["input_rmse"] = input;
        metrics["input_psnr"] = psnr(input);
      }
    }
    return result;
  }

 private:
  /// Of maps, whose states need no origin.
  Array states_of(const Rank& rank, const ShardedTensor& prediction) const {
    const Array none =
        filled(rank.context, rank.box(prediction.layout).extent, DType::kFloat64, 0.0, Purpose::kWorkspace);
    return physical_.predicted(rank, prediction.layout, prediction.piece, none);
  }

  const ImageData& data_;
  const FieldLoss& loss_;
  FieldLoss score_;  // every variable alike
  PhysicalStates physical_;
  std::vector<double> peaks_;
  std::optional<SampleSums> losses_, squares_, errors_, input_squares_;
};

class ClassScores : public Scores {
 public:
  ClassScores(const ImageData& data, const ClassLoss& loss) : data_(data), loss_(loss) {}

  void add(const Rank& rank, int, const ShardedTensor& prediction, const Batch& batch) override {
    add_merged(rank, sums_, loss_.sums(rank, prediction, batch.targets[0]));
  }

  ValidationResult result() const override {
    const std::string& name = data_.channels().targets[0].name;
    const bool regions = !data_.options().regions.empty();
    std::vector<double> dice;
    double sum = 0, named = 0, background = 0;
    for (std::int64_t k = 0; k < data_.options().label_outputs(); ++k) {
      dice.push_back(sums_->dice(regions ? 2 * k + 1 : k));  // of a region its inside
      if (std::isnan(dice.back())) continue;
      sum += dice.back();
      ++named;
      if (k == 0) background = dice.back();
    }
    const double accuracy = sums_->accuracy();
    Json scores = {{"accuracy", accuracy}, {"mean_dice", sum / named}, {"dice", dice}};
    if (!regions) scores["foreground_dice"] = (sum - background) / (named - (std::isnan(dice[0]) ? 0 : 1));
    return {loss_.mean(*sums_).value(), {Json{{name, scores}}}};
  }

 private:
  const ImageData& data_;
  const ClassLoss& loss_;
  std::optional<SampleClassSums> sums_;
};

}  // namespace

std::unique_ptr<Scores> make_image_scores(const ImageData& data, const FieldLoss& loss,
                                          std::vector<double> peaks) {
  return std::make_unique<ImageScores>(data, loss, std::move(peaks));
}

std::unique_ptr<Scores> make_class_scores(const ImageData& data, const ClassLoss& loss) {
  return std::make_unique<ClassScores>(data, loss);
}

}  // namespace jigsaw::inline task
