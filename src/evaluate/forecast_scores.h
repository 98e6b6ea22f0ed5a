#pragma once
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "evaluate/climate_scores.h"
#include "evaluate/climatology.h"
#include "evaluate/error_maps.h"
#include "evaluate/fourier.h"
#include "evaluate/region.h"
#include "evaluate/station_scores.h"
#include "evaluate/threshold_scores.h"
#include "predict/outside_range.h"
#include "samples/dataset.h"
#include "task/physical_states.h"
#include "task/score_sums.h"

namespace jigsaw::inline evaluate {

/// Of one variable in one region at one lead, in its units; NaN where nothing says.
struct ForecastScore {
  double rmse = 0, mae = 0, bias = 0;
  double acc = 0;  ///< anomaly correlation with the climatology
  double persistence_rmse = 0;
  double climatology_rmse = 0;
  double crps = 0, spread = 0;  ///< of several members
  double spread_skill = 0;      ///< as jigsaw::spread_skill()
  double crps_skill = 0;        ///< 1 − CRPS/(MAE of persistence), which is the CRPS of one forecast
  double acc_forecasts = 0;     ///< over how many forecasts acc is
  double scored = 0;            ///< of the region's area, where there is a truth that counts
  double forecast_mean = 0, truth_mean = 0;
};

/// Scores of single forecasts, at all leads. Of several together roots (of squares, and the spread) are those
/// of the mean of these squares, ratios those of the means, and all else is the mean of these.
struct StartScores {
  std::vector<Time> starts;
  std::size_t channels = 0, regions = 0;
  std::vector<ForecastScore> all;  ///< [leads, starts, channels, regions]

  const ForecastScore& at(int lead, std::size_t start, std::size_t channel, std::size_t region) const {
    const std::size_t row = (static_cast<std::size_t>(lead) * starts.size() + start) * channels + channel;
    return all[row * regions + region];
  }
};

/// Variance by zonal wave number.
struct Spectrum {
  std::vector<double> forecast, truth;
};

/// How well forecasts are, as WeatherBench 2 defines it (Rasp et al. 2024): spatial means weighted by the
/// area of cells; RMSE = √(mean over forecasts of the spatial mean of squares); MAE and bias the mean over
/// forecasts of the spatial means; ACC that of Σ w f'·o' / √(Σ w f'² · Σ w o'²), f' and o' differences from a
/// climatology. Means of forecast and truth are the mean over forecasts of their spatial means. Points whose
/// truth is missing do not count.
///
/// Of several members these are scores of their mean, and beside them stand the fair CRPS, the mean over
/// forecasts of its spatial means, and the spread, √(mean over forecasts of the spatial mean of the members'
/// variance, by M − 1), and the rank histogram: how often the truth lies above none, one, … all of the
/// members, the mean over forecasts of the share of the area, where equal members part it evenly. Spectra are
/// the mean of those of the members.
class ForecastScores {
 public:
  /// @param context      in which the predictions stand.
  /// @param piece        this rank's of [B, H, W, C]. @param weights  of each region: Region::point_weights()
  /// of its rows and columns.
  /// @param climatology  for this rank's piece; null for none: then there is no ACC.
  /// @param thresholds, climate  by which states are scored, too. @param map_leads  of which there are maps
  /// of errors, from 1 on. Of a climate and of maps the memory is taken here.
  ForecastScores(Context& context, const Dataset& data, std::vector<Region> regions, const Box& piece,
                 const std::vector<std::vector<double>>& weights, int leads, std::int64_t members,
                 const Climatology* climatology, Thresholds thresholds = {}, ClimateOptions climate = {},
                 const std::vector<int>& map_leads = {});

  /// From now on what is told of each batch once its last lead was added: on all ranks alike.
  void tell_starts(std::function<void(const StartScores& scores)> tell) { tell_ = std::move(tell); }
  /// From now on all batches are scored at these stations, too; they outlive this.
  void take_stations(StationScores& stations) { stations_ = &stations; }
  /// A batch at one lead, from 0 on. Collective over the mesh.
  /// @param batch  with targets, baseline, origin and times.
  void add(const Rank& rank, int lead, const ShardedTensor& prediction, const Batch& batch);
  /// The same of states in physical units.
  /// @param layout  of one field of each sample. @param members  f64, as jigsaw::member_of() takes them.
  void add_states(const Rank& rank, int lead, const Layout& layout, const Array& members, const Batch& batch);
  /// All that was added: equal on every rank. Collective over the mesh.
  void finish(const Rank& rank);

  const std::vector<Region>& regions() const { return regions_; }
  int leads() const { return leads_; }
  std::int64_t members() const { return members_; }
  ForecastScore score(int lead, std::size_t channel, std::size_t region) const;
  /// M + 1 shares, of 1 in all, of several members; else empty.
  std::vector<double> rank_histogram(int lead, std::size_t channel, std::size_t region) const;
  /// Empty on a grid that does not go around the globe.
  Spectrum spectrum(int lead, std::size_t channel) const;
  const ThresholdScores& thresholds() const { return thresholds_; }
  /// Null where no climate was asked for.
  const ClimateScores* climate() const { return climate_.get(); }
  /// Null where no maps of errors were asked for.
  const ErrorMaps* error_maps() const { return error_maps_.get(); }
  /// Where forecasts left what the model was trained on.
  const OutsideRange& outside() const { return outside_; }

 private:
  /// Bytes of a climatology that stay on a device; of a larger one what is needed goes up again.
  static constexpr std::int64_t kMostKept = std::int64_t{1} << 30;

  /// Over forecasts, of the spatial means.
  struct Mean {
    double sum = 0, count = 0;
    double value() const { return sum / count; }
  };
  struct Means {
    Mean squares, absolute, errors, persistence, persistence_absolute, climatology, correlation, crps,
        variance, scored, truth;
    static constexpr std::size_t kCount = 11;
    std::array<Mean*, kCount> each() {
      return {&squares, &absolute, &errors, &persistence, &persistence_absolute, &climatology, &correlation,
              &crps,    &variance, &scored, &truth};
    }
    void add(Means& others);
    /// Of one sample. @param whole  the weight of all points of the region.
    void add(const ScoreSums& sums, std::int64_t sample, std::int64_t region, std::int64_t channel,
             double whole);
  };
  struct Histogram {
    std::vector<double> shares;  ///< by rank; summed over forecasts
    double count = 0;
  };
  struct Power {
    std::vector<double> forecast, truth;
    double weight = 0;
  };
  void find_areas(const Rank& rank, const Layout& layout);
  std::size_t index(int lead, std::size_t channel, std::size_t region) const;
  const Array& climate_at(const Context& context, const DayAndHour& when);
  void add_climate(const Rank& rank, int lead, const Layout& layout, const Array& members, const Array& truth,
                   const Batch& batch);
  Array climate_of(const Rank& rank, const Box& box, int lead, const Batch& batch);
  void add_members(const Rank& rank, const Layout& layout, const Array& members, const ScoredStates& states,
                   std::vector<Means>& means) const;
  ForecastScore score_of(const Means& means) const;
  void keep_starts(int lead, const std::vector<Means>& of_samples, const Batch& batch);
  void add_ranks(const Rank& rank, int lead, const Layout& layout, const Array& members, const Array& truth);
  /// @param truth  its whole rows.
  void add_spectra(const Rank& rank, int lead, const Layout& layout, const Array& forecasts,
                   const std::vector<double>& truth);

  const Dataset& data_;
  std::vector<Region> regions_;
  Array weights_;             // f64 [regions, own points]
  std::vector<double> rows_;  // of the grid
  bool know_areas_ = false;
  std::vector<double> areas_;  // of the regions; none on a rank without samples
  int leads_;
  std::int64_t members_;
  const Climatology* climatology_;
  std::map<DayAndHour, Array> kept_;  // of the climatology, where the predictions stand
  std::int64_t kept_bytes_ = 0;
  PhysicalStates physical_;
  std::size_t channels_;
  ThresholdScores thresholds_;
  std::unique_ptr<ClimateScores> climate_;
  std::unique_ptr<ErrorMaps> error_maps_;
  OutsideRange outside_;
  std::vector<Means> means_;           // by lead, channel, region
  std::vector<Histogram> histograms_;  // by lead, channel, region
  std::vector<Power> power_;           // by lead, channel
  std::unique_ptr<Fourier> fourier_;
  StationScores* stations_ = nullptr;
  std::function<void(const StartScores& scores)> tell_;
  StartScores starts_;  // of the batch that is under way
};

}  // namespace jigsaw::inline evaluate
