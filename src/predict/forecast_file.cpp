#include "predict/forecast_file.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline predict {

namespace {

/// Starts and leads of a chunk of times at most.
constexpr std::size_t kChunkStarts = 64, kChunkLeads = 256;

}  // namespace

std::optional<Period> limits_of_all(FileSet& files, const std::vector<Field>& fields) {
  std::optional<Period> limits;
  for (const Field& field : fields) {
    if (files.times(field).empty()) continue;  // that the files lack
    const std::optional<Period> own = files.time_limits(field);
    if (!own || (limits && *limits != *own)) return std::nullopt;
    limits = own;
  }
  return limits;
}

LeadUnit lead_unit(Time lead_time, bool of_months) {
  if (of_months) return {"months", kMonth};
  if (lead_time % kHour == 0) return {"hours", kHour};
  return lead_time % kMinute == 0 ? LeadUnit{"minutes", kMinute} : LeadUnit{"seconds", 1};
}

void add_lead_attributes(NetcdfOutput& file, int variable, const LeadUnit& unit) {
  if (unit.seconds == kMonth) {  // of which CF has no unit: they differ in length
    file.add_text(variable, "units", "1");
    file.add_text(variable, "long_name", "months since the start of the forecast");
    return;
  }
  file.add_text(variable, "units", unit.name);
  file.add_text(variable, "standard_name", "forecast_period");
  file.add_text(variable, "long_name", "time since the start of the forecast");
}

ForecastFile::ForecastFile(FileSet& files, const ForecastContents& contents, OutputFile& output,
                           std::int64_t overlap)
    : output_(output),
      file_(output.temporary(), NetcdfOutput::Format::kNetcdf4),
      fields_(file_),
      series_(contents.time_series) {
  require(!series_ || contents.starts.size() == 1, "a time series is of one forecast");
  months_ = files.of_months();
  times_ = times_of(contents, files.file_calendar(), limits_of_all(files, contents.fields));
  if (series_)
    define_series(files.file_calendar());
  else
    define_times(contents, files.file_calendar());
  if (contents.members > 1) define_members(contents.members);
  if (files.member()) define_member(*files.member());
  define_fields(files, contents, overlap);
  file_.add_text(NetcdfOutput::kFile, "Conventions", "CF-1.10");
  for (const auto& [name, text] : contents.attributes)
    file_.add_text(NetcdfOutput::kFile, name.c_str(), text);
  file_.end_definitions();
  write_members(contents, files);
  fields_.write_coordinates(files);
}

/// A month is written as its middle. @param limits  from where to where a state holds, from its time
ForecastFile::Times ForecastFile::times_of(const ForecastContents& contents, Calendar calendar,
                                           const std::optional<Period>& limits) const {
  const bool hours = contents.lead_time % kHour == 0 && contents.begun % kHour == 0 &&
                     std::ranges::all_of(contents.starts, [](Time start) { return start % kHour == 0; });
  const double unit = hours ? static_cast<double>(kHour) : 1.0;
  const auto written = [&](Time time) { return static_cast<double>(time) / unit; };
  const auto middle = [&](Time time) { return written(months_ ? middle_of_month(time, calendar) : time); };
  const WrittenLeads& leads = contents.leads;
  const Time step = contents.lead_time;
  Times times{hours ? "hours" : "seconds", {}, {}, {}, {}, {}, {}, {}};
  if (calendar != Calendar::kNone) times.units += " since 1970-01-01 00:00:00";
  for (const Time start : contents.starts) {
    times.starts.push_back(middle(start - contents.begun));
    for (int lead = 0; lead < leads.count(); ++lead) {
      times.valid.push_back(middle(start + leads.step_of(lead) * step));
      if (!leads.means && !limits) continue;
      const Period span = span_of(contents, limits, lead);
      Period bounds{start + span.first, start + span.last};
      if (months_) bounds = {begin_of_month(bounds.first, calendar), begin_of_month(bounds.last, calendar)};
      times.bounds.push_back(written(bounds.first));
      times.bounds.push_back(written(bounds.last));
      if (series_ && leads.means) times.valid.back() = (written(bounds.first) + written(bounds.last)) / 2;
    }
  }
  add_leads(contents, limits, times);
  return times;
}

/// From where to where a lead is, as from the time of its start on: of months from the beginning of the first
/// to that of the month behind the last, however many a step has.
Period ForecastFile::span_of(const ForecastContents& contents, const std::optional<Period>& limits,
                             int lead) const {
  const WrittenLeads& leads = contents.leads;
  const Time step = contents.lead_time;
  const Period steps{leads.first_of(lead) * step, leads.step_of(lead) * step};
  if (months_) return {steps.first, steps.last + kMonth};
  if (!leads.unit.empty()) return leads.periods[static_cast<std::size_t>(lead)].span;
  const Period holds = limits.value_or(Period{-step, 0});
  return {steps.first + holds.first, steps.last + holds.last};
}

/// In a unit of which steps, and the ends of means, are whole numbers; but a month ends half a one from its
/// middle, from which to which months count.
void ForecastFile::add_leads(const ForecastContents& contents, const std::optional<Period>& limits,
                             Times& times) const {
  const WrittenLeads& leads = contents.leads;
  const Time step = contents.lead_time;
  std::vector<Period> spans;
  for (int lead = 0; lead < leads.count() && leads.means; ++lead)
    spans.push_back(span_of(contents, limits, lead));
  Time common = std::gcd(step, contents.begun);
  for (const Period& span : spans) common = std::gcd(common, std::gcd(span.first, span.last));
  times.of_leads = lead_unit(common, months_);
  const auto in_unit = [&](Time time) { return static_cast<int>(time / times.of_leads.seconds); };
  for (int lead = 0; lead < leads.count(); ++lead)
    times.leads.push_back(in_unit(contents.begun + leads.step_of(lead) * step));
  for (const Period& span : spans) {
    for (const Time end : {span.first, span.last})
      times.lead_bounds.push_back(in_unit(end) - (months_ ? 0.5 : 0.0));
  }
  if (!leads.means) return;
  std::string_view name = times.of_leads.name;  // of several
  if (in_unit(step) == 1) name.remove_suffix(1);
  times.cell_methods =
      concat(series_ ? "time" : "lead_time", ": mean (interval: ", in_unit(step), " ", name, ")");
}

int ForecastFile::add_time(const char* name, const std::vector<int>& dimensions, const char* standard_name,
                           const char* long_name, Calendar calendar) {
  const int variable = file_.add_variable(name, NetcdfOutput::Type::kDouble, dimensions);
  file_.add_text(variable, "units", times_.units);
  if (calendar != Calendar::kNone)
    file_.add_text(variable, "calendar",
                   calendar == Calendar::kStandard ? "proleptic_gregorian" : jigsaw::name(calendar));
  file_.add_text(variable, "standard_name", standard_name);
  file_.add_text(variable, "long_name", long_name);
  return variable;
}

void ForecastFile::define_times(const ForecastContents& contents, Calendar calendar) {
  time_ = file_.add_growing_dimension("time");
  lead_ = file_.add_growing_dimension("lead_time");
  const std::size_t starts = std::clamp<std::size_t>(times_.starts.size(), 1, kChunkStarts),
                    leads = std::clamp<std::size_t>(times_.leads.size(), 1, kChunkLeads);
  start_variable_ = add_time("time", {time_}, "forecast_reference_time", "start of the forecast", calendar);
  file_.add_chunks(start_variable_, {starts}, 0);
  file_.add_text(start_variable_, "axis", "T");
  valid_variable_ = add_time("valid_time", {time_, lead_}, "time", "time that the forecast is of", calendar);
  file_.add_chunks(valid_variable_, {starts, leads}, 0);
  auxiliary_.emplace_back("valid_time");
  lead_variable_ = file_.add_variable("lead_time", NetcdfOutput::Type::kInt, {lead_});
  file_.add_chunks(lead_variable_, {leads}, 0);
  add_lead_attributes(file_, lead_variable_, times_.of_leads);
  if (!times_.bounds.empty()) define_bounds(contents.leads.means, starts, leads);
}

void ForecastFile::define_series(Calendar calendar) {
  time_ = file_.add_growing_dimension("time");
  const std::size_t leads = std::clamp<std::size_t>(times_.leads.size(), 1, kChunkLeads);
  valid_variable_ = add_time("time", {time_}, "time", "time that the forecast is of", calendar);
  file_.add_chunks(valid_variable_, {leads}, 0);
  file_.add_text(valid_variable_, "axis", "T");
  start_variable_ =
      add_time("forecast_reference_time", {}, "forecast_reference_time", "start of the forecast", calendar);
  auxiliary_.emplace_back("forecast_reference_time");
  if (times_.bounds.empty()) return;
  valid_bounds_ =
      file_.add_variable("time_bnds", NetcdfOutput::Type::kDouble, {time_, fields_.bounds_dimension()});
  file_.add_chunks(valid_bounds_, {leads, 2}, 0);
  file_.add_text(valid_variable_, "bounds", "time_bnds");
}

/// From where to where means are, or states that hold for a while. @param starts, leads  of a chunk
void ForecastFile::define_bounds(bool means, std::size_t starts, std::size_t leads) {
  const int bounds = fields_.bounds_dimension();
  if (means) {
    lead_bounds_ = file_.add_variable("lead_time_bnds", NetcdfOutput::Type::kDouble, {lead_, bounds});
    file_.add_chunks(lead_bounds_, {leads, 2}, 0);
    file_.add_text(lead_variable_, "bounds", "lead_time_bnds");
  }
  valid_bounds_ = file_.add_variable("valid_time_bnds", NetcdfOutput::Type::kDouble, {time_, lead_, bounds});
  file_.add_chunks(valid_bounds_, {starts, leads, 2}, 0);
  file_.add_text(valid_variable_, "bounds", "valid_time_bnds");
}

/// Those that the model makes.
void ForecastFile::define_members(std::int64_t members) {
  members_ = file_.add_dimension("number", static_cast<std::size_t>(members));
  members_variable_ = file_.add_variable("number", NetcdfOutput::Type::kInt, {members_});
  file_.add_text(members_variable_, "standard_name", "realization");
  file_.add_text(members_variable_, "long_name", "member of the model's ensemble");
  file_.add_text(members_variable_, "units", "1");
}

/// The member of the ensemble that all forecasts are of, a scalar coordinate.
void ForecastFile::define_member(const CoordinateDescription& member) {
  const std::string name = file_.free_name(member.name);
  const bool whole = std::trunc(member.values[0]) == member.values[0] && std::abs(member.values[0]) < 1e9;
  member_variable_ =
      file_.add_variable(name.c_str(), whole ? NetcdfOutput::Type::kInt : NetcdfOutput::Type::kDouble, {});
  std::map<std::string, std::string> texts = member.texts;
  texts.insert({{"standard_name", "realization"}, {"long_name", "member of the ensemble"}});
  for (const auto& [attribute, text] : texts) file_.add_text(member_variable_, attribute.c_str(), text);
  auxiliary_.push_back(name);
}

void ForecastFile::define_fields(FileSet& files, const ForecastContents& contents, std::int64_t overlap) {
  if (contents.places != nullptr) {
    fields_.define_places(files, contents.fields, contents.split_levels, *contents.places);
  } else {
    fields_.define_grid(files, contents.fields, contents.split_levels);
  }
  for (std::size_t variable = 0; variable < fields_.variables(); ++variable) {
    const FieldDescription& field = fields_.description(variable);
    WrittenFields::Definition definition{fields_.name(variable),
                                         series_ ? std::vector{time_} : std::vector{time_, lead_},
                                         field.texts,
                                         field.numbers,
                                         auxiliary_,
                                         static_cast<std::int64_t>(fields_.levels(variable)) * overlap};
    if (members_ >= 0) definition.leading.push_back(members_);
    if (!times_.cell_methods.empty()) {
      std::string& methods = definition.texts["cell_methods"];
      methods += concat(methods.empty() ? "" : " ", times_.cell_methods);
    }
    variables_.push_back(fields_.define(variable, definition));
  }
}

void ForecastFile::write_members(const ForecastContents& contents, FileSet& files) {
  if (members_ >= 0) {
    std::vector<int> numbers(static_cast<std::size_t>(contents.members));
    std::iota(numbers.begin(), numbers.end(), 0);
    file_.write(members_variable_, numbers);
  }
  if (member_variable_ >= 0) file_.write(member_variable_, files.member()->values);
}

/// Of the first of them.
void ForecastFile::write_times(std::size_t starts, std::size_t leads) {
  const auto count = [](std::size_t number) { return static_cast<std::int64_t>(number); };
  const auto write_first = [&](int variable, const Box& box, const auto& values) {
    file_.write(variable, box, std::span(values).first(static_cast<std::size_t>(box.extent.count())));
  };
  if (series_) {
    file_.write(start_variable_, times_.starts);
    write_first(valid_variable_, {{0}, {count(leads)}}, times_.valid);
    if (valid_bounds_ >= 0) write_first(valid_bounds_, {{0, 0}, {count(leads), 2}}, times_.bounds);
    return;
  }
  write_first(start_variable_, {{0}, {count(starts)}}, times_.starts);
  write_first(lead_variable_, {{0}, {count(leads)}}, times_.leads);
  if (lead_bounds_ >= 0) write_first(lead_bounds_, {{0, 0}, {count(leads), 2}}, times_.lead_bounds);
  for (std::size_t start = 0; start < starts; ++start) {
    const std::size_t at = start * times_.leads.size();
    const std::span<const double> valid(times_.valid), bounds(times_.bounds);
    write_first(valid_variable_, {{count(start), 0}, {1, count(leads)}}, valid.subspan(at));
    if (valid_bounds_ < 0) continue;
    write_first(valid_bounds_, {{count(start), 0, 0}, {1, count(leads), 2}}, bounds.subspan(2 * at));
  }
}

void ForecastFile::write(std::size_t field, std::int64_t start, std::int64_t lead, const Box& box,
                         std::span<float> values, std::int64_t member) {
  std::vector<std::int64_t> leading = {lead};
  if (!series_) leading.insert(leading.begin(), start);
  if (members_ >= 0) leading.push_back(member);
  fields_.write(variables_[fields_.variable_of(field)], field, leading, box, values);
}

void ForecastFile::close(std::int64_t starts, std::int64_t leads) {
  write_times(static_cast<std::size_t>(starts), static_cast<std::size_t>(leads));
  file_.close();
}

std::int64_t ForecastFile::finish() {
  close(std::ssize(times_.starts), std::ssize(times_.leads));
  return output_.commit();
}

}  // namespace jigsaw::inline predict
