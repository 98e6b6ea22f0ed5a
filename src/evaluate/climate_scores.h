#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "evaluate/map_file.h"
#include "evaluate/point_moments.h"
#include "times/time_axis.h"

namespace jigsaw::inline evaluate {

/// By which part of the year times are grouped.
enum class ClimateGroups : std::uint8_t { kNone, kAll, kSeason, kMonth };
/// "all", "season" or "month"; "": none. @throws ConfigError
ClimateGroups parse_climate_groups(const std::string& text);
/// "all"; of seasons "all", "DJF", "MAM", "JJA", "SON"; of months "all", "1", …, "12".
std::vector<std::string> names_of(ClimateGroups groups);
/// Those, by their places among the names, that a time of the calendar falls in.
std::vector<std::size_t> groups_at(ClimateGroups groups, Time time, Calendar calendar);

struct ClimateOptions {
  ClimateGroups groups = ClimateGroups::kNone;
  int spin_up = 0;  ///< leads 1 … of which nothing counts
};

/// Of one variable in one region and group, of maps over its points: f̄ and ō are means in time of forecast
/// and truth, s their standard deviations in time, ⟨⟩ the spatial mean by area. In the variable's units; NaN
/// where nothing says.
struct ClimateScore {
  double bias = 0;  ///< ⟨f̄ − ō⟩
  double rmse = 0;  ///< √⟨(f̄ − ō)²⟩, the time-mean RMSE of Watt-Meyer et al. (2023)
  double pattern_correlation = 0;            ///< of f̄ and ō over the points, by area
  double std_ratio = 0;                      ///< √(⟨s_f²⟩/⟨s_o²⟩)
  double std_rmse = 0;                       ///< √⟨(s_f − s_o)²⟩
  double forecast_mean = 0, truth_mean = 0;  ///< ⟨f̄⟩, ⟨ō⟩
};

/// The maps of a climate, in their order.
enum class ClimateMap : std::uint8_t { kMean, kTruthMean, kBias, kDeviation, kTruthDeviation, kCount };
constexpr int kClimateMaps = 6;

/// The climate of forecasts beside that of their truth: at each point number, mean and variance over all
/// forecasts and all leads behind the spin-up, by groups of the times that they are of. Points without a
/// truth do not count. Of several members mean and variance are over all of them, each weighing 1/M.
/// Variances are those of a population (divided by the number).
///
/// A rank holds PointMoments of its piece.
class ClimateScores {
 public:
  /// Takes the memory. @param piece  this rank's of [B, H, W, C], of which rows, columns and channels count.
  /// @param channels  of the whole field. @param weights  of each region, of the piece's points.
  ClimateScores(Context& context, ClimateOptions options, Calendar calendar, const Box& piece,
                std::size_t channels, std::vector<std::vector<double>> weights);

  /// A batch at one lead, from 0 on.
  /// @param layout   [B, H, W, C] of the truth, f64, NaN where there is none.
  /// @param members  f64 [b·members, h, w, c]: all of the first sample, then of the second.
  /// @param times    that the batch's samples are of, those of other ranks, too.
  void add(const Rank& rank, int lead, const Layout& layout, const Array& members, const Array& truth,
           std::span<const Time> times);
  /// All that was added: equal on every rank. Collective over the mesh.
  void finish(const Rank& rank);

  const ClimateOptions& options() const { return options_; }
  std::vector<std::string> groups() const { return names_of(options_.groups); }
  ClimateScore score(std::size_t channel, std::size_t region, std::size_t group) const;

  /// Those of the groups, when finish() was called.
  const PointMoments& moments() const { return moments_; }
  /// What this rank holds of one channel's maps, [maps, rows, columns] of its box of the layout; NaN where
  /// nothing counts, but for the number.
  static std::vector<float> maps(const TimeMoments& moments, const Box& box, std::int64_t channel);

 private:
  struct Point;
  struct Sums {
    double weight = 0, difference = 0, squares = 0, forecast = 0, truth = 0;
    double forecast_variance = 0, truth_variance = 0, deviations = 0;
    double forecast_pattern = 0, truth_pattern = 0, product = 0;  ///< about the spatial means
  };
  std::size_t index(std::size_t group, std::size_t region, std::size_t channel) const {
    return (group * weights_.size() + region) * channels_ + channel;
  }
  template <typename F>
  void for_each_point(const Rank& rank, const F& use) const;
  void sum(const Rank& rank, const std::vector<double Sums::*>& kinds);

  ClimateOptions options_;
  Calendar calendar_;
  std::size_t channels_;
  std::vector<std::vector<double>> weights_;  // of regions
  PointMoments moments_;
  std::vector<Sums> sums_;  // by group, region, channel
};

}  // namespace jigsaw::inline evaluate
