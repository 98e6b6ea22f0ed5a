#include "evaluate/station_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "config/json.h"
#include "task/ensemble.h"

namespace jigsaw::inline evaluate {

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// Those of rank 0, on all ranks. Collective.
std::vector<int> channels_together(const std::optional<StationObservations>& observations,
                                   Communicator& world) {
  const Json own = observations ? Json(observations->channels()) : Json::array();
  return Json::parse(world.broadcast_text(own.dump())).get<std::vector<int>>();
}

}  // namespace

std::vector<StationMeasure> station_measures(std::int64_t members) {
  std::vector<StationMeasure> measures = {
      {"rmse", "root mean square error against observations", &StationScore::rmse, true, "RMSE"},
      {"mae", "mean absolute error against observations", &StationScore::mae, true, "MAE"},
      {"bias", "mean error against observations", &StationScore::bias, true, "bias"},
      {"persistence_rmse", "root mean square error of the data at the start against observations",
       &StationScore::persistence_rmse, true, "persist."},
      {"truth_rmse", "root mean square error of the data at the same time against observations",
       &StationScore::truth_rmse, true, "data"}};
  if (members > 1) {
    measures.push_back({"crps", "fair continuous ranked probability score against observations",
                        &StationScore::crps, true, "CRPS"});
    measures.push_back({"spread", "ensemble spread at observations", &StationScore::spread, true, "spread"});
  }
  measures.push_back(
      {"pairs", "number of pairs of a forecast and an observation", &StationScore::pairs, false, "pairs"});
  return measures;
}

StationScores::StationScores(Dataset& data, std::optional<StationObservations> observations, PlaceValue how,
                             int leads, std::int64_t members, Communicator& world)
    : data_(data),
      observations_(std::move(observations)),
      channels_(channels_together(observations_, world)),
      places_(data.files(), observations_ ? observations_->places() : NamedPlaces(), how, "--stations",
              world),
      leads_(leads),
      members_(members) {
  if (!observations_) return;
  remarks_ = observations_->remarks();
  if (!places_.remark().empty()) remarks_.push_back(places_.remark());
  sums_.resize(static_cast<std::size_t>(leads) * channels_.size() * places_.places().size());
  extremes_.resize(channels_.size());
}

std::size_t StationScores::index(int lead, std::size_t channel, std::size_t place) const {
  return (static_cast<std::size_t>(lead) * channels_.size() + channel) * places_.places().size() + place;
}

/// At the places that lie on the grid.
std::vector<double> StationScores::observed(int channel, Time time) const {
  const std::vector<double> all = observations_->at(channel, time);
  std::vector<double> values;
  for (const std::size_t number : places_.numbers()) values.push_back(all[number]);
  return values;
}

void StationScores::add(const Rank& rank, int lead, const Layout& layout, const Array& members,
                        const Batch& batch) {
  Context& context = rank.context;
  const bool empty = rank.box(layout).empty();
  const auto at_places = [&](const Array& states, const Array& others) {
    return places_.values(rank, layout, empty ? Array() : where_both(context, states, others), channels_);
  };
  // As in files of forecasts, nothing is there where the start is missing.
  std::vector<Values> forecasts;
  for (std::int64_t j = 0; j < members_; ++j)
    forecasts.push_back(at_places(empty ? Array() : member_of(context, members, members_, j), batch.origin));
  const Values truth = at_places(batch.state(lead), batch.origin),
               persistence = at_places(batch.origin, batch.baseline);
  if (!observations_) return;
  const std::size_t places = places_.places().size();
  std::size_t at = 0;
  for (const Time start : batch.times) {
    for (std::size_t channel = 0; channel < channels_.size(); ++channel) {
      const std::vector<double> observations =
          observed(channels_[channel], start + (lead + 1) * data_.options().lead_time);
      for (std::size_t place = 0; place < places; ++place, ++at) {
        const double there = observations[place];
        if (!std::isfinite(there)) continue;
        Sums& sums = sums_[index(lead, channel, place)];
        const double pairs = sums.pairs;
        add_pair(sums, forecasts, at, there);
        if (sums.pairs == pairs) continue;
        const auto add_square = [&](double value, double& count, double& sum) {
          if (!std::isfinite(value)) return;
          ++count;
          sum += (value - there) * (value - there);
        };
        add_square(persistence[at], sums.persistence_pairs, sums.persistence);
        add_square(truth[at], sums.truth_pairs, sums.truth);
        note_extremes(channel, place, start + (lead + 1) * data_.options().lead_time, there, truth[at]);
      }
    }
  }
}

void StationScores::note_extremes(std::size_t channel, std::size_t place, Time time, double observed,
                                  double of_data) {
  if (!std::isfinite(of_data)) return;
  Extremes& of = extremes_[channel];
  of.least_of_data = std::min(of.least_of_data, of_data);
  of.most_of_data = std::max(of.most_of_data, of_data);
  if (const double apart = std::abs(observed - of_data); apart > of.furthest) {
    of.furthest = apart;
    of.observed = observed;
    of.place = place;
    of.time = time;
  }
}

/// Unless a member has no value there.
void StationScores::add_pair(Sums& sums, const std::vector<Values>& members, std::size_t at,
                             double observed) const {
  const auto m = static_cast<double>(members.size());
  double mean = 0, distance = 0;
  for (const Values& member : members) {
    if (!std::isfinite(member[at])) return;
    mean += member[at] / m;
    distance += std::abs(member[at] - observed) / m;
  }
  const double error = mean - observed;
  ++sums.pairs;
  sums.errors += error;
  sums.absolute += std::abs(error);
  sums.squares += error * error;
  if (members.size() == 1) return;
  double between = 0, variance = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    variance += (members[i][at] - mean) * (members[i][at] - mean) / (m - 1);
    for (std::size_t j = 0; j < i; ++j) between += std::abs(members[i][at] - members[j][at]);
  }
  sums.crps += distance - between / (m * (m - 1));
  sums.variance += variance;
}

void StationScores::Sums::add(const Sums& other) {
  pairs += other.pairs;
  errors += other.errors;
  absolute += other.absolute;
  squares += other.squares;
  persistence_pairs += other.persistence_pairs;
  persistence += other.persistence;
  truth_pairs += other.truth_pairs;
  truth += other.truth;
  crps += other.crps;
  variance += other.variance;
}

StationScore StationScores::score_of(const Sums& sums) const {
  StationScore score{kNone, kNone, kNone, kNone, kNone, kNone, kNone, sums.pairs};
  if (sums.pairs == 0) return score;
  score.rmse = std::sqrt(sums.squares / sums.pairs);
  score.mae = sums.absolute / sums.pairs;
  score.bias = sums.errors / sums.pairs;
  score.persistence_rmse = std::sqrt(sums.persistence / sums.persistence_pairs);
  score.truth_rmse = std::sqrt(sums.truth / sums.truth_pairs);
  if (members_ == 1) return score;
  score.crps = sums.crps / sums.pairs;
  score.spread = std::sqrt(sums.variance / sums.pairs);
  return score;
}

StationScore StationScores::at_place(int lead, std::size_t channel, std::size_t place) const {
  return score_of(sums_[index(lead, channel, place)]);
}

StationScore StationScores::in_region(int lead, std::size_t channel, const Region& region) const {
  Sums all;
  for (std::size_t place = 0; place < places().size(); ++place)
    if (region.holds(places().latitudes[place], places().longitudes[place]))
      all.add(sums_[index(lead, channel, place)]);
  return score_of(all);
}

bool StationScores::has_pairs(std::size_t channel, std::size_t place) const {
  for (int lead = 0; lead < leads_; ++lead)
    if (sums_[index(lead, channel, place)].pairs > 0) return true;
  return false;
}

std::int64_t StationScores::stations(std::size_t channel) const {
  std::int64_t count = 0;
  for (std::size_t place = 0; place < places().size(); ++place) count += has_pairs(channel, place) ? 1 : 0;
  return count;
}

/// Of an observation that is further from the data than these reach.
std::string StationScores::extreme_remark(std::size_t channel) const {
  const Extremes& of = extremes_[channel];
  const double range = of.most_of_data - of.least_of_data;
  if (!(range > 0) || of.furthest <= range) return "";
  return concat("an observation of ",
                data_.channels().targets[static_cast<std::size_t>(channels_[channel])].name, " is ",
                of.observed, " (", printable(places().names[of.place]), ", ", data_.files().text_of(of.time),
                "), where the data at the stations lie between ", of.least_of_data, " and ", of.most_of_data,
                "; it counts, unless the files declare it as missing");
}

std::vector<std::string> StationScores::gaps() const {
  std::vector<std::string> gaps;
  for (std::size_t channel = 0; observations_ && channel < channels_.size(); ++channel) {
    const std::string& name = data_.channels().targets[static_cast<std::size_t>(channels_[channel])].name;
    std::int64_t observing = 0, alone = 0;
    for (std::size_t place = 0; place < places().size(); ++place) {
      if (!observations_->observes(channels_[channel], places_.numbers()[place])) continue;
      ++observing;
      alone += has_pairs(channel, place) ? 0 : 1;
    }
    if (alone > 0) {
      gaps.push_back(concat("of the ", counted(observing, "station"), " that observed ", name, ", ", alone,
                            " did so at none of the times of the forecasts, and ",
                            alone == 1 ? "has" : "have", " no score",
                            observations_->tolerance() == 0 ? " (--time-tolerance takes near ones)" : ""));
    } else if (observing == 0) {
      gaps.push_back(
          concat(name, " of --stations was observed at none of the times and places of the forecasts"));
    }
    if (std::string remark = extreme_remark(channel); !remark.empty()) gaps.push_back(std::move(remark));
  }
  return gaps;
}

}  // namespace jigsaw::inline evaluate
