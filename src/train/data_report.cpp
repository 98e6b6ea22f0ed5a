#include "train/data_report.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "fields/units.h"
#include "files/value_kinds.h"
#include "images/image_data.h"
#include "images/image_pairs.h"
#include "images/sequence_data.h"
#include "samples/cell_weights.h"
#include "samples/dataset.h"
#include "samples/prescribed_remarks.h"
#include "task/grid_warnings.h"
#include "task/loss_types.h"
#include "task/odd_values.h"
#include "task/scores.h"
#include "times/windows.h"
#include "train/validation_table.h"

namespace jigsaw::inline train {

namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

/// More names than these, one after the other, of one variable on several levels are told by their number.
constexpr std::size_t kMostLevels = 3;

/// Calls f(variable, first, last) for each run of channels that are one variable on levels, or one channel.
template <typename F>
void for_each_group(const std::vector<std::string>& names, F&& f) {
  for (std::size_t first = 0; first < names.size();) {
    const std::string variable = without_level(names[first]);
    std::size_t last = first + 1;
    while (variable != names[first] && last < names.size() && names[last] != variable &&
           without_level(names[last]) == variable)
      ++last;
    f(variable, first, last);
    first = last;
  }
}

/// "t2m z_500 t on 13 levels".
std::string listed(const std::vector<Channel>& channels) {
  const std::vector<std::string> names = channel_names(channels);
  std::vector<std::string> parts;
  for_each_group(names, [&](const std::string& variable, std::size_t first, std::size_t last) {
    if (last - first > kMostLevels) {
      parts.push_back(concat(variable, " on ", last - first, " levels"));
    } else {
      parts.insert(parts.end(), names.begin() + static_cast<std::ptrdiff_t>(first),
                   names.begin() + static_cast<std::ptrdiff_t>(last));
    }
  });
  return join(parts, " ");
}

/// " K", or how the values were transformed, " (log)": then their unit is another.
std::string unit_or_transform(const FieldStatistics& field) {
  const bool kept = field.transform.empty() || field.transform == "min_max" || field.transform == "none";
  const std::string units = field.units.empty() || !kept ? "" : " " + field.units;
  return field.transform.empty() ? units : concat(units, " (", field.transform, ")");
}

/// "t2m 277 ± 16 K; t on 13 levels 205 to 281 K", of the means.
std::string listed(const std::map<std::string, FieldStatistics>& fields) {
  std::vector<std::string> names, parts;
  for (const auto& [name, field] : fields) names.push_back(name);
  for_each_group(names, [&](const std::string& variable, std::size_t first, std::size_t last) {
    const std::string behind = unit_or_transform(fields.at(names[first]));
    double low = fields.at(names[first]).mean, high = low;
    for (std::size_t i = first; i < last; ++i) {
      const FieldStatistics& field = fields.at(names[i]);
      low = std::min(low, field.mean);
      high = std::max(high, field.mean);
      if (last - first <= kMostLevels)
        parts.push_back(concat(names[i], " ", number(field.mean), " ± ", number(field.deviation), behind));
    }
    if (last - first > kMostLevels)
      parts.push_back(
          concat(variable, " on ", last - first, " levels ", number(low), " to ", number(high), behind));
  });
  return join(parts, "; ");
}

/// Those in a period.
std::vector<Time> times_in(const std::vector<Time>& times, const Period& period) {
  return {std::lower_bound(times.begin(), times.end(), period.first),
          std::upper_bound(times.begin(), times.end(), period.last)};
}

/// The prescribed fields by those of these times at which they are there, which many share.
std::map<std::vector<Time>, std::vector<std::string>> prescribed_at(const Dataset& data,
                                                                    const std::vector<Time>& times) {
  std::map<std::vector<Time>, std::vector<std::string>> names;
  for (const Field& field : fields_of(data.channels().inputs, Role::kPrescribed)) {
    std::vector<Time> there;
    std::ranges::copy_if(times, std::back_inserter(there),
                         [&](Time time) { return data.files().has(field, time); });
    names[there].push_back(field.name());
  }
  return names;
}

/// Of variables that some files lack, the first of these.
std::vector<std::string> lacking_warnings(const Dataset& data, const Period& period, const std::string& key) {
  std::vector<Field> fields = fields_of(data.channels().inputs, Role::kPrognostic);
  for (const Channel& channel : data.channels().targets) fields.push_back(channel.field);
  for (const Field& field : fields_of(data.channels().inputs, Role::kPrescribed)) fields.push_back(field);
  std::vector<std::string> warnings;
  std::set<std::string> told;
  for (const Field& field : fields) {
    const auto lacking = data.files().first_file_without(field, period);
    if (!lacking || !told.insert(field.variable).second) continue;
    warnings.push_back(concat(key, " (", data.files().text_of(period), "): ", field.name(), " is not in ",
                              lacking->path, ", which holds ", lacking->holds, " at ",
                              format_time(lacking->time, data.files().calendar()),
                              "; it may have another name there"));
  }
  return warnings;
}

void report_periods(const Dataset& data, DataReport& report) {
  const DataOptions& options = data.options();
  std::vector<std::string> said;
  std::vector<Period> all;
  for (const auto& [key, parts] :
       {std::pair{"data.train", &options.train}, std::pair{"data.valid", &options.valid}}) {
    std::vector<std::string> dates;
    for (const std::string& warning : coverage_warnings(data, *parts, key))
      report.warnings.push_back(warning);
    for (const Period& period : data.files().periods(*parts, key)) {
      dates.push_back(data.files().text_of(period));
      all.push_back(period);
    }
    if (!dates.empty()) said.push_back(concat(key, " ", join(dates, ", ")));
  }
  for (const std::string& remark : gap_remarks(data, all)) report.warnings.push_back(remark);
  report.lines.push_back(concat("periods: ", join(said, "; ")));
  const std::vector<Time> both = common_times(data.train_windows(), data.valid_windows());
  if (!both.empty()) {
    report.warnings.push_back(concat("data.valid overlaps data.train: ", both.size(), " of ",
                                     data.valid_windows().size(),
                                     " validation samples are trained on, as that of ",
                                     format_time(both.front(), data.files().calendar())));
  }
}

/// "t2m 212 to 317 K; t on 13 levels 180 to 315 K".
std::string ranges(const Statistics& statistics) {
  std::vector<std::string> names, parts;
  for (const auto& [name, values] : statistics.seen)
    if (values.missing < 1) names.push_back(name);
  const auto add = [&](const std::string& what, const SeenValues& values, const std::string& name) {
    parts.push_back(concat(what, " ", number(values.least), " to ", number(values.largest),
                           unit_or_transform(statistics.fields.at(name))));
  };
  for_each_group(names, [&](const std::string& variable, std::size_t first, std::size_t last) {
    SeenValues all = statistics.seen.at(names[first]);
    for (std::size_t i = first; i < last; ++i) {
      const SeenValues& values = statistics.seen.at(names[i]);
      all.least = std::min(all.least, values.least);
      all.largest = std::max(all.largest, values.largest);
      if (last - first <= kMostLevels) add(names[i], values, names[i]);
    }
    if (last - first > kMostLevels) add(concat(variable, " on ", last - first, " levels"), all, names[first]);
  });
  return join(parts, "; ");
}

/// Values that a transform makes 0 and no forecast reaches.
void report_values_below(const Statistics& statistics, DataReport& report) {
  std::vector<std::string> below;
  for (const auto& [name, values] : statistics.seen)
    if (values.below > 0) below.push_back(name);
  if (below.empty()) return;
  const std::string& name = below.front();
  const SeenValues& values = statistics.seen.at(name);
  const FieldStatistics& field = statistics.fields.at(name);
  report.warnings.push_back(
      concat("data.transforms: ", number(100 * values.below), " % of the values of ",
             first_and_more(name, std::ssize(below) - 1, "field"), " in data.train are below 0, down to ",
             number(values.lowest), field.units.empty() ? "" : " ", field.units, ", and count as 0 in ",
             field.transform, ": no forecast reaches them; the type \"standard\" keeps negative values"));
}

/// Files that go on at other hours than those before them: windows across are left out.
void report_phases(const Dataset& data, DataReport& report) {
  const Calendar calendar = data.files().calendar();
  std::set<std::string> told;
  for (const Field& field : fields_in_time(data.channels())) {
    const auto other = data.files().other_phase(field);
    if (!other || !told.insert(other->path).second) continue;
    report.warnings.push_back(concat(
        other->path, " holds ", field.name(), " at other times of the day than the file before it: from ",
        format_time(other->time, calendar), " on, behind ", format_time(other->before, calendar),
        "; windows that reach across are left out"));
  }
}

/// Files whose values begin where those of the file before them do not end.
void report_jumps(const Dataset& data, DataReport& report) {
  const FileSet& files = data.files();
  for (const Field& field : fields_in_time(data.channels())) {
    const auto seen = data.statistics().seen.find(field.name());
    if (seen == data.statistics().seen.end() || seen->second.jump == 0) continue;
    const SeenValues& values = seen->second;
    const std::vector<Time>& times = files.times(field);
    const auto time = std::ranges::lower_bound(times, values.jumped);
    if (time == times.end() || time == times.begin()) continue;
    // Of the first member for which another file begins there.
    const auto path = [&](Time at, std::int32_t member) -> const std::string& {
      return files.path_at(field, {at, member});
    };
    std::int32_t member = 0;
    while (member + 1 < files.members_of(field) && path(*(time - 1), member) == path(*time, member)) ++member;
    report.warnings.push_back(
        concat("the mean of ", field.name(), " changes by ", number(values.jump),
               unit_or_transform(data.statistics().of(field)), ", ", number(values.jump_deviations),
               " deviations, from ", path(*(time - 1), member), " to ", path(*time, member), " (at ",
               format_time(*time, files.calendar()), "); is one of these in another unit than it says?"));
  }
}

/// Of the whole training period, as far as it was read.
void report_values(const Statistics& statistics, DataReport& report) {
  if (statistics.seen.empty()) return;
  std::vector<std::string> missing;
  for (const auto& [name, values] : statistics.seen) {
    if (values.missing > 0) missing.push_back(concat(name, " ", number(100 * values.missing), " %"));
  }
  report.lines.push_back(concat("values in data.train: ", ranges(statistics)));
  for (const auto& [name, field] : statistics.fields) {
    if (!statistics.seen.contains(name) && field.missing.value_or(0) > 0)
      missing.push_back(
          concat(name, " ", number(100 * *field.missing), " % (constant, its mean stands there)"));
  }
  report.lines.push_back(
      concat("missing in data.train: ", missing.empty() ? "nothing" : join(missing, "; ")));
  report_values_below(statistics, report);
}

/// Levels that weigh as pressures and are others, or are not there.
void report_weights(const Tagged& loss, Dataset& data, DataReport& report) {
  if (!field_loss_options(loss).by_pressure) return;
  const std::vector<Channel>& targets = data.channels().targets;
  if (std::ranges::none_of(targets, [](const Channel& target) { return target.field.level.has_value(); })) {
    report.warnings.push_back(
        "loss.level_weights has no effect: it is \"pressure\", and no variable has levels; leave it out");
  }
  for (const Channel& target : targets) {
    if (!target.field.level) continue;
    const auto level = data.files().describe(target.field).level;
    if (!level || !level->texts.contains("units")) continue;
    const std::string& units = level->texts.at("units");
    if (units_per_hectopascal(units)) continue;
    report.warnings.push_back(concat("loss.level_weights is \"pressure\", and levels of ",
                                     target.field.variable, " are ", level->name, " in ", units,
                                     ", of which larger ones count more; \"equal\" counts all alike"));
    return;
  }
}

/// The sun of one moment beside means over a day and more.
void report_sun(Dataset& data, DataReport& report) {
  const std::vector<ForcingKind>& forcings = data.options().forcings;
  const auto sun = std::ranges::find_if(forcings, [](ForcingKind kind) {
    return kind == ForcingKind::kInsolation || kind == ForcingKind::kCosZenithAngle;
  });
  if (sun == forcings.end()) return;
  for (const Channel& target : data.channels().targets) {
    const std::vector<Time>& times = data.files().times(target.field);
    const auto& texts = data.files().describe(target.field).texts;
    const auto said = texts.find("cell_methods");
    const bool is_mean = said != texts.end() && method_along(said->second, "time") == "mean";
    const auto begins_anew = [&](Time time) { return (time - times.front()) % kDay == 0; };
    if (!is_mean || times.size() < 2 || !std::ranges::all_of(times, begins_anew)) continue;
    report.warnings.push_back(concat(
        "data.forcings has ", *sun == ForcingKind::kInsolation ? "insolation" : "cos_zenith_angle",
        ", of the sun at ", format_time(times.front(), data.files().calendar()),
        " and at that hour of other days, and ", target.name,
        " is a mean over time (cell_methods): some longitudes then always have noon; sin_cos_latitude and "
        "day_of_year say as much of a day's sun"));
    return;
  }
}

/// Fields that are taken as constant and are not.
void report_constants(Dataset& data, DataReport& report) {
  const auto report_change = [&](const char* key, const Field& field, const char* advice) {
    try {
      const std::optional<std::string> other = data.files().changes_in(field);
      if (!other) return;
      report.warnings.push_back(concat(key, ": ", field.name(), " is another one at the end of ", *other,
                                       " than in ", data.files().where(field),
                                       ", whose first state is taken at all times", advice));
    } catch (const DataError&) {
      // A file that nothing is read of in training, perhaps.
    }
  };
  for (const Field& field : fields_of(data.channels().inputs, Role::kStatic))
    report_change("data.static", field,
                  "; if it changes in time, name it in data.forcing_variables or data.variables");
  if (const auto area = variable_of_areas(data.options().cell_area))
    report_change("data.cell_area", *area, "");
}

/// Of inputs and targets each variable once.
std::vector<std::string> variables_of(const Channels& channels) {
  std::vector<std::string> variables;
  for (const auto* of : {&channels.inputs, &channels.targets}) {
    for (const Channel& channel : *of) {
      const std::string& variable = channel.field.variable;
      if (std::ranges::find(variables, variable) == variables.end()) variables.push_back(variable);
    }
  }
  return variables;
}

void report_images(const ImageData& data, DataReport& report) {
  for (const std::string& warning : pairing_warnings(data.files(), variables_of(data.channels())))
    report.warnings.push_back(warning);
  if (auto warning = forms_warning(data.files(), variables_of(data.channels()), data.options().alignment))
    report.warnings.push_back(*std::move(warning));
  if (const std::optional<std::string> cut = data.cut_volume()) {
    report.warnings.push_back(
        concat("data.valid takes other slices of a volume that data.train has slices of, ", *cut,
               ", so that scores of validation are too good; choose volumes by "
               "{\"case\": […]}"));
  }
  const std::int64_t shared = data.shared_points();
  if (shared == 0) return;
  report.warnings.push_back(
      concat("data.valid overlaps data.train: ", shared, " points of the images are in both"));
}

}  // namespace

std::vector<std::string> period_warnings(const std::vector<Time>& times, const Period& period,
                                         const std::string& key, Calendar calendar) {
  const std::vector<Time> inside = times_in(times, period);
  const std::string asked = concat(key, " (", format_period(period, calendar), ")");
  if (inside.empty()) return {concat(asked, " is not in the files")};
  const Time step = usual_step(times);
  std::vector<std::string> warnings;
  if (inside.front() - period.first >= step + (step == 0) ||
      period.last - inside.back() >= step + (step == 0)) {
    warnings.push_back(concat(asked, " is not covered by the files, which hold ",
                              format_time(inside.front(), calendar), " to ",
                              format_time(inside.back(), calendar), " of it"));
  }
  std::int64_t gaps = 0;
  std::size_t longest = 0;
  for (std::size_t i = 1; i < inside.size(); ++i) {
    if (inside[i] - inside[i - 1] <= step) continue;
    ++gaps;
    if (longest == 0 || inside[i] - inside[i - 1] > inside[longest] - inside[longest - 1]) longest = i;
  }
  if (gaps > 0) {
    warnings.push_back(concat(asked, " has ", counted(gaps, "gap"), " in the files, whose times are ",
                              duration_text(step), " apart: ", gaps == 1 ? "" : "the longest ", "from ",
                              format_time(inside[longest - 1], calendar), " to ",
                              format_time(inside[longest], calendar)));
  }
  return warnings;
}

std::vector<std::string> prescribed_warnings(const std::vector<Time>& times, const std::vector<Time>& there,
                                             const std::string& names, const Period& period,
                                             const std::string& key, Calendar calendar) {
  const std::vector<Time> needed = times_in(times, period), inside = times_in(there, period);
  if (inside.size() == needed.size()) return {};
  const std::string asked = concat(key, " (", format_period(period, calendar), ")"),
                    of = concat(names, " of data.forcing_variables"),
                    left_out = "; windows that need more are left out";
  if (inside.empty()) return {concat(asked, " holds no ", of)};
  std::vector<std::string> warnings;
  if (inside.front() != needed.front() || inside.back() != needed.back()) {
    warnings.push_back(concat(asked, " is not covered by ", of, ", there from ",
                              format_time(inside.front(), calendar), " to ",
                              format_time(inside.back(), calendar), " of it", left_out));
  }
  std::int64_t gaps = 0;
  Period longest;
  for (std::size_t i = 1; i < inside.size(); ++i) {
    const Period gap{inside[i - 1], inside[i]};
    if (times_in(needed, gap).size() == 2) continue;
    ++gaps;
    if (gap.last - gap.first > longest.last - longest.first) longest = gap;
  }
  if (gaps > 0) {
    warnings.push_back(concat(asked, " has ", counted(gaps, "gap"), " in ", of, ": ",
                              gaps == 1 ? "" : "the longest ", "from ", format_time(longest.first, calendar),
                              " to ", format_time(longest.last, calendar), left_out));
  }
  return warnings;
}

std::vector<std::string> coverage_warnings(const Dataset& data, const std::vector<DataPart>& parts,
                                           const std::string& key) {
  const FileSet& files = data.files();
  std::vector<Time> times = files.times(data.channels().targets.front().field);
  for (const Channel& channel : data.channels().targets)
    times = common_times(times, files.times(channel.field));
  for (const Field& field : fields_of(data.channels().inputs, Role::kPrognostic))
    times = common_times(times, files.times(field));
  // Nothing is prescribed before the first window's time 0.
  std::vector<Time> needed = times;
  const Time before = std::ranges::min(data.options().input_times);
  std::erase_if(needed, [&](Time time) { return time + before < times.front(); });
  const auto prescribed = prescribed_at(data, needed);
  std::vector<std::string> all;
  const auto add = [&](const std::vector<std::string>& warnings) {
    all.insert(all.end(), warnings.begin(), warnings.end());
  };
  for (const Period& period : files.periods(parts, key)) {
    add(period_warnings(times, period, key, files.calendar()));
    add(lacking_warnings(data, period, key));
    for (const auto& [there, names] : prescribed)
      add(prescribed_warnings(needed, there, first_and_more(names.front(), std::ssize(names) - 1, "field"),
                              period, key, files.calendar()));
  }
  return all;
}

DataReport report_states(const Dataset& data) {
  DataReport report;
  report_values(data.statistics(), report);
  report_jumps(data, report);
  return report;
}

DataReport report_data(const Configuration& configuration, SampleSource& data) {
  DataReport report;
  const std::int64_t train = data.count(Split::kTrain), valid = data.count(Split::kValid);
  const std::int64_t batch = configuration.train.batch_size, every = configuration.validation.every;
  report.lines.push_back(concat("data: ", counted(train, "sample"), " of training and ", valid,
                                " of validation on the grid ", data.grid().shape(), "; inputs ",
                                listed(data.channels().inputs), "; targets ",
                                listed(data.channels().targets)));
  if (!data.statistics().fields.empty())
    report.lines.push_back(concat("statistics: ", listed(data.statistics().fields)));
  if (auto* forecasts = dynamic_cast<Dataset*>(&data)) {
    report_periods(*forecasts, report);
    report_phases(*forecasts, report);
    report_jumps(*forecasts, report);
    report_constants(*forecasts, report);
    report_sun(*forecasts, report);
    report_weights(configuration.loss, *forecasts, report);
    for (const std::string& remark : unit_remarks(data.statistics(), data.channels(), forecasts->files()))
      report.warnings.push_back(remark);
    if (const auto odd = odd_values_warning(data.statistics())) report.warnings.push_back(*odd);
    for (const std::string& sentence : forecasts->files().fields_elsewhere())
      report.warnings.push_back(sentence);
  }
  if (const auto* images = dynamic_cast<const ImageData*>(&data)) report_images(*images, report);
  if (const auto* sequences = dynamic_cast<const SequenceData*>(&data)) {
    Channels states;
    states.targets = data.channels().targets;
    if (auto warning = order_warning(sequences->files(), variables_of(states)))
      report.warnings.push_back(*std::move(warning));
    if (auto warning = forms_warning(sequences->files(), variables_of(states), std::nullopt))
      report.warnings.push_back(*std::move(warning));
  }
  for (const std::string& warning : edge_warnings(configuration.model.to_json(), data))
    report.warnings.push_back(warning);
  for (const std::string& remark : data.packing_remarks()) report.warnings.push_back(remark);
  for (const std::string& warning : area_warnings(configuration, data)) report.warnings.push_back(warning);
  for (const std::string& warning : target_warnings(data)) report.warnings.push_back(warning);
  report_values(data.statistics(), report);
  if (batch > train) {
    report.warnings.push_back(concat("train.batch_size ", batch, " is more than the ",
                                     counted(train, "sample"),
                                     " of training: each batch has samples more than once"));
  }
  if (every > 0 && valid == 0)
    report.lines.push_back("no validation runs, for data.valid names no data for it");
  if (every == 0 && valid > 0) {
    report.lines.push_back(
        "no validation runs, for validation.every is 0: data.valid is for predict and evaluate");
  }
  return report;
}

}  // namespace jigsaw::inline train
