#include "predict/forecast_scores.h"

#include <cmath>

#include "array/transfer.h"
#include "parallel/redistribute.h"
#include "train/loss.h"

namespace jigsaw::inline predict {

namespace {

/// The layout in which each rank has whole rows: what cut them cuts the rows among ranks.
Layout with_whole_rows(const Mesh& mesh, Layout layout) {
  layout.placements[mesh.domain(1)] = Placement::shard(1);
  return layout;
}

}  // namespace

ForecastScores::ForecastScores(const Dataset& data, std::vector<Region> regions,
                               std::vector<std::vector<double>> weights, int leads,
                               const Climatology* climatology)
    : data_(data),
      regions_(std::move(regions)),
      weights_(std::move(weights)),
      rows_(data.grid().row_weights()),
      leads_(leads),
      climatology_(climatology),
      physical_(data.channels(), data.statistics(), data.options().predict),
      channels_(data.channels().targets.size()),
      means_(static_cast<std::size_t>(leads) * channels_ * regions_.size()),
      power_(static_cast<std::size_t>(leads) * channels_) {
  if (!data.grid().periodic) return;
  fourier_ = std::make_unique<Fourier>(static_cast<std::size_t>(data.grid().shape()[1]));
  for (Power& power : power_) {
    power.forecast.resize(fourier_->wave_numbers());
    power.truth.resize(fourier_->wave_numbers());
  }
}

std::size_t ForecastScores::index(int lead, std::size_t channel, std::size_t region) const {
  return (static_cast<std::size_t>(lead) * channels_ + channel) * regions_.size() + region;
}

void ForecastScores::add_point(double* sums, double weight, const States& states, std::size_t i,
                               double climate) {
  const double forecast = states.forecast[i], truth = states.truth[i], error = forecast - truth;
  if (weight == 0 || std::isnan(truth)) return;
  sums[kWeight] += weight;
  sums[kSquares] += weight * error * error;
  sums[kAbsolute] += weight * std::abs(error);
  sums[kErrors] += weight * error;
  if (const double change = states.persistence[i] - truth; !std::isnan(change)) {
    sums[kPersistence] += weight * change * change;
    sums[kPersistenceWeight] += weight;
  }
  if (std::isnan(climate)) return;
  sums[kProduct] += weight * (forecast - climate) * (truth - climate);
  sums[kForecast] += weight * (forecast - climate) * (forecast - climate);
  sums[kTruth] += weight * (truth - climate) * (truth - climate);
}

/// kSums numbers for each sample of the box, channel of all, and region.
std::vector<double> ForecastScores::sums_of(const Box& box, const States& states, int lead,
                                            const Batch& batch) const {
  const std::int64_t samples = box.extent[0], points = box.extent[1] * box.extent[2],
                     channels = box.extent[3];
  std::vector<double> sums(static_cast<std::size_t>(samples) * channels_ * regions_.size() * kSums);
  if (box.empty()) return sums;
  const Time ahead = (lead + 1) * data_.options().lead_hours * kHour;
  for (std::int64_t b = 0; b < samples; ++b) {
    const Time time = batch.times[static_cast<std::size_t>(box.begin[0] + b)] + ahead;
    for (std::int64_t c = 0; c < channels; ++c) {
      const auto channel = static_cast<std::size_t>(box.begin[3] + c);
      std::span<const float> climate;
      if (climatology_ != nullptr)
        climate = climatology_->at(day_and_hour(time, data_.files().calendar()), box.begin[3] + c);
      double* const first =
          &sums[(static_cast<std::size_t>(b) * channels_ + channel) * regions_.size() * kSums];
      for (std::int64_t point = 0; point < points; ++point) {
        const auto place = static_cast<std::size_t>(point);
        const double mean = climate.empty() ? std::nan("") : climate[place];
        const auto at = static_cast<std::size_t>((b * points + point) * channels + c);
        for (std::size_t r = 0; r < regions_.size(); ++r)
          add_point(first + r * kSums, weights_[r][place], states, at, mean);
      }
    }
  }
  return sums;
}

/// The spatial means of one sample.
void ForecastScores::add_means(const double* sums, Means& means) {
  const auto add = [](Mean& mean, double sum, double weight) {
    if (!(weight > 0)) return;
    mean.sum += sum / weight;
    mean.count += 1;
  };
  add(means.squares, sums[kSquares], sums[kWeight]);
  add(means.absolute, sums[kAbsolute], sums[kWeight]);
  add(means.errors, sums[kErrors], sums[kWeight]);
  add(means.persistence, sums[kPersistence], sums[kPersistenceWeight]);
  add(means.correlation, sums[kProduct], std::sqrt(sums[kForecast] * sums[kTruth]));
}

void ForecastScores::add(const Rank& rank, int lead, const ShardedTensor& prediction, const Batch& batch) {
  const Layout& layout = prediction.layout;
  const auto physical = [&](const Array& values) { return physical_.of(rank, layout, values, batch.origin); };
  const States states{physical_.predicted(rank, layout, prediction.piece, batch.origin),
                      physical(batch.target(lead)), physical(batch.baseline)};
  const Box box = rank.box(layout);
  const SampleGroup group(rank.mesh, layout, box);
  std::vector<double> sums = sums_of(box, states, lead, batch);
  sum_over(rank, group.other_points, sums);
  // Of every channel and region over these samples, then over those of other ranks.
  std::vector<Means> batch_means(channels_ * regions_.size());
  for (std::size_t i = 0; i < sums.size() / kSums; ++i)
    add_means(&sums[i * kSums], batch_means[i % batch_means.size()]);
  std::vector<double> numbers;
  for (Means& means : batch_means) {
    for (const Mean* mean : means.each()) numbers.insert(numbers.end(), {mean->sum, mean->count});
  }
  sum_over(rank, group.other_samples, numbers);
  const double* from = numbers.data();
  for (std::size_t i = 0; i < batch_means.size(); ++i) {
    for (Mean* mean : means_[index(lead, 0, 0) + i].each()) {
      mean->sum += *from++;
      mean->count += *from++;
    }
  }
  if (fourier_) add_spectra(rank, lead, layout, states);
}

void ForecastScores::add_spectra(const Rank& rank, int lead, const Layout& layout, const States& states) {
  const Layout whole = with_whole_rows(rank.mesh, layout);
  const Shape extent = rank.box(layout).extent;
  const auto rows_of = [&](const std::vector<double>& values) {
    const ShardedTensor piece{constant(rank.context, extent, DType::kFloat64, values), layout};
    return download_values(rank.context, redistribute(rank, piece, whole).piece);
  };
  const std::vector<double> forecast = rows_of(states.forecast), truth = rows_of(states.truth);
  const Box box = rank.box(whole);
  if (box.empty()) return;
  const std::int64_t columns = box.extent[2], channels = box.extent[3];
  std::vector<double> forecast_row(static_cast<std::size_t>(columns)), truth_row(forecast_row.size());
  for (std::int64_t row = 0; row < box.extent[0] * box.extent[1]; ++row) {
    const double weight = rows_[static_cast<std::size_t>(box.begin[1] + row % box.extent[1])];
    for (std::int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (std::int64_t column = 0; column < columns; ++column) {
        const auto from = static_cast<std::size_t>((row * columns + column) * channels + c);
        forecast_row[static_cast<std::size_t>(column)] = forecast[from];
        truth_row[static_cast<std::size_t>(column)] = truth[from];
        sum += forecast[from] + truth[from];
      }
      if (!std::isfinite(sum)) continue;  // of a row in which something is missing there is none
      Power& power =
          power_[static_cast<std::size_t>(lead) * channels_ + static_cast<std::size_t>(box.begin[3] + c)];
      const std::vector<double> of_forecast = fourier_->power(forecast_row),
                                of_truth = fourier_->power(truth_row);
      power.weight += weight;
      for (std::size_t k = 0; k < of_truth.size(); ++k) {
        power.forecast[k] += weight * of_forecast[k];
        power.truth[k] += weight * of_truth[k];
      }
    }
  }
}

void ForecastScores::finish(const Rank& rank) {
  if (!fourier_) return;
  for (Power& power : power_) {
    std::vector<double> all = power.forecast;
    all.insert(all.end(), power.truth.begin(), power.truth.end());
    all.push_back(power.weight);
    sum_over(rank, rank.mesh.all_axes(), all);
    const auto middle = all.begin() + std::ssize(power.forecast);
    power.forecast.assign(all.begin(), middle);
    power.truth.assign(middle, all.end() - 1);
    power.weight = all.back();
  }
}

ForecastScore ForecastScores::score(int lead, std::size_t channel, std::size_t region) const {
  const Means& means = means_[index(lead, channel, region)];
  return {std::sqrt(means.squares.value()), means.absolute.value(), means.errors.value(),
          means.correlation.value(), std::sqrt(means.persistence.value())};
}

Spectrum ForecastScores::spectrum(int lead, std::size_t channel) const {
  const Power& power = power_[static_cast<std::size_t>(lead) * channels_ + channel];
  Spectrum spectrum{power.forecast, power.truth};
  for (double& value : spectrum.forecast) value /= power.weight;
  for (double& value : spectrum.truth) value /= power.weight;
  return spectrum;
}

}  // namespace jigsaw::inline predict
