#include "predict/image_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "comm/agreement.h"
#include "samples/prefetch.h"

namespace jigsaw::inline predict {

namespace {

std::vector<ImageWindow> windows_of_data(const ImageData& data, const std::vector<ImageRegion>& regions,
                                         double overlap) {
  std::vector<Shape> extents;
  for (const ImageRegion& region : regions) extents.push_back(data.files().extents(region.image));
  return windows_over(regions, extents, data.grid().shape(), overlap);
}

/// The columns of a region at given rows.
Box at_rows(Box columns, const Box& rows) {
  columns.begin[0] = rows.begin[0];
  columns.extent[0] = rows.extent[0];
  return columns;
}

}  // namespace

ImageRun::ImageRun(OpenedRun& run, std::vector<ImageRegion> regions, double overlap, bool noisy,
                   std::int64_t halo)
    : run_(run),
      data_(dynamic_cast<const ImageData&>(run.data())),
      regions_(std::move(regions)),
      windows_(windows_of_data(data_, regions_, overlap)),
      reader_(data_, noisy),
      halo_(halo) {}

std::int64_t ImageRun::windows_of(std::int64_t batch) const {
  const std::int64_t samples = run_.placed().samples();
  return std::min(samples, windows() - batch * samples);
}

Batch ImageRun::read(std::int64_t batch) const {
  const PlacedModel& placed = run_.placed();
  const std::int64_t count = windows_of(batch);
  const auto first = static_cast<std::size_t>(batch * placed.samples());
  Batch result;
  result.input = reader_.read(std::span(windows_).subspan(first, static_cast<std::size_t>(count)),
                              placed.input_box(count), placed.types().master, placed.rank().context.host());
  return result;
}

void ImageRun::run(const WindowBlend::Use& use) {
  PlacedModel& placed = run_.placed();
  const Rank& rank = placed.rank();
  WindowBlend blend(rank, regions_, windows_, data_.grid().shape(), run_.objective().output_channels(), halo_,
                    use);
  const std::int64_t batches = (windows() + placed.samples() - 1) / placed.samples();
  Prefetch prefetch([this](std::int64_t batch) { return read(batch); }, 0, batches);
  for (std::int64_t i = 0; i < batches; ++i) {
    Batch batch;
    const auto first = windows_.begin() + i * placed.samples();
    for (auto window = first; window != first + windows_of(i); ++window) unread_.push_back(window->image);
    together(run_.world(), [&] { batch = upload(rank.context, prefetch.next()); });
    unread_.clear();
    Tape tape(rank, placed.plans(), Tape::Mode::kForward, placed.types().compute);
    placed.forecaster().run(tape, batch, windows_of(i),
                            [&](int, const Variable& prediction) { blend.add(prediction.value()); });
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
  const bool increment =
      data_.options().task == Task::kDenoise && data_.options().predict == Predict::kIncrement;
  const std::size_t fields = targets.size();
  std::vector<double> result = rows.values;
  for (std::size_t c = 0; c < fields; ++c) {
    const FieldStatistics& statistics = data_.statistics().of(targets[c].field);
    const bool denoises = data_.options().task == Task::kDenoise;
    const std::vector<double> input =
        denoises ? reader_.field(targets[c].field, regions_[rows.region].image, rows.box)
                 : std::vector<double>{};
    const double scale = increment ? statistics.increment_deviation : statistics.deviation;
    for (std::size_t i = c, point = 0; i < result.size(); i += fields, ++point) {
      result[i] = (increment ? input[point] : statistics.mean) + scale * result[i];
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

/// @param even  what a region has that is as likely as not.
std::vector<double> ImageRun::labels_above(std::span<const double> values, double even) const {
  const std::int64_t classes = data_.options().label_outputs();
  const bool regions = !data_.options().regions.empty();
  std::vector<double> result;
  for (auto point = values.begin(); point != values.end(); point += classes) {
    const std::int64_t label =
        regions ? data_.labels().class_in([&](std::int64_t region) { return point[region] > even; })
                : std::max_element(point, point + classes) - point;
    result.push_back(static_cast<double>(label));
  }
  return result;
}

}  // namespace jigsaw::inline predict
