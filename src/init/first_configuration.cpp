#include "init/first_configuration.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "fields/file_set.h"
#include "files/glob.h"
#include "files/probe.h"
#include "init/first_forecast.h"
#include "init/first_headers.h"
#include "init/first_images.h"
#include "init/first_sequences.h"

namespace jigsaw::inline init {

namespace {

/// The files as fields, what their headers say, and what the fields are.
struct OpenedFields {
  std::unique_ptr<FileSet> files;
  std::vector<VariableSummary> catalogue;
  std::set<std::string> bounds;
  std::vector<std::string> refusals;  ///< of refusals_in(), each once
};

/// Whether a field has a state a month: each in another one, most in that after the last, and not simply
/// after so many days each, unless months have as many.
bool one_a_month(const VariableSummary& variable) {
  std::int64_t following = 0;
  std::set<Time> steps;
  const auto month = [&](Time time) { return month_of(time, variable.calendar); };
  for (std::size_t i = 1; i < variable.times.size(); ++i) {
    const Time before = variable.times[i - 1], time = variable.times[i];
    if (month(time) == month(before) || time - before < 28 * kDay) return false;
    following += month(time) - month(before) == kMonth ? 1 : 0;
    steps.insert(time - before);
  }
  const bool even = variable.calendar == Calendar::k360Day && steps.contains(kMonth);
  return (even || steps.size() > 1) && 2 * following >= std::ssize(variable.times);
}

/// Whether all fields that change in time do so.
bool are_monthly(const std::vector<VariableSummary>& catalogue) {
  const auto changes = [](const VariableSummary& variable) { return variable.times.size() > 1; };
  return std::ranges::any_of(catalogue, changes) &&
         std::ranges::all_of(catalogue, [&](const VariableSummary& variable) {
           return !changes(variable) || one_a_month(variable);
         });
}

OpenedFields catalogue_of(const FirstOptions& options, const std::vector<std::string>& paths) {
  OpenedFields opened;
  std::set<std::string> refused;  // names of variables, which are the same in many files
  const auto open = [&](const std::string& path) {
    std::unique_ptr<VariableFile> file = open_variables(path, Dimensions::kByName, External::kRefused);
    opened.bounds.merge(bounds_in(*file));
    for (const std::string& why : refusals_in(*file))
      if (refused.insert(why.substr(0, why.find(" in "))).second) opened.refusals.push_back(why);
    return file;
  };
  FileSelection selection{.member = options.member};
  opened.files = std::make_unique<FileSet>(paths, selection, open);
  opened.catalogue = opened.files->catalogue();
  if (are_monthly(opened.catalogue)) {
    selection.time_step.month = true;
    opened.files = std::make_unique<FileSet>(paths, selection, open);
    opened.catalogue = opened.files->catalogue();
  }
  if (const std::optional<RegionOptions> region = opened.files->region_across_gap()) {
    selection.region = *region;
    opened.files = std::make_unique<FileSet>(paths, selection, open);
  }
  if (const std::optional<RegridOptions> regrid = opened.files->regrid_of_list()) {
    selection.regrid = *regrid;
    opened.files = std::make_unique<FileSet>(paths, selection, open);
  }
  return opened;
}

/// Throws where a variable is a field in time but for one thing, so that the files are none of images or
/// sequences.
void refuse_near_fields(const OpenedFields& opened, const std::vector<std::string>& paths) {
  if (const std::string why = refusal_of_grid(paths.front()); !why.empty()) throw DataError(why);
  for (const std::string& path : opened.refusals.empty() ? std::vector<std::string>() : paths) {
    const std::string why = refusal_of_field(path);
    if (!why.empty()) throw DataError(why);
  }
  const auto faulty = std::ranges::find_if(
      opened.catalogue, [](const VariableSummary& variable) { return !variable.fault.empty(); });
  if (faulty != opened.catalogue.end() && std::ranges::any_of(paths, has_fields_in_time))
    throw DataError(faulty->fault);
  const auto found = std::ranges::find_if(
      opened.catalogue, [](const VariableSummary& variable) { return variable.times.size() == 1; });
  if (found == opened.catalogue.end()) return;
  throw DataError(concat(found->name, " in ", first_and_more(paths.front(), std::ssize(paths) - 1, "file"),
                         " has one time only; forecasts need several, in one file or in many (--data "
                         "'FOLDER/*.nc'); --task denoise takes it as an image"));
}

/// @param why  they are no fields; "" where nothing looks like one.
FirstConfiguration take_as_images(const FirstOptions& options, const std::vector<std::string>& paths,
                                  Task task, const std::string& why) {
  if (options.member.all || options.member.number)
    throw ConfigError(concat("--member counts only for forecasts, and ", paths.front(), " holds images"));
  try {
    FirstConfiguration first = first_images(options, paths, task);
    if (!why.empty()) {
      first.notices.push_back(
          concat(why, "; so the files are taken as images (--task forecast ends with this reason instead)"));
    }
    return first;
  } catch (const DataError& error) {
    if (why.empty() || std::string(error.what()).find(why) != std::string::npos) throw;
    throw DataError(concat(error.what(), "; ", why));
  }
}

/// @param why  they are no fields with dates; "" where nothing looks like one.
FirstConfiguration take_as_sequences(const FirstOptions& options, const std::vector<std::string>& paths,
                                     const std::string& why) {
  if (options.member.all || options.member.number)
    throw ConfigError(
        concat("--member counts only for forecasts with dates, and ", paths.front(), " holds sequences"));
  FirstConfiguration first = first_sequences(options, paths);
  if (!why.empty())
    first.notices.push_back(why + "; so the files are taken as sequences of states by number");
  return first;
}

}  // namespace

FirstConfiguration first_configuration(const FirstOptions& options) {
  const std::vector<std::string> paths = expand_patterns(options.files, ".");
  for (const Dimensions dimensions : {Dimensions::kByName, Dimensions::kByNumber})
    probe_files(paths, dimensions, External::kRefused);
  if (options.task && *options.task != Task::kForecast)
    return take_as_images(options, paths, *options.task, "");
  if (is_of_the_well(paths.front())) return take_as_sequences(options, paths, "");
  OpenedFields opened;
  try {
    opened = catalogue_of(options, paths);
  } catch (const DataError& error) {
    const std::optional<std::string> format = image_format(paths.front());
    if (format && holds_sequences(paths.front(), options.task.has_value()))
      return take_as_sequences(options, paths, "");
    if (options.task || !format || std::ranges::any_of(paths, has_fields_in_time)) throw;
    // NetCDF's library does not open every HDF5 file; other formats are none of fields.
    return take_as_images(options, paths, Task::kDenoise, *format == "HDF5" ? error.what() : "");
  }
  const bool fields = std::ranges::any_of(
      opened.catalogue, [](const VariableSummary& variable) { return variable.times.size() > 1; });
  if (fields) {
    FirstConfiguration first = first_forecast(options, paths, *opened.files, opened.bounds);
    std::ranges::transform(opened.refusals, std::back_inserter(first.notices),
                           [](const std::string& why) { return concat("left out: ", why); });
    return first;
  }
  refuse_near_fields(opened, paths);
  const std::string why = lack_of_field(paths.front());
  if (holds_sequences(paths.front(), options.task.has_value())) return take_as_sequences(options, paths, why);
  if (options.task) {
    throw DataError(concat(paths.front(), ": no variable on latitude and longitude has more than one time",
                           why.empty() ? "" : "; ", why));
  }
  return take_as_images(options, paths, Task::kDenoise, why);
}

}  // namespace jigsaw::inline init
