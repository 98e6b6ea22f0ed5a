#pragma once
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "evaluate/region.h"
#include "evaluate/station_observations.h"
#include "predict/grid_places.h"
#include "samples/batch.h"

namespace jigsaw::inline evaluate {

/// Of one variable at one lead against what was observed, in its units; NaN where nothing says. Each pair of
/// a forecast and an observation counts alike.
struct StationScore {
  double rmse = 0, mae = 0, bias = 0;
  double persistence_rmse = 0;  ///< of the data's state at the start
  double truth_rmse = 0;        ///< of the data at the time of the observation
  double crps = 0, spread = 0;  ///< of several members: fair CRPS, √(mean variance by M − 1)
  double pairs = 0;
};

/// A score as files and tables have it.
struct StationMeasure {
  const char *name, *long_name;
  double StationScore::*value;
  bool has_units;
  const char* title;
};
/// Those of forecasts of so many members.
std::vector<StationMeasure> station_measures(std::int64_t members);

/// Forecasts at stations against observations. States are brought to the places of the stations (GridPlaces);
/// what was observed is on rank 0 alone, which forms the scores.
class StationScores {
 public:
  /// Collective: what throws on one rank throws on all.
  /// @param observations  on rank 0; else nothing.
  StationScores(Dataset& data, std::optional<StationObservations> observations, PlaceValue how, int leads,
                std::int64_t members, Communicator& world);

  /// A batch at one lead, from 0 on. Collective over the mesh.
  /// @param layout  of one field of each sample. @param members  f64, as jigsaw::member_of() takes them.
  void add(const Rank& rank, int lead, const Layout& layout, const Array& members, const Batch& batch);

  // On rank 0.
  /// The target channels that were observed.
  const std::vector<int>& channels() const { return channels_; }
  /// That lie on the grid.
  const NamedPlaces& places() const { return places_.places(); }
  int leads() const { return leads_; }
  std::int64_t members() const { return members_; }
  /// What is to be said before and after the forecasts.
  const std::vector<std::string>& remarks() const { return remarks_; }
  std::vector<std::string> gaps() const;
  /// At how many of the places a forecast met an observation of a channel.
  std::int64_t stations(std::size_t channel) const;
  /// @param channel  number among channels(). @param place  among places().
  StationScore at_place(int lead, std::size_t channel, std::size_t place) const;
  /// Of all places in a region together.
  StationScore in_region(int lead, std::size_t channel, const Region& region) const;

 private:
  struct Sums {
    double pairs = 0, errors = 0, absolute = 0, squares = 0;
    double persistence_pairs = 0, persistence = 0, truth_pairs = 0, truth = 0;
    double crps = 0, variance = 0;
    void add(const Sums& other);
  };
  /// Of observations that were paired the most extreme ones, and of the data at these places.
  struct Extremes {
    double least_of_data = std::numeric_limits<double>::infinity(), most_of_data = -least_of_data;
    double furthest = 0, observed = 0;  ///< from the data at the same place and time
    std::size_t place = 0;
    Time time = 0;
  };
  /// Values at places, [samples, channels, places].
  using Values = std::vector<double>;

  std::vector<double> observed(int channel, Time time) const;
  void add_pair(Sums& sums, const std::vector<Values>& members, std::size_t at, double observed) const;
  void note_extremes(std::size_t channel, std::size_t place, Time time, double observed, double of_data);
  bool has_pairs(std::size_t channel, std::size_t place) const;
  std::string extreme_remark(std::size_t channel) const;
  StationScore score_of(const Sums& sums) const;
  std::size_t index(int lead, std::size_t channel, std::size_t place) const;

  const Dataset& data_;
  std::optional<StationObservations> observations_;
  std::vector<int> channels_;
  GridPlaces places_;
  int leads_;
  std::int64_t members_;
  std::vector<Sums> sums_;          // by lead, channel, place; on rank 0
  std::vector<Extremes> extremes_;  // by channel
  std::vector<std::string> remarks_;
};

}  // namespace jigsaw::inline evaluate
