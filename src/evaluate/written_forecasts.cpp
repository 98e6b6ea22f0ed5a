#include "evaluate/written_forecasts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "comm/from_first.h"
#include "evaluate/same_kind.h"
#include "fields/shared_files.h"
#include "fields/units.h"
#include "files/netcdf_text.h"
#include "task/opened_run.h"

namespace jigsaw::inline evaluate {

namespace {

/// Files that are held open at a time, or as many as a start has.
constexpr std::size_t kMostOpen = 16;

/// What the data's files call a variable.
std::string data_set_of(const DataOptions& options, const std::string& variable) {
  for (const auto* variables : {&options.variables, &options.diagnostic}) {
    for (const VariableOptions& one : *variables)
      if (one.name == variable && !one.data_set.empty()) return one.data_set;
  }
  return variable;
}

/// What predict says of the weights that made a file, "0123456789abcdef", of several in their order; "" where
/// nothing does, as of files that are no NetCDF.
std::string digests_in(const std::string& path) {
  constexpr std::string_view kMark = "(digest ";
  std::string source;
  try {
    source = text_of_netcdf(path, "source");
  } catch (const DataError&) {
    return "";
  }
  std::string digests;
  for (std::size_t at = source.find(kMark); at != std::string::npos; at = source.find(kMark, at + 1)) {
    const std::size_t begin = at + kMark.size();
    digests += concat(digests.empty() ? "" : " ", source.substr(begin, source.find(')', begin) - begin));
  }
  return digests;
}

/// That files were made by several models, of which two are named; "" where they were not, or do not say it.
std::string models_remark(const std::vector<std::string>& paths) {
  std::map<std::string, std::string> first;  // file, by weights
  for (const std::string& path : paths) {
    const std::string weights = digests_in(path);
    if (!weights.empty()) first.try_emplace(weights, path);
    if (first.size() < 2) continue;
    const auto& [known, other] =
        *std::ranges::find_if(first, [&](const auto& one) { return one.first != weights; });
    return concat("--predictions: ", other, " and ", path, " were made by different models (digest ", known,
                  " and ", weights,
                  " in their attribute source), and all files count as forecasts of one: those "
                  "that start alike as its members; name files of one model to score it alone");
  }
  return "";
}

}  // namespace

WrittenForecasts::WrittenForecasts(Dataset& data, const std::vector<std::string>& patterns,
                                   const std::vector<Time>& leads, Communicator& world)
    : data_(data),
      leads_(leads),
      begun_(data.options().lead_of_inputs()),
      paths_(expand_together(patterns, "", world)) {
  open_file_ = share_files(paths_, Dimensions::kByName, data.options().external(), cache_folder(), world);
  together(world, [&] {
    contents_.resize(paths_.size());
    for (std::size_t file = 0; file < paths_.size(); ++file) look_into(file);
    find_whole();
    require_different();
  });
  const std::string models = from_first(world, [&] { return models_remark(paths_); });
  if (!models.empty()) remarks_.push_back(models);
}

FileSelection WrittenForecasts::selection_of(const std::map<std::size_t, Content>& contents) const {
  FileSelection selection;
  selection.regrid = data_.options().regrid;
  selection.member.all = true;
  std::set<std::string> free;
  for (const auto& [target, content] : contents) {
    // What the configuration says of the target by its name.
    const Field& field = data_.channels().targets[target].field;
    selection.regrid.variables[content.field.variable] = data_.options().regrid.of(field.variable);
    for (const std::string& name : {field.variable, field.name()}) {
      const auto missing = data_.options().missing.find(name);
      if (data_.options().summed_since(field)) continue;  // said of the sums, and these are differences
      if (missing != data_.options().missing.end()) selection.missing[content.field.name()] = missing->second;
    }
    for (const std::string& dimension : {content.axes->start, content.axes->lead})
      if (!dimension.empty()) free.insert(dimension);
  }
  selection.free_dimensions = {free.begin(), free.end()};
  return selection;
}

/// What a file calls a target; nothing where it has none.
std::optional<Field> WrittenForecasts::field_in(DataFile& file, FileSet& set, const Channel& target) const {
  const Field& field = target.field;
  std::vector<Field> names = {field, {data_set_of(data_.options(), field.variable), field.level}};
  if (field.level) names.push_back({field.name(), std::nullopt});
  for (const Field& name : names) {
    const auto place = file.find(name);
    if (!place) continue;
    file.file().require_numbers(*place->variable);
    if (set.holds_level(name)) return name;
  }
  return std::nullopt;
}

void WrittenForecasts::look_into(std::size_t file) {
  DataFile described(open_file_(paths_[file]));
  FileSet set({paths_[file]}, {}, open_file_);
  std::map<const FileVariable*, std::shared_ptr<const ForecastAxes>> known;
  const std::vector<Channel>& targets = data_.channels().targets;
  for (std::size_t target = 0; target < targets.size(); ++target) {
    const std::optional<Field> field = field_in(described, set, targets[target]);
    if (!field) continue;
    const FileVariable* const variable = described.find(*field)->variable;
    std::shared_ptr<const ForecastAxes>& axes = known[variable];
    if (!axes) {
      axes = std::make_shared<ForecastAxes>(forecast_axes(described, *variable));
      if (axes->calendar != data_.files().file_calendar()) {
        throw DataError(concat(paths_[file], " counts time in the calendar ", name(axes->calendar),
                               ", and the data in ", data_.files().calendar_name()));
      }
    }
    contents_[file][target] = {*field, axes};
    const std::string remark =
        require_same_unit(concat(targets[target].name, " in ", paths_[file]), variable->text("units"),
                          data_.files().units(targets[target].field));
    require_alike(file, target, described, *variable);
    const bool of_first = std::ranges::none_of(
        contents_, [&](const auto& other) { return &other != &contents_[file] && other.contains(target); });
    if (!remark.empty() && of_first) remarks_.push_back(remark);
  }
  if (contents_[file].empty()) {
    throw DataError(concat("--predictions: ", paths_[file],
                           " holds none of the variables that are scored, such as ", targets.front().name));
  }
  std::set<Time> starts;
  for (const auto& [target, content] : contents_[file])
    starts.insert(content.axes->starts.begin(), content.axes->starts.end());
  for (const Time start : starts) {
    std::vector<std::size_t>& files = by_start_[start + begun_];
    files.push_back(file);
    most_of_start_ = std::max(most_of_start_, files.size());
  }
}

/// What is summed, averaged or compared over some time is compared with what is so, too, over as long a time.
void WrittenForecasts::require_alike(std::size_t file, std::size_t target, DataFile& described,
                                     const FileVariable& variable) {
  const Field& field = data_.channels().targets[target].field;
  const std::string what = concat(data_.channels().targets[target].name, " in ", paths_[file]);
  require_same_kind(what, described, variable, data_.files(), field);
  const std::optional<Period> limits = limits_of(described, variable);
  std::optional<Period>& known = limits_[target];
  if (!known) known = limits_of(data_.files(), field);
  if (!known) known = limits;
  require_same_limits(what, limits, known);
}

FileSet& WrittenForecasts::open(std::size_t file) {
  const auto found = std::ranges::find(opened_, file, &OpenFile::number);
  if (found != opened_.end()) {
    opened_.splice(opened_.begin(), opened_, found);
    return *opened_.front().files;
  }
  if (opened_.size() >= std::max(kMostOpen, most_of_start_)) opened_.pop_back();
  auto set = std::make_unique<FileSet>(std::vector{paths_[file]}, selection_of(contents_[file]), open_file_);
  set->take_grid(data_.files());
  for (const auto& [target, content] : contents_[file]) set->select(content.field, false);
  opened_.push_front({file, std::move(set)});
  return *opened_.front().files;
}

/// Of the forecasts that files hold of a target, in their order.
std::optional<WrittenForecasts::Place> WrittenForecasts::place_of(std::size_t target, Time start, Time lead,
                                                                  std::int64_t member) const {
  const auto files = by_start_.find(start);
  if (files == by_start_.end()) return std::nullopt;
  for (const std::size_t file : files->second) {
    const auto content = contents_[file].find(target);
    if (content == contents_[file].end()) continue;
    const ForecastAxes& axes = *content->second.axes;
    if (!axes.holds(start - begun_, lead + begun_)) continue;
    if (const auto positions = axes.positions(start - begun_, lead + begun_, member))
      return Place{file, *positions};
    member -= axes.members;
  }
  return std::nullopt;
}

std::int64_t WrittenForecasts::members_of(std::size_t target, Time start, Time lead) const {
  std::int64_t members = 0;
  for (const std::size_t file : by_start_.at(start)) {
    const auto content = contents_[file].find(target);
    if (content != contents_[file].end() && content->second.axes->holds(start - begun_, lead + begun_))
      members += content->second.axes->members;
  }
  return members;
}

std::string WrittenForecasts::why_not(Time start) const {
  if (!by_start_.contains(start)) return "no forecast starts then";
  const std::vector<Channel>& targets = data_.channels().targets;
  const std::int64_t most = counts_of(start).second;
  for (std::size_t target = 0; target < targets.size(); ++target) {
    for (const Time lead : leads_) {
      const std::int64_t members = members_of(target, start, lead);
      const std::string what = concat(duration_text(lead + begun_), " of ", targets[target].name);
      if (members == 0) return concat("there is no lead ", what);
      if (members < most) return concat("lead ", what, " has ", members, " of ", most, " members");
    }
  }
  return concat("there are ", counted(most, "member"), ", and ", members_, " elsewhere");
}

/// Of all targets and leads of a start the fewest and the most members.
std::pair<std::int64_t, std::int64_t> WrittenForecasts::counts_of(Time start) const {
  std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = 0;
  for (std::size_t target = 0; target < data_.channels().targets.size(); ++target) {
    for (const Time lead : leads_) {
      const std::int64_t members = members_of(target, start, lead);
      least = std::min(least, members);
      most = std::max(most, members);
    }
  }
  return {least, most};
}

/// As many members as most forecasts have of which nothing lacks; of numbers as frequent the largest.
void WrittenForecasts::find_whole() {
  std::map<std::int64_t, std::vector<Time>> by_count;
  for (const auto& [start, files] : by_start_) {
    const auto [least, most] = counts_of(start);
    members_ = by_count.empty() ? std::max(members_, most) : members_;
    if (least == most && most > 0) by_count[most].push_back(start);
  }
  std::size_t frequent = 0;
  for (const auto& [count, starts] : by_count) {
    if (starts.size() < frequent) continue;
    frequent = starts.size();
    members_ = count;
    whole_ = {starts.begin(), starts.end()};
  }
}

/// @throws DataError  where two members of a forecast are equal: files hold the same one twice.
void WrittenForecasts::require_different() {
  for (const auto& [start, files] : by_start_) {
    const std::int64_t members = members_of(0, start, leads_.front());
    if (files.size() < 2 || members < 2) continue;
    const Shape grid = data_.grid().shape();
    const Box row{{grid[0] / 2, 0}, {1, grid[1]}};
    std::map<std::vector<double>, std::int64_t> known;
    for (std::int64_t member = 0; member < members; ++member) {
      std::vector<double> values(static_cast<std::size_t>(grid[1]));
      read(start, leads_.front(), 0, member, row, values);
      if (std::ranges::any_of(values, [](double value) { return std::isnan(value); })) continue;
      const auto [equal, different] = known.try_emplace(std::move(values), member);
      if (different) continue;
      throw DataError(
          concat("--predictions: ", paths_[place_of(0, start, leads_.front(), equal->second)->file], " and ",
                 paths_[place_of(0, start, leads_.front(), member)->file], " hold the same forecast from ",
                 data_.files().text_of(start), "; leave it out of one of them"));
    }
    return;  // one start speaks for all
  }
}

void WrittenForecasts::read(Time start, Time lead, std::size_t target, std::int64_t member, const Box& box,
                            std::span<double> out) {
  const std::optional<Place> place = place_of(target, start, lead, member);
  require(place.has_value(), "a forecast that is there");
  open(place->file).read_entry(contents_[place->file].at(target).field, place->positions, box, out);
}

}  // namespace jigsaw::inline evaluate
