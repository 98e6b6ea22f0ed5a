#include "report/lead_axis.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "times/time_axis.h"

namespace jigsaw::inline report {

LeadCount lead_count_of(const Json& config) {
  const auto data = config.find("data");
  if (!config.is_object() || data == config.end() || !data->is_object()) return LeadCount::kHours;
  const auto text_of = [&](const char* key) {
    const Json value = data->value(key, Json());
    return value.is_string() ? value.get<std::string>() : "";
  };
  if (text_of("time_step") == "month") return LeadCount::kMonths;
  const Json dims = data->value("dims", Json());
  const std::string task = text_of("task");
  const bool of_sequence = (task.empty() || task == "forecast") && dims.is_array() && !dims.empty();
  return of_sequence ? LeadCount::kSteps : LeadCount::kHours;
}

LeadCount lead_count_of_scores(const Json& scores) {
  return scores.contains("lead_months") ? LeadCount::kMonths : LeadCount::kHours;
}

LeadAxis::LeadAxis(LeadCount count, std::vector<double> leads) : leads_(std::move(leads)) {
  const double day = in_hours(kDay);
  const auto of_days = [&](double lead) { return std::fmod(lead, day) == 0; };
  const auto ahead = [](double lead) { return lead > 0; };
  if (count == LeadCount::kSteps) {
    name_ = "step";
  } else if (count == LeadCount::kMonths) {
    name_ = "month", unit_ = in_hours(kMonth);
  } else if (std::ranges::all_of(leads_, of_days) && std::ranges::any_of(leads_, ahead)) {
    name_ = "day", unit_ = day;
  }
}

std::vector<std::size_t> LeadAxis::ends() const {
  if (leads_.size() < 2) return std::vector<std::size_t>(leads_.size(), 0);
  return {0, leads_.size() - 1};
}

std::vector<double> LeadAxis::places() const {
  std::vector<double> places;
  for (const double lead : leads_) places.push_back(place(lead));
  return places;
}

std::string LeadAxis::text(double lead) const {
  if (name_ == "hour") return duration_text(from_hours(lead));
  return counted(std::llround(place(lead)), name_);
}

}  // namespace jigsaw::inline report
