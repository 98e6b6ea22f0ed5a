#pragma once
#include <cstdint>
#include <vector>

#include "samples/dataset.h"
#include "task/configuration.h"
#include "task/score_sums.h"

namespace jigsaw::inline evaluate {

/// Thresholds by which forecasts are scored.
struct Thresholds {
  std::vector<std::vector<double>> of;    ///< each target channel, in its unit, ascending; may be empty
  std::vector<std::int64_t> scales = {};  ///< points along an edge of neighbourhoods, odd
  bool around = false;                    ///< whether columns go around the globe

  /// The most of any channel.
  std::size_t most() const;
};
/// Those of validation.thresholds and validation.fss_scales.
Thresholds thresholds_of(const Dataset& data, const ValidationOptions& options);
/// From where on a value reaches the threshold: less 2⁻²² of it, for files hold numbers of float32, and the
/// one nearest to 0.7 lies below it.
double reached_from(double threshold);

/// Of one threshold of one variable in one region at one lead, where an event is a value that reaches it. NaN
/// where nothing says. Definitions are those of Wilks (Statistical Methods in the Atmospheric Sciences), of
/// shares of the area that add up to 1 over all forecasts together: a hits, b false alarms, c misses, d
/// correct negatives.
struct ThresholdScore {
  double hits = 0, misses = 0, false_alarms = 0, correct_negatives = 0;
  double base_rate = 0;       ///< a + c: how often it happens
  double pod = 0;             ///< probability of detection, a/(a + c)
  double far = 0;             ///< false alarm ratio, b/(a + b)
  double csi = 0;             ///< critical success index, a/(a + b + c)
  double frequency_bias = 0;  ///< (a + b)/(a + c)
  double hss = 0;             ///< Heidke skill score, 2(ad − bc)/((a + c)(c + d) + (a + b)(b + d))
  double brier = 0;           ///< of several members the mean of (share of them − event)²
  double brier_skill = 0;     ///< 1 − brier/(s(1 − s)), s the base rate
  double reliability =
      0;  ///< Murphy's parts of the Brier score: brier is reliability − resolution + s(1 − s)
  double resolution = 0;
  double roc_area = 0;      ///< under the hit rate over the false alarm rate of "so many members at least"
  std::vector<double> fss;  ///< by scale
  /// Of several members, by how many of them reach the threshold: the share of forecasts, and how often the
  /// event came then.
  std::vector<double> forecast_share, observed_frequency;
};

/// Contingency tables of thresholds, summed over forecasts, points weighted by area; those without a truth do
/// not count. Of several members tables and FSS are of their mean.
///
/// The fractions skill score (Roberts and Lean 2008, doi:10.1175/2007MWR2123.1) is 1 − Σ w (p − q)²/Σ w (p² +
/// q²) over points and forecasts, p and q the shares of events of forecast and truth among the n × n points
/// of the square around a point. What lies beyond the grid, or has no truth, is no event of either, and the
/// share is still one of n² (as in pysteps); columns of a grid around the globe go on at the other end. What
/// lies outside of a region counts in squares, not as a point.
class ThresholdScores {
 public:
  ThresholdScores(Thresholds thresholds, int leads, std::size_t regions, std::int64_t members);

  bool any() const { return thresholds_.most() > 0; }
  /// A batch at one lead. Collective over the mesh.
  /// @param layout   [B, H, W, C] of the truth, f64, NaN where there is none, and of the members' mean.
  /// @param members  f64 [b·members, h, w, c]: all of the first sample, then of the second.
  /// @param weights  f64 [regions, points] of the piece, the same at every call.
  void add(const Rank& rank, int lead, const Layout& layout, const Array& members, const Array& mean,
           const Array& truth, const Array& weights);
  /// All that was added: equal on every rank. Collective over the mesh.
  void finish(const Rank& rank);

  const std::vector<double>& of(std::size_t channel) const { return thresholds_.of[channel]; }
  const std::vector<std::int64_t>& scales() const { return thresholds_.scales; }
  std::int64_t members() const { return members_; }
  /// @param threshold  its place in of(channel).
  ThresholdScore score(int lead, std::size_t channel, std::size_t threshold, std::size_t region) const;

 private:
  /// Of one lead, channel, threshold and region.
  struct Table {
    std::vector<double> mean, members;  ///< sums of weights by kind, as exceedance_sums() has them
    std::vector<double> apart, largest;  ///< by scale: Σ w (p − q)², and Σ w (p² + q²), the most it can be
  };
  /// A field without cuts on this rank.
  struct Plane {
    std::int64_t rows = 0, columns = 0;
    std::vector<double> forecast, truth;
  };
  std::size_t index(int lead, std::size_t channel, std::size_t threshold, std::size_t region) const;
  void add_kinds(const Rank& rank, int lead, const RegionSums& sums, std::vector<double> Table::*to);
  void add_fractions(const Rank& rank, int lead, const Layout& layout, const Array& mean, const Array& truth);
  void add_plane(int lead, std::size_t channel, const Plane& plane);
  static void add_probabilities(const Table& of, ThresholdScore& score);

  Thresholds thresholds_;
  std::size_t regions_;
  std::int64_t members_;
  std::vector<std::vector<double>> by_threshold_;  // of each one those of all channels; NaN: none
  std::vector<Table> tables_;                      // by lead, channel, threshold, region
  std::vector<double> weights_;                    // [regions, all points], for fractions
};

}  // namespace jigsaw::inline evaluate
