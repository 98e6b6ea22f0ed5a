#include "train/first_configuration.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "files/glob.h"
#include "files/probe.h"
#include "files/variable_file.h"
#include "samples/data_file.h"
#include "samples/file_set.h"
#include "train/first_forecast.h"
#include "train/first_images.h"

namespace jigsaw::inline train {

namespace {

/// Whether a variable has a latitude, a longitude and a time, as they are called: what is wrong with them is
/// no sign of images.
bool has_fields_in_time(const std::string& path) {
  try {
    DataFile file(open_variables(path, Dimensions::kByName, External::kRefused));
    return std::ranges::any_of(file.file().variables(), [&](const FileVariable& variable) {
      const FieldAxes axes = file.axes(variable);
      return variable.numeric() && axes.horizontal() && axes.time >= 0;
    });
  } catch (const DataError&) {
    return false;
  }
}

}  // namespace

FirstConfiguration first_configuration(const FirstOptions& options) {
  const std::vector<std::string> paths = expand_patterns(options.files, ".");
  for (const Dimensions dimensions : {Dimensions::kByName, Dimensions::kByNumber})
    probe_files(paths, dimensions, External::kRefused);
  const auto of_images = [&](Task task) {
    if (options.member.all || options.member.number)
      throw ConfigError(concat("--member counts only for forecasts, and ", paths.front(), " holds images"));
    return first_images(options, paths, task);
  };
  if (options.task && *options.task != Task::kForecast) return of_images(*options.task);
  bool fields = false;
  std::string why;
  try {
    FileSet files(paths, {.member = options.member});
    const std::vector<VariableSummary> catalogue = files.catalogue();
    fields = std::any_of(catalogue.begin(), catalogue.end(),
                         [](const VariableSummary& variable) { return variable.times.size() > 1; });
    if (fields) return {first_forecast(options, paths, files), {}};
    why = "no variable on latitude and longitude has more than one time";
  } catch (const DataError& error) {
    if (fields || options.task || has_fields_in_time(paths.front())) throw;
  }
  if (options.task) throw DataError(concat(paths.front(), ": ", why));
  return of_images(Task::kDenoise);
}

}  // namespace jigsaw::inline train
