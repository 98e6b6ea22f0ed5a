#include "predict/image_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "fields/units.h"
#include "samples/prefetch.h"

namespace jigsaw::inline predict {

namespace {

std::vector<ImageWindow> windows_of_data(const ImageData& data, const std::vector<ImageRegion>& regions,
                                         double overlap) {
  std::vector<Shape> extents;
  for (const ImageRegion& region : regions) extents.push_back(data.files().extents(region.image));
  return windows_over(regions, extents, data.grid().shape(), overlap);
}

const ImageData& images_of_model(TrainedModel& model) {
  return dynamic_cast<const ImageData&>(model.run().data());
}

/// Whether the model says what is to be added to its input.
bool is_increment(const ImageData& data) {
  return data.options().task == Task::kDenoise && data.options().predict == Predict::kIncrement;
}

/// The columns of a region at given rows.
Box at_rows(Box columns, const Box& rows) {
  columns.begin[0] = rows.begin[0];
  columns.extent[0] = rows.extent[0];
  return columns;
}

}  // namespace

ImageRun::ImageRun(TrainedModels& models, std::vector<ImageRegion> regions, const WindowOptions& windows,
                   bool noisy, std::int64_t halo)
    : models_(models),
      run_(models.front().run()),
      data_(images_of_model(models.front())),
      regions_(std::move(regions)),
      windows_(with_mirrored(windows_of_data(data_, regions_, windows.overlap), windows.mirror)),
      noisy_(noisy),
      halo_(halo) {
  if (data_.options().classes == 0)
    physical_.emplace(data_.channels(), data_.statistics(), data_.options().predict);
}

std::int64_t ImageRun::windows_of(std::int64_t batch) const {
  const std::int64_t samples = run_.placed().samples();
  return std::min(samples, windows() - batch * samples);
}

/// @param number  batch · models + model.
Batch ImageRun::read(std::int64_t number) const {
  const std::int64_t models = std::ssize(models_), batch = number / models;
  TrainedModel& model = models_[static_cast<std::size_t>(number % models)];
  const PlacedModel& placed = model.run().placed();
  const std::int64_t count = windows_of(batch);
  const auto first = static_cast<std::size_t>(batch * placed.samples());
  Batch result;
  result.input = WindowReader(images_of_model(model), noisy_)
                     .read(std::span(windows_).subspan(first, static_cast<std::size_t>(count)),
                           placed.input_box(count), placed.types().master, placed.rank().context.host());
  return result;
}

/// The mean of logits, or of numbers in physical units before the inverse of a transform: each model's in the
/// normalised ones of the first.
ModelSum ImageRun::model_sum() const {
  ModelSum sum;
  const auto models = static_cast<double>(models_.size());
  if (models_.size() == 1) return sum;
  if (data_.options().classes > 0) {
    const auto numbers = models_.size() * static_cast<std::size_t>(run_.objective().output_channels());
    return {std::vector<double>(numbers, 1 / models), std::vector<double>(numbers, 0.0)};
  }
  for (TrainedModel& model : models_) {
    for (const Channel& target : data_.channels().targets) {
      const FieldStatistics &own = images_of_model(model).statistics().of(target.field),
                            &first = data_.statistics().of(target.field);
      if (!same_unit(own.units, first.units)) {
        throw CheckpointError(concat(target.name, " is in \"", first.units, "\" by ", models_.front().path(),
                                     " and in \"", own.units, "\" by ", model.path(),
                                     "; predictions that are averaged must be in one unit"));
      }
      const bool increment = is_increment(data_);
      const double scale = increment ? first.increment_deviation : first.deviation;
      sum.factor.push_back((increment ? own.increment_deviation : own.deviation) / scale / models);
      sum.offset.push_back(increment ? 0 : (own.mean - first.mean) / scale / models);
    }
  }
  return sum;
}

void ImageRun::run(const WindowBlend::Use& use) {
  PlacedModel& first = run_.placed();
  ModelSum sum;
  together(run_.world(), [&] { sum = model_sum(); });
  WindowBlend blend(first.rank(), regions_, windows_, data_.grid().shape(),
                    run_.objective().output_channels(), halo_, use, sum);
  const std::int64_t batches = (windows() + first.samples() - 1) / first.samples(),
                     models = std::ssize(models_);
  Prefetch prefetch([this](std::int64_t number) { return read(number); }, 0, batches * models);
  for (std::int64_t i = 0; i < batches; ++i) {
    std::vector<ShardedTensor> predictions;
    const auto begin = windows_.begin() + i * first.samples();
    for (TrainedModel& model : models_) {
      PlacedModel& placed = model.run().placed();
      Batch batch;
      for (auto window = begin; window != begin + windows_of(i); ++window) unread_.push_back(window->image);
      together(run_.world(), [&] { batch = upload(placed.rank().context, prefetch.next()); });
      unread_.clear();
      Tape tape(placed.rank(), placed.plans(), Tape::Mode::kForward, placed.types().compute);
      placed.forecaster().run(tape, batch, windows_of(i), [&](int, const Variable& prediction) {
        predictions.push_back(prediction.value());
      });
    }
    blend.add(predictions);
  }
  blend.finish();
}

Box ImageRun::box_of(const Rows& rows, int rank) const {
  return at_rows(columns_of(regions_[rows.region].box, run_.world().size(), rank, halo_), rows.box);
}

Box ImageRun::own_box_of(const Rows& rows, int rank) const {
  return at_rows(columns_of(regions_[rows.region].box, run_.world().size(), rank, 0), rows.box);
}

std::vector<double> ImageRun::numbers(const Rows& rows) const {
  if (rows.box.empty()) return {};
  const std::vector<Channel>& targets = data_.channels().targets;
  const bool increment = is_increment(data_);
  const std::size_t fields = targets.size();
  const double rounding = run_.placed().types().compute == DType::kBfloat16 ? 0x1p-7 : 0x1p-20;
  std::vector<double> result = rows.values;
  for (std::size_t c = 0; c < fields; ++c) {
    const bool denoises = data_.options().task == Task::kDenoise;
    const std::vector<double> input =
        denoises ? WindowReader(data_, noisy_).field(targets[c].field, regions_[rows.region].image, rows.box)
                 : std::vector<double>{};
    for (std::size_t i = c, point = 0; i < result.size(); i += fields, ++point) {
      result[i] = physical_->predicted(c, result[i], increment ? input[point] : 0.0, rounding);
      if (denoises && std::isnan(input[point])) result[i] = std::numeric_limits<double>::quiet_NaN();
    }
  }
  return result;
}

std::vector<double> ImageRun::probabilities(const Rows& rows) const {
  const std::int64_t classes = data_.options().label_outputs();
  std::vector<double> result = rows.values;
  if (!data_.options().regions.empty()) {
    for (double& value : result) value = 1 / (1 + std::exp(-value));
    return result;
  }
  for (auto point = result.begin(); point != result.end(); point += classes) {
    const double most = *std::max_element(point, point + classes);
    double sum = 0;
    for (auto value = point; value != point + classes; ++value) sum += * value = std::exp(*value - most);
    for (auto value = point; value != point + classes; ++value) *value /= sum;
  }
  return result;
}

std::vector<double> chosen_labels(const ImageData& data, std::span<const double> numbers, LabelNumbers are) {
  const std::int64_t classes = data.options().label_outputs();
  const double even = are == LabelNumbers::kLogits ? 0 : 0.5;
  std::vector<double> result;
  for (auto point = numbers.begin(); point != numbers.end(); point += classes)
    result.push_back(
        static_cast<double>(data.labels().chosen([&](std::int64_t k) { return point[k]; }, even)));
  return result;
}

}  // namespace jigsaw::inline predict
