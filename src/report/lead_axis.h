#pragma once
#include <string>
#include <vector>

#include "config/json.h"

namespace jigsaw::inline report {

/// What the leads of a run, or of scores, count: hours, of which a month has 720 where states are of months,
/// or steps of a sequence.
enum class LeadCount { kHours, kMonths, kSteps };

/// Of a run's configuration, or of what is left of it.
LeadCount lead_count_of(const Json& config);
/// Of evaluate's scores: "lead_months" stands where they are of months.
LeadCount lead_count_of_scores(const Json& scores);

/// Leads as figures say them: in months or steps where they are such, in days where all are whole ones, else
/// in hours.
class LeadAxis {
 public:
  /// @param leads  as files have them, see LeadCount.
  LeadAxis(LeadCount count, std::vector<double> leads);

  std::size_t size() const { return leads_.size(); }
  /// As they were given.
  const std::vector<double>& leads() const { return leads_; }
  /// The numbers of the first and the last of them, or of the only one.
  std::vector<std::size_t> ends() const;
  /// Where they stand on the axis, and where any lead does.
  std::vector<double> places() const;
  double place(double lead) const { return lead / unit_; }
  std::string label() const { return "lead, " + name_ + "s"; }
  /// "3 months", "2 days", "6 h", "90 min", "1 step".
  std::string text(double lead) const;

 private:
  std::vector<double> leads_;
  double unit_ = 1;
  std::string name_ = "hour";
};

}  // namespace jigsaw::inline report
