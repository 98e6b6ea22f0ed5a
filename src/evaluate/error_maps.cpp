#include "evaluate/error_maps.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/pointwise.h"
#include "predict/forecast_file.h"
#include "task/ensemble.h"

namespace jigsaw::inline evaluate {

ErrorMaps::ErrorMaps(Context& context, std::vector<int> leads, const Box& piece, std::int64_t members)
    : leads_(std::move(leads)), members_(members), moments_(context, leads_.size(), piece) {}

void ErrorMaps::add(const Rank& rank, int lead, const Layout& layout, const Array& members, const Array& mean,
                    const Array& truth) {
  moments_.begin(layout);
  const auto found = std::ranges::find(leads_, lead + 1);
  const Box box = rank.box(layout);
  if (found == leads_.end() || box.empty()) return;
  Context& context = rank.context;
  Array less_truth = jigsaw::add(context, truth, truth);
  scale(context, less_truth, -0.5);
  std::vector<Array> errors;
  for (std::int64_t j = 0; j < members_; ++j)
    errors.push_back(jigsaw::add(context, member_of(context, members, members_, j), less_truth));
  const Array of_members = join_members(context, errors),
              of_mean = members_ > 1 ? jigsaw::add(context, mean, less_truth) : of_members;
  for (std::int64_t sample = 0; sample < box.extent[0]; ++sample)
    moments_.add(rank, static_cast<std::size_t>(found - leads_.begin()), layout, of_members, of_mean, sample);
}

std::vector<float> ErrorMaps::maps_of(const TimeMoments& moments, const Box& box,
                                      std::int64_t channel) const {
  const auto m = static_cast<double>(members_);
  const auto value = [&](std::int64_t map, const HostMoments& of, std::size_t i) {
    switch (static_cast<ErrorMap>(map)) {
      case ErrorMap::kBias:
        return of.truth[i];
      case ErrorMap::kRmse:
        return std::sqrt(of.truth_variance(i) + of.truth[i] * of.truth[i]);
      case ErrorMap::kSpread:
        return std::sqrt(std::max(of.forecast_variance(i) - of.truth_variance(i), 0.0) * m / (m - 1));
      case ErrorMap::kCount:
        break;
    }
    return of.count[i];
  };
  return maps_of_moments(moments, box, channel, static_cast<std::int64_t>(ErrorMap::kCount), value);
}

MapContents error_maps(const std::vector<int>& leads, std::int64_t members, Time lead_time, bool of_months,
                       std::map<std::string, std::string> attributes) {
  MapContents contents;
  // In the order of ErrorMap.
  contents.maps = {{"_bias", "mean of forecasts less the truth", false, "mean"},
                   {"_rmse", "root mean square of forecasts less the truth", false, "root_mean_square"},
                   {"_count", "number of forecasts that count", false, "", true}};
  if (members > 1)
    contents.maps.push_back({"_spread", "root mean variance of the members of forecasts", false, ""});
  const LeadUnit unit = lead_unit(lead_time, of_months);
  contents.along = "lead_time";
  for (const int lead : leads) contents.places.push_back(static_cast<int>(lead * lead_time / unit.seconds));
  contents.describe = [unit](NetcdfOutput& file, int variable) { add_lead_attributes(file, variable, unit); };
  contents.attributes = std::move(attributes);
  return contents;
}

}  // namespace jigsaw::inline evaluate
