#include "evaluate/start_score_file.h"

#include <limits>
#include <span>

#include "base/text.h"
#include "evaluate/score_measures.h"

namespace jigsaw::inline evaluate {

StartScoreFile::StartScoreFile(const StartScoreContents& contents, const std::string& path)
    : contents_(contents), file_(path, NetcdfOutput::Format::kNetcdf4) {
  define_time();
  axes_ = ScoreAxes(file_, contents_.leads, contents_.regions);
  for (std::size_t channel = 0; channel < contents_.variables.size(); ++channel) {
    const std::string& name = contents_.variables[channel];
    const std::string& units = contents_.units[channel];
    for (const Measure& measure : measures_of(contents_.members)) {
      const int variable =
          file_.add_variable(file_.free_name(concat(name, "_", measure.name)).c_str(),
                             NetcdfOutput::Type::kDouble, {time_, axes_.region(), axes_.lead()});
      file_.add_text(variable, "long_name", concat(measure.long_name, " of ", name));
      if (!measure.has_units || !units.empty())
        file_.add_text(variable, "units", measure.has_units ? units : "1");
      file_.add_number(variable, "_FillValue", std::numeric_limits<double>::quiet_NaN());
      variables_.push_back(variable);
    }
  }
  file_.add_text(NetcdfOutput::kFile, "Conventions", "CF-1.10");
  file_.add_text(NetcdfOutput::kFile, "title", contents_.title);
  file_.add_text(NetcdfOutput::kFile, "source", contents_.source);
  file_.add_numbers(NetcdfOutput::kFile, "members", std::vector{static_cast<int>(contents_.members)});
  file_.end_definitions();
  axes_.write(file_);
}

void StartScoreFile::define_time() {
  time_ = file_.add_dimension("time", static_cast<std::size_t>(contents_.starts));
  time_variable_ = file_.add_variable("time", NetcdfOutput::Type::kDouble, {time_});
  const Calendar calendar = contents_.calendar;
  file_.add_text(time_variable_, "units",
                 calendar == Calendar::kNone ? "seconds" : "seconds since 1970-01-01 00:00:00");
  if (calendar != Calendar::kNone) {
    file_.add_text(time_variable_, "calendar",
                   calendar == Calendar::kStandard ? "proleptic_gregorian" : name(calendar));
  }
  file_.add_text(time_variable_, "standard_name", "forecast_reference_time");
  file_.add_text(time_variable_, "long_name", "start of the forecast");
  file_.add_text(time_variable_, "axis", "T");
}

void StartScoreFile::write(const StartScores& scores) {
  const auto starts = std::ssize(scores.starts);
  std::vector<double> times;
  for (const Time start : scores.starts) {
    times.push_back(
        static_cast<double>(contents_.leads.of_months ? middle_of_month(start, contents_.calendar) : start));
  }
  file_.write(time_variable_, {{written_}, {starts}}, times);
  const auto regions = std::ssize(contents_.regions);
  const std::span<const Measure> measures = measures_of(contents_.members);
  std::vector<double> values(static_cast<std::size_t>(starts * regions * contents_.leads.count));
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    auto to = values.begin();
    for (std::size_t start = 0; start < scores.starts.size(); ++start)
      for (std::size_t region = 0; region < scores.regions; ++region)
        for (int lead = 0; lead < contents_.leads.count; ++lead)
          *to++ = scores.at(lead, start, i / measures.size(), region).*measures[i % measures.size()].value;
    file_.write(variables_[i], {{written_, 0, 0}, {starts, regions, contents_.leads.count}}, values);
  }
  written_ += starts;
}

}  // namespace jigsaw::inline evaluate
