#include "task/objective.h"

#include <map>

#include "base/error.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "images/sequence_data.h"
#include "samples/dataset.h"

namespace jigsaw::inline task {

namespace {

/// Of fields with dates (Dataset), or of sequences (SequenceData).
template <typename Data>
class ForecastObjective : public Objective {
 public:
  ForecastObjective(const Configuration& configuration, const std::filesystem::path& folder,
                    Communicator& communicator, const DataUse& use)
      : data_(configuration.data, folder, configuration.train.rollout.most(), communicator, use),
        cells_(cells_of(data_)),
        loss_(loss_options(configuration, data_.channels().targets), cells_,
              channel_names(data_.channels().targets)),
        rollout_(configuration.validation_rollout()),
        members_(configuration.ensemble.members) {}

  SampleSource& data() override { return data_; }
  const Loss& loss() const override { return loss_; }
  std::int64_t output_channels() const override { return std::ssize(data_.channels().targets); }
  std::unique_ptr<Scores> make_scores() const override {
    return make_forecast_scores(data_, data_.options().predict, cells_, loss_, rollout_, members_);
  }

 private:
  static CellWeights cells_of(const Dataset& data) { return data.cell_weights(); }
  static CellWeights cells_of(const SequenceData& data) { return CellWeights(data.grid().row_weights()); }
  static FieldLossOptions loss_options(const Configuration& configuration,
                                       const std::vector<Channel>& targets) {
    FieldLossOptions options = field_loss_options(configuration.loss, targets);
    options.members = members_of(configuration);
    return options;
  }

  Data data_;
  CellWeights cells_;
  FieldLoss loss_;
  int rollout_, members_;
};

/// Images to numbers.
class ImageObjective : public Objective {
 public:
  /// @param spared  no data are read in whole: a peak that is not given is 1.
  ImageObjective(std::unique_ptr<ImageData> data, const Configuration& configuration,
                 Communicator& communicator, bool spared)
      : data_(std::move(data)),
        loss_(image_loss_options(configuration.loss, data_->channels().targets), data_->grid().row_weights(),
              channel_names(data_->channels().targets)) {
    if (data_->tiles().empty() || configuration.validation.every == 0) return;
    if (configuration.validation.peak || spared) {
      peaks_.assign(data_->channels().targets.size(), configuration.validation.peak.value_or(1));
    } else {
      for (const auto& [least, most] : data_->target_ranges(communicator)) peaks_.push_back(most - least);
    }
    for (const double peak : peaks_) {
      if (peak > 0) continue;
      throw ConfigError(concat(
          "validation.peak must be given, above 0, for the largest less the smallest value of a target is ",
          peak));
    }
  }

  SampleSource& data() override { return *data_; }
  const Loss& loss() const override { return loss_; }
  std::int64_t output_channels() const override { return std::ssize(data_->channels().targets); }
  std::unique_ptr<Scores> make_scores() const override { return make_image_scores(*data_, loss_, peaks_); }

 private:
  std::unique_ptr<ImageData> data_;
  FieldLoss loss_;
  std::vector<double> peaks_;
};

/// Images to labels.
class ClassObjective : public Objective {
 public:
  ClassObjective(std::unique_ptr<ImageData> data, const Configuration& configuration,
                 Communicator& communicator)
      : data_(std::move(data)),
        loss_(options_of(configuration, *data_, communicator), data_->options().label_outputs(),
              data_->grid().row_weights()) {}

  SampleSource& data() override { return *data_; }
  const Loss& loss() const override { return loss_; }
  std::int64_t output_channels() const override { return data_->options().label_outputs(); }
  std::unique_ptr<Scores> make_scores() const override { return make_class_scores(*data_, loss_); }

 private:
  /// A model that is not trained needs no weights.
  static ClassLossOptions options_of(const Configuration& configuration, const ImageData& data,
                                     Communicator& communicator) {
    ClassLossOptions options = class_loss_options(configuration.loss, !data.options().regions.empty());
    if (options.by_frequency && data.count(Split::kTrain) > 0)
      options.class_weights = class_weights_of(data.label_counts(communicator));
    return options;
  }

  std::unique_ptr<ImageData> data_;
  ClassLoss loss_;
};

void check_overlap(const Configuration& configuration) {
  const std::vector<std::int64_t>&overlap = configuration.validation.overlap, &crop = configuration.data.crop;
  if (overlap.empty()) return;
  if (overlap.size() != configuration.data.space().size()) {
    throw ConfigError(concat("validation.overlap must have one number per spatial dimension of data.dims, ",
                             configuration.data.space().size(), ", not ", overlap.size()));
  }
  if (crop.empty()) throw ConfigError("validation.overlap needs data.crop, the size of the tiles");
  for (std::size_t d = 0; d < crop.size(); ++d) {
    if (overlap[d] >= crop[d]) {
      throw ConfigError(concat("validation.overlap[", d, "] must be less than the crop's ", crop[d]));
    }
  }
}

using OpenTask = std::unique_ptr<Objective> (*)(const Configuration&, const std::filesystem::path&,
                                                Communicator&, const DataUse&);

std::unique_ptr<Objective> open_forecast(const Configuration& configuration,
                                         const std::filesystem::path& folder, Communicator& communicator,
                                         const DataUse& use) {
  if (configuration.data.of_sequences())
    return std::make_unique<ForecastObjective<SequenceData>>(configuration, folder, communicator, use);
  return std::make_unique<ForecastObjective<Dataset>>(configuration, folder, communicator, use);
}

std::unique_ptr<Objective> open_images(const Configuration& configuration,
                                       const std::filesystem::path& folder, Communicator& communicator,
                                       const DataUse& use) {
  if (configuration.train.rollout.most() > 1) throw ConfigError("train.rollout must be 1 for images");
  if (configuration.validation_rollout() > 1) throw ConfigError("validation.rollout must be 1 for images");
  check_overlap(configuration);
  auto data =
      std::make_unique<ImageData>(configuration.data, folder, static_cast<std::uint64_t>(configuration.seed),
                                  configuration.validation.overlap, communicator, use);
  if (configuration.data.classes > 0)
    return std::make_unique<ClassObjective>(std::move(data), configuration, communicator);
  return std::make_unique<ImageObjective>(std::move(data), configuration, communicator, use.pass.spared);
}

/// The tasks of data.task: a new one is its objective, a line here, and its name in fields/data_options.cpp.
const std::map<Task, OpenTask>& tasks() {
  static const std::map<Task, OpenTask> all = {
      {Task::kForecast, open_forecast}, {Task::kDenoise, open_images}, {Task::kMap, open_images}};
  return all;
}

}  // namespace

std::unique_ptr<Objective> open_objective(const Configuration& configuration,
                                          const std::filesystem::path& folder, Communicator& communicator,
                                          DataUse use) {
  use.valid_rollout = configuration.validation_rollout();
  std::unique_ptr<Objective> result;
  if (!use.statistics) {
    if (auto named = named_statistics(configuration.data, folder, communicator))
      use.statistics = std::move(named->statistics);
  }
  together(communicator,
           [&] { result = tasks().at(configuration.data.task)(configuration, folder, communicator, use); });
  return result;
}

}  // namespace jigsaw::inline task
