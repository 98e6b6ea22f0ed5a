#include "evaluate/forecast_scores.h"

#include <cmath>

#include "array/transfer.h"
#include "parallel/redistribute.h"
#include "task/ensemble.h"
#include "task/scores.h"

namespace jigsaw::inline evaluate {

namespace {

/// The layout in which each rank has whole rows: what cut them cuts the rows among ranks.
Layout with_whole_rows(const Mesh& mesh, Layout layout) {
  layout.placements[mesh.domain(1)] = Placement::shard(1);
  return layout;
}

/// A piece's values in that layout. Collective over the mesh.
std::vector<double> whole_rows(const Rank& rank, const Layout& layout, const Array& piece) {
  return download_values(rank.context,
                         redistribute(rank, {piece, layout}, with_whole_rows(rank.mesh, layout)).piece);
}

}  // namespace

ForecastScores::ForecastScores(Context& context, const Dataset& data, std::vector<Region> regions,
                               const Box& piece, const std::vector<std::vector<double>>& weights, int leads,
                               std::int64_t members, const Climatology* climatology, Thresholds thresholds,
                               ClimateOptions climate, const std::vector<int>& map_leads)
    : data_(data),
      regions_(std::move(regions)),
      rows_(data.grid().row_weights()),
      leads_(leads),
      members_(members),
      climatology_(climatology),
      physical_(data.channels(), data.statistics(), data.options().predict),
      channels_(data.channels().targets.size()),
      thresholds_(std::move(thresholds), leads, regions_.size(), members),
      outside_(state_limits(data.channels(), data.statistics())),
      means_(static_cast<std::size_t>(leads) * channels_ * regions_.size()),
      histograms_(means_.size(), {std::vector<double>(static_cast<std::size_t>(members + 1))}),
      power_(static_cast<std::size_t>(leads) * channels_) {
  std::vector<double> all;
  for (const std::vector<double>& of_region : weights)
    all.insert(all.end(), of_region.begin(), of_region.end());
  weights_ = constant(context, {std::ssize(weights), std::ssize(weights.front())}, DType::kFloat64, all);
  if (climate.groups != ClimateGroups::kNone) {
    climate_ =
        std::make_unique<ClimateScores>(context, climate, data.files().calendar(), piece, channels_, weights);
  }
  if (!map_leads.empty()) error_maps_ = std::make_unique<ErrorMaps>(context, map_leads, piece, members);
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

void ForecastScores::Means::add(const ScoreSums& sums, std::int64_t sample, std::int64_t region,
                                std::int64_t channel, double whole) {
  const auto of = [&](ScoreSum kind) { return sums.of(kind, sample, region, channel); };
  const auto put = [](Mean& mean, double sum, double weight) {
    if (!(weight > 0)) return;
    mean.sum += sum / weight;
    mean.count += 1;
  };
  const double weight = of(ScoreSum::kWeight);
  put(scored, weight, whole);
  put(squares, of(ScoreSum::kSquares), weight);
  put(absolute, of(ScoreSum::kAbsolute), weight);
  put(errors, of(ScoreSum::kErrors), weight);
  put(truth, of(ScoreSum::kTruthValues), weight);
  put(persistence, of(ScoreSum::kReferenceSquares), of(ScoreSum::kReferenceWeight));
  put(persistence_absolute, of(ScoreSum::kReferenceAbsolute), of(ScoreSum::kReferenceWeight));
  put(climatology, of(ScoreSum::kTruth), of(ScoreSum::kClimateWeight));
  const double anomalies = std::sqrt(of(ScoreSum::kForecast) * of(ScoreSum::kTruth));
  // A forecast that is not finite where there is a truth has no score.
  const bool known = std::isfinite(of(ScoreSum::kSquares)) || !(of(ScoreSum::kClimateWeight) > 0);
  put(correlation, known ? of(ScoreSum::kProduct) : std::nan(""), known ? anomalies : 1);
}

void ForecastScores::Means::add(Means& others) {
  const auto from = others.each();
  const auto to = each();
  for (std::size_t i = 0; i < kCount; ++i) {
    to[i]->sum += from[i]->sum;
    to[i]->count += from[i]->count;
  }
}

/// Goes up once, as far as there is room.
const Array& ForecastScores::climate_at(const Context& context, const DayAndHour& when) {
  const Array& on_host = climatology_->at(when);
  if (!kept_.contains(when)) {
    if (kept_bytes_ + on_host.bytes() > kMostKept) {
      kept_.clear();
      kept_bytes_ = 0;
    }
    kept_bytes_ += on_host.bytes();
    kept_.emplace(when, upload(context, on_host, Purpose::kWorkspace));
  }
  return kept_.at(when);
}

/// Of the times that a lead of the batch's samples is of; undefined where there is none.
Array ForecastScores::climate_of(const Rank& rank, const Box& box, int lead, const Batch& batch) {
  if (climatology_ == nullptr || box.empty()) return {};
  const Time ahead = (lead + 1) * data_.options().lead_time;
  const std::int64_t size = box.extent.count(1, box.extent.rank());
  Array climate(rank.context, box.extent, DType::kFloat32, Purpose::kWorkspace);
  for (std::int64_t b = 0; b < box.extent[0]; ++b) {
    const Time time = batch.times[static_cast<std::size_t>(box.begin[0] + b)] + ahead;
    const Array& known = climate_at(rank.context, day_and_hour(time, data_.files().calendar()));
    copy_elements(rank.context, known, 0, climate, b * size, size);
  }
  return climate;
}

/// The weights of all points of the regions, as if there were a truth everywhere. Collective over the mesh.
void ForecastScores::find_areas(const Rank& rank, const Layout& layout) {
  const double zero = 0;
  const Array everywhere =
      kept_constant(rank.context, rank.box(layout).extent, DType::kFloat64, std::span(&zero, 1));
  const ScoreSums sums = sum_scores(rank, layout, {everywhere, everywhere, {}, {}}, weights_);
  for (std::int64_t region = 0; sums.group.samples > 0 && region < sums.regions; ++region)
    areas_.push_back(sums.of(ScoreSum::kWeight, 0, region, 0));
  know_areas_ = true;
}

void ForecastScores::add(const Rank& rank, int lead, const ShardedTensor& prediction, const Batch& batch) {
  const Layout layout = of_samples(prediction.layout, members_);
  add_states(rank, lead, layout, physical_.of_members(rank, layout, prediction.piece, batch.origin, members_),
             batch);
}

void ForecastScores::add_states(const Rank& rank, int lead, const Layout& layout, const Array& members,
                                const Batch& batch) {
  if (!know_areas_) find_areas(rank, layout);
  // The files of forecasts hold nothing where the start is missing, and nothing persists there.
  const ScoredStates states{member_mean(rank.context, members, members_),
                            where_both(rank.context, batch.state(lead), batch.origin),
                            where_both(rank.context, batch.origin, batch.baseline),
                            climate_of(rank, rank.box(layout), lead, batch)};
  const ScoreSums sums = sum_scores(rank, layout, states, weights_);
  // Of every sample, channel and region: of these samples, then those of other ranks.
  const std::size_t width = channels_ * regions_.size();
  std::vector<Means> of_samples(static_cast<std::size_t>(layout.global[0]) * width);
  for (std::int64_t sample = 0; sample < sums.group.samples; ++sample) {
    for (std::size_t i = 0; i < width; ++i) {
      const auto number = static_cast<std::int64_t>(i);
      const std::int64_t region = number % sums.regions;
      of_samples[static_cast<std::size_t>(sums.group.first + sample) * width + i].add(
          sums, sample, region, number / sums.regions,
          areas_.empty() ? 0.0 : areas_[static_cast<std::size_t>(region)]);
    }
  }
  if (members_ > 1) {
    add_members(rank, layout, members, states, of_samples);
    add_ranks(rank, lead, layout, members, states.truth);
  }
  std::vector<double> numbers;
  for (Means& means : of_samples) {
    for (const Mean* mean : means.each()) numbers.insert(numbers.end(), {mean->sum, mean->count});
  }
  sum_over(rank, sums.group.other_samples, numbers);
  const double* from = numbers.data();
  for (std::size_t i = 0; i < of_samples.size(); ++i) {
    for (Mean* mean : of_samples[i].each()) *mean = {*from++, *from++};
    means_[index(lead, 0, 0) + i % width].add(of_samples[i]);
  }
  if (tell_) keep_starts(lead, of_samples, batch);
  thresholds_.add(rank, lead, layout, members, states.forecast, states.truth, weights_);
  if (climate_) add_climate(rank, lead, layout, members, states.truth, batch);
  if (error_maps_) error_maps_->add(rank, lead, layout, members, states.forecast, states.truth);
  if (stations_ != nullptr) stations_->add(rank, lead, layout, members, batch);
  for (std::int64_t j = 0; j < members_ && !rank.box(layout).empty(); ++j) {
    const Array member = member_of(rank.context, members, members_, j);
    outside_.add(rank, layout, where_both(rank.context, member, states.truth), lead + 1, batch.times);
  }
  if (!fourier_) return;
  const std::vector<double> truth = whole_rows(rank, layout, states.truth);
  for (std::int64_t j = 0; j < members_; ++j)
    add_spectra(rank, lead, layout, member_of(rank.context, members, members_, j), truth);
}

/// Of a batch of which the last lead is here, all leads are told.
void ForecastScores::keep_starts(int lead, const std::vector<Means>& of_samples, const Batch& batch) {
  if (lead == 0) starts_ = {batch.times, channels_, regions_.size(), {}};
  for (const Means& means : of_samples) starts_.all.push_back(score_of(means));
  if (lead + 1 == leads_) tell_(starts_);
}

void ForecastScores::add_climate(const Rank& rank, int lead, const Layout& layout, const Array& members,
                                 const Array& truth, const Batch& batch) {
  std::vector<Time> times = batch.times;
  for (Time& time : times) time += (lead + 1) * data_.options().lead_time;
  climate_->add(rank, lead, layout, members, truth, times);
}

/// CRPS and variance of these samples, region by region.
/// @param means  of all samples, by sample, channel and region.
void ForecastScores::add_members(const Rank& rank, const Layout& layout, const Array& members,
                                 const ScoredStates& states, std::vector<Means>& means) const {
  const bool empty = rank.box(layout).empty();
  const auto m = static_cast<double>(members_);
  // Points count where there is a truth.
  const Array centre = where_both(rank.context, states.forecast, states.truth);
  const auto add = [&](const ErrorMeasure& measure, const Array& from, double factor, std::size_t region,
                       Mean Means::*to) {
    const Array weights = empty ? Array()
                                : weights_.slice(static_cast<std::int64_t>(region) * weights_.shape()[1],
                                                 {weights_.shape()[1]});
    const ErrorTerm term{measure};
    const SampleSums sums =
        field_sums(rank, std::span(&term, 1), members, from, layout, weights).read(rank.context);
    for (std::int64_t sample = 0; sample < sums.samples; ++sample) {
      for (std::int64_t c = 0; c < sums.variables; ++c) {
        const std::size_t at = sums.index(sample, c);
        const auto row = static_cast<std::size_t>((sums.group.first + sample) * sums.variables + c);
        Means& all = means[row * regions_.size() + region];
        const bool known = all.squares.count == 0 || std::isfinite(all.squares.sum);
        if (known && !(sums.denominator[at] > 0)) continue;
        Mean& mean = all.*to;
        mean.sum += known ? factor * sums.numerator[at] / sums.denominator[at] : std::nan("");
        mean.count += 1;
      }
    }
  };
  for (std::size_t region = 0; region < regions_.size(); ++region) {
    add(ErrorMeasure::crps(1), states.truth, 1, region, &Means::crps);
    add(ErrorNorm::kSquared, centre, m / (m - 1), region, &Means::variance);
  }
}

/// Of every channel, region and rank over these samples, then over those of other ranks.
void ForecastScores::add_ranks(const Rank& rank, int lead, const Layout& layout, const Array& members,
                               const Array& truth) {
  const RegionSums sums = sum_truth_ranks(rank, layout, physical_.alike_at_bounds(rank, layout, members),
                                          physical_.alike_at_bounds(rank, layout, truth), members_, weights_);
  const auto ranks = static_cast<std::size_t>(members_ + 1), each = ranks + 1;  // and how many forecasts
  std::vector<double> numbers(channels_ * regions_.size() * each);
  for (std::int64_t sample = 0; sample < sums.group.samples; ++sample) {
    for (std::size_t i = 0; i < channels_ * regions_.size(); ++i) {
      const auto number = static_cast<std::int64_t>(i);
      const auto at = [&](std::size_t k) {
        return sums.at(static_cast<std::int64_t>(k), sample, number % sums.regions, number / sums.regions);
      };
      double weight = 0;
      for (std::size_t k = 0; k < ranks; ++k) weight += at(k);
      if (weight == 0) continue;
      for (std::size_t k = 0; k < ranks; ++k) numbers[i * each + k] += at(k) / weight;
      numbers[i * each + ranks] += 1;
    }
  }
  sum_over(rank, sums.group.other_samples, numbers);
  const double* from = numbers.data();
  for (std::size_t i = 0; i < channels_ * regions_.size(); ++i) {
    Histogram& histogram = histograms_[index(lead, 0, 0) + i];
    for (double& share : histogram.shares) share += *from++;
    histogram.count += *from++;
  }
}

void ForecastScores::add_spectra(const Rank& rank, int lead, const Layout& layout, const Array& forecasts,
                                 const std::vector<double>& truth) {
  const std::vector<double> forecast = whole_rows(rank, layout, forecasts);
  const Box box = rank.box(with_whole_rows(rank.mesh, layout));
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
  thresholds_.finish(rank);
  if (climate_) climate_->finish(rank);
  if (error_maps_) error_maps_->finish(rank);
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
  return score_of(means_[index(lead, channel, region)]);
}

ForecastScore ForecastScores::score_of(const Means& means) const {
  ForecastScore score{std::sqrt(means.squares.value()), means.absolute.value(), means.errors.value(),
                      means.correlation.value()};
  score.persistence_rmse = std::sqrt(means.persistence.value());
  score.climatology_rmse = std::sqrt(means.climatology.value());
  score.crps = means.crps.value();
  score.spread = std::sqrt(means.variance.value());
  score.spread_skill = spread_skill(score.spread, score.rmse, members_);
  score.crps_skill = 1 - score.crps / means.persistence_absolute.value();
  score.acc_forecasts = means.correlation.count;
  score.scored = means.scored.value();
  score.truth_mean = means.truth.value();
  score.forecast_mean = score.truth_mean + score.bias;
  return score;
}

std::vector<double> ForecastScores::rank_histogram(int lead, std::size_t channel, std::size_t region) const {
  if (members_ == 1) return {};
  const Histogram& histogram = histograms_[index(lead, channel, region)];
  std::vector<double> shares = histogram.shares;
  for (double& share : shares) share /= histogram.count;
  return shares;
}

Spectrum ForecastScores::spectrum(int lead, std::size_t channel) const {
  const Power& power = power_[static_cast<std::size_t>(lead) * channels_ + channel];
  Spectrum spectrum{power.forecast, power.truth};
  for (double& value : spectrum.forecast) value /= power.weight;
  for (double& value : spectrum.truth) value /= power.weight;
  return spectrum;
}

}  // namespace jigsaw::inline evaluate
