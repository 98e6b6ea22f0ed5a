#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "predict/climatology.h"
#include "predict/fourier.h"
#include "predict/physical.h"
#include "predict/region.h"
#include "samples/dataset.h"

namespace jigsaw::inline predict {

/// Of one variable in one region at one lead, in its units; NaN where nothing says.
struct ForecastScore {
  double rmse = 0, mae = 0, bias = 0;
  double acc = 0;  ///< anomaly correlation with the climatology
  double persistence_rmse = 0;
};

/// Variance by zonal wave number.
struct Spectrum {
  std::vector<double> forecast, truth;
};

/// How well forecasts are, as WeatherBench 2 defines it (Rasp et al. 2024): spatial means weighted by the
/// area of cells; RMSE = √(mean over forecasts of the spatial mean of squares); MAE and bias the mean over
/// forecasts of the spatial means; ACC that of Σ w f'·o' / √(Σ w f'² · Σ w o'²), f' and o' differences from a
/// climatology. Points whose truth is missing do not count.
class ForecastScores {
 public:
  /// @param weights      of each region: Region::point_weights() of the rows and columns of this rank's
  /// piece.
  /// @param climatology  for this rank's piece; null for none: then there is no ACC.
  ForecastScores(const Dataset& data, std::vector<Region> regions, std::vector<std::vector<double>> weights,
                 int leads, const Climatology* climatology);

  /// A batch at one lead, from 0 on. Collective over the mesh.
  /// @param batch  with targets, baseline, origin and times.
  void add(const Rank& rank, int lead, const ShardedTensor& prediction, const Batch& batch);
  /// All that was added: equal on every rank. Collective over the mesh.
  void finish(const Rank& rank);

  const std::vector<Region>& regions() const { return regions_; }
  int leads() const { return leads_; }
  ForecastScore score(int lead, std::size_t channel, std::size_t region) const;
  /// Empty on a grid that does not go around the globe.
  Spectrum spectrum(int lead, std::size_t channel) const;

 private:
  /// Sums over the points of one region, sample and channel.
  enum Sum : std::uint8_t {
    kWeight,
    kSquares,
    kAbsolute,
    kErrors,
    kPersistence,
    kPersistenceWeight,
    kProduct,
    kForecast,
    kTruth,
    kSums
  };
  /// Over forecasts, of the spatial means.
  struct Mean {
    double sum = 0, count = 0;
    double value() const { return sum / count; }
  };
  struct Means {
    Mean squares, absolute, errors, persistence, correlation;
    static constexpr std::size_t kCount = 5;
    std::array<Mean*, kCount> each() { return {&squares, &absolute, &errors, &persistence, &correlation}; }
  };
  struct Power {
    std::vector<double> forecast, truth;
    double weight = 0;
  };
  struct States {
    std::vector<double> forecast, truth, persistence;
  };

  std::size_t index(int lead, std::size_t channel, std::size_t region) const;
  std::vector<double> sums_of(const Box& box, const States& states, int lead, const Batch& batch) const;
  static void add_point(double* sums, double weight, const States& states, std::size_t i, double climate);
  static void add_means(const double* sums, Means& means);
  void add_spectra(const Rank& rank, int lead, const Layout& layout, const States& states);

  const Dataset& data_;
  std::vector<Region> regions_;
  std::vector<std::vector<double>> weights_;  // of each region and own point
  std::vector<double> rows_;                  // of the grid
  int leads_;
  const Climatology* climatology_;
  PhysicalStates physical_;
  std::size_t channels_;
  std::vector<Means> means_;  // by lead, channel, region
  std::vector<Power> power_;  // by lead, channel
  std::unique_ptr<Fourier> fourier_;
};

}  // namespace jigsaw::inline predict
