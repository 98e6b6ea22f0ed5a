#include "io/data_options.h"

#include <algorithm>

#include "config/config.h"

namespace jigsaw {

namespace {

FormPtr<VariableOptions> variable_form() {
  return shorthand<VariableOptions, std::string>(
      section<VariableOptions>(), form_of<std::string>(),
      [](const std::string& name) {
        return VariableOptions{name, {}};
      },
      [](const VariableOptions& variable) {
        return variable.levels.empty() ? std::optional(variable.name) : std::nullopt;
      });
}

FormPtr<std::vector<VariableOptions>> variables_form() {
  return std::make_unique<ListForm<VariableOptions>>(variable_form());
}

FormPtr<Period> period_form() {
  const auto read = [](const Json& json, const Place& at) -> std::optional<Period> {
    const bool pair = json.is_array() && json.size() == 2 && json[0].is_string() && json[1].is_string();
    if (!pair) return std::nullopt;
    const auto first = json[0].get<std::string>(), last = json[1].get<std::string>();
    const std::optional<Period> period = parse_period(first, last);
    if (!period) at.error("holds a date that is none; dates are like \"2019-03-01\" or \"2019-03-01T06:00\"");
    if (period->last < period->first) at.error("must not end before it begins");
    return period;
  };
  const auto write = [](const Period& period) {
    const auto [first, last] = format_ends(period);
    return Json::array({first, last});
  };
  const Json schema = {{"type", "array"}, {"items", {{"type", "string"}}}, {"minItems", 2}, {"maxItems", 2}};
  return custom<Period>({"a pair of dates such as [\"2019-03-01\", \"2019-03-24\"]", schema, read, write});
}

FormPtr<std::vector<ForcingKind>> forcings_form() {
  return std::make_unique<ListForm<ForcingKind>>(choice<ForcingKind>(
      {{"latitude", ForcingKind::kLatitude, "The latitude, standardised over the grid's rows: 1 channel."},
       {"longitude", ForcingKind::kLongitude,
        "Cosine and sine of the longitude (2 channels), or on a region the longitude, standardised over the "
        "grid's columns (1 channel)."},
       {"time_of_day", ForcingKind::kTimeOfDay,
        "Sine and cosine of the time of day (UTC), at time 0 and at the first target: 4 channels."},
       {"day_of_year", ForcingKind::kDayOfYear,
        "Sine and cosine of the part of the year passed: 2 channels."}}));
}

void declare_inputs(Keys<DataOptions>& keys) {
  keys.add("files", &DataOptions::files)
      .doc(
          "NetCDF files, as names or patterns (*, ?), relative to the configuration's folder, else to the "
          "working "
          "folder. Times and variables may be spread over the files; the grid must be one.")
      .required()
      .not_empty();
  keys.add("shape", &DataOptions::shape)
      .doc(
          "Rows and columns of the grid, or [] to take them from the files. With it a model can be planned "
          "without files; they are checked against it.")
      .at_least(1)
      .must("be [] or the two numbers of rows and columns",
            [](const auto& shape) { return shape.empty() || shape.size() == 2; });
  keys.add("variables", &DataOptions::variables, variables_form())
      .doc("The prognostic variables, both inputs and targets. Levels of pressure are in hPa.")
      .required()
      .not_empty();
  keys.add("diagnostic", &DataOptions::diagnostic, variables_form()).doc("Variables that are targets only.");
  keys.add("static", &DataOptions::constants, variables_form())
      .doc("Variables that are inputs and constant in time.");
  keys.add("forcings", &DataOptions::forcings, forcings_form())
      .doc("Inputs known for every place and time without files.")
      .must("name nothing twice", [](std::vector<ForcingKind> kinds) {
        std::sort(kinds.begin(), kinds.end());
        return std::adjacent_find(kinds.begin(), kinds.end()) == kinds.end();
      });
}

void declare_windows(Keys<DataOptions>& keys) {
  keys.add("input_hours", &DataOptions::input_hours)
      .doc("The times of the prognostic inputs in hours relative to time 0.")
      .range(-87600, 0)
      .must("hold 0, the time that the forecast starts from",
            [](const auto& hours) { return std::find(hours.begin(), hours.end(), 0) != hours.end(); })
      .must("name no hour twice", [](std::vector<int> hours) {
        std::sort(hours.begin(), hours.end());
        return std::adjacent_find(hours.begin(), hours.end()) == hours.end();
      });
  keys.add("lead_hours", &DataOptions::lead_hours)
      .doc("Hours from time 0 to the target, and from each target of a rollout to the next.")
      .range(1, 87600);
  keys.choice("predict", &DataOptions::predict,
              {{"increment", Predict::kIncrement,
                "The change from time 0 to the target, scaled by its own standard deviation."},
               {"state", Predict::kState, "The state at the target time, normalised."}})
      .doc("What the model predicts of prognostic variables.");
  keys.add("train", &DataOptions::train, one_or_list(period_form()))
      .doc(
          "The training period, or a list of periods. A window belongs to a period when its time 0 and all "
          "its "
          "targets lie in it; earlier inputs may precede. Both end dates count whole days.")
      .required()
      .not_empty();
  keys.add("valid", &DataOptions::valid, one_or_list(period_form()))
      .doc("The validation period, or a list of periods; none by default.");
}

}  // namespace

void declare(Keys<VariableOptions>& keys) {
  keys.add("name", &VariableOptions::name).doc("The variable's name in the files.").required().not_empty();
  keys.add("levels", &VariableOptions::levels)
      .doc("Its levels, in hPa where they are levels of pressure; [] for a variable without levels.");
}

void declare(Keys<DataOptions>& keys) {
  declare_inputs(keys);
  declare_windows(keys);
  keys.add("normalization", &DataOptions::normalization, auto_or<std::string>())
      .doc(
          "\"auto\" to compute mean and standard deviation over the training period, or the name of a file "
          "with "
          "them, relative to the configuration's folder, else to the working folder.");
  keys.choice("task", &DataOptions::task,
              {{"forecast", Task::kForecast, "From states up to time 0 to states after it."}})
      .doc("What is learnt from the files.");
}

}  // namespace jigsaw
