// The keys of what is done to values: transforms, ranges, the rim of a limited area.
#include <algorithm>

#include "base/text.h"
#include "config/config.h"
#include "fields/data_options.h"
#include "fields/variable_names.h"

namespace jigsaw::inline fields {

Time DataOptions::lead_of_inputs() const {
  if (!of_same_time() || variables.empty()) return 0;
  const std::optional<Time> lead = variables.front().lead;
  const bool one =
      std::ranges::all_of(variables, [&](const VariableOptions& other) { return other.lead == lead; });
  return one ? lead.value_or(0) : 0;
}

namespace {

std::vector<std::string> names_of(const std::vector<VariableOptions>& variables) {
  std::vector<std::string> names;
  for (const VariableOptions& variable : variables) {
    names.push_back(variable.name);
    for (const double level : variable.levels) names.push_back(Field{variable.name, level}.name());
  }
  return names;
}

void check_name(const std::string& key, const std::string& name, const std::vector<std::string>& known,
                const char* what, const Place& at) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  at.error(key, concat("names ", name, ", which is no ", what, did_you_mean(name, known),
                       "; known: ", join(known, ", ")));
}

bool is_component(const DataOptions& o, const std::string& variable) {
  if (!o.vector_components) return is_vector_component(variable);
  return std::find(o.vector_components->begin(), o.vector_components->end(), variable) !=
         o.vector_components->end();
}

}  // namespace

Between DataOptions::between_of(const Field& field) const {
  const auto found = std::ranges::find(forcing_variables, field.variable, &VariableOptions::name);
  return found == forcing_variables.end() ? forcing_times : found->times.value_or(forcing_times);
}

std::optional<double> DataOptions::fill_of(const Field& field) const {
  return said_of_field(fill, field);
}

std::optional<double> DataOptions::missing_of(const Field& field) const {
  return said_of_field(missing, field);
}

std::optional<SummedSince> DataOptions::summed_since(const Field& field) const {
  return said_of_field(deaccumulate, field);
}

Transform DataOptions::transform_of(const Field& field) const {
  return of_field(transforms, field);
}

ValueRange DataOptions::range_of(const Field& field) const {
  return of_field(clamp, field);
}

IntensityOptions DataOptions::intensity_of(const Field& input) const {
  return of_field(intensities, input);
}

std::vector<std::string> DataOptions::target_names() const {
  std::vector<std::string> names = of_same_time() ? std::vector<std::string>() : names_of(variables);
  const std::vector<std::string> more = names_of(diagnostic);
  names.insert(names.end(), more.begin(), more.end());
  return names;
}

void declare_values(Keys<DataOptions>& keys) {
  const Condition of_forecasts = here("task").is("forecast") && here("dims").is(Json::array());
  keys.add("member", &DataOptions::member)
      .counts_where(of_forecasts)
      .doc(
          "Which member of an ensemble is taken, by its number along the dimension `number` (or realization, "
          "member, ensemble) of the files, which counts from 0 where it has no coordinate; \"all\": each "
          "member is a series of samples of its own, and each "
          "time of theirs as many samples; null where the files hold one at most.");
  keys.add("forcing_times", &DataOptions::forcing_times)
      .counts_where(here("forcing_variables").is_given())
      .doc(
          "What holds between the times of data.forcing_variables, where the files have them seldom, as "
          "monthly sea surface temperatures, and beyond them; `times` of a variable says it for that one "
          "alone.");
  keys.add("makani", &DataOptions::makani)
      .counts_where(of_forecasts)
      .doc(
          "What yearly files hold that name neither dimensions nor channels, as Makani takes them: one data "
          "set [time, channel, latitude, longitude] in each, named by its year. Of no use where "
          "annotate_dataset.py was run.");
  keys.add("boundary_width", &DataOptions::boundary_width)
      .at_least(0)
      .counts_where(of_forecasts)
      .doc(
          "Rows and columns along the edge of a limited area whose prognostic variables are given at all "
          "times: rollouts take them from the files, forecasts that are written hold them, and neither loss "
          "nor scores count them. Where longitudes close the circle these are rows only. 0: none.");
  keys.add("fill", &DataOptions::fill)
      .counts_where(of_forecasts)
      .doc(
          "What missing values of a variable, or of one of its fields, become when they are read, in the "
          "unit "
          "of the files: {\"sithick\": 0} where ice that is not there has no thickness. Inputs, targets and "
          "statistics then have that number; data.masks still say where it was missing.");
  keys.add("missing", &DataOptions::missing)
      .counts_where(of_forecasts)
      .doc(
          "A number that stands for missing values of a variable, or of one of its fields, beside those that "
          "the files declare, in their unit: {\"thetao\": 0, \"so\": 0} where land is written as 0.");
  keys.add("deaccumulate", &DataOptions::deaccumulate)
      .counts_where(of_forecasts)
      .doc(
          "Variables, or single fields of them, of which the files hold running sums, as of rain or "
          "radiation: {\"tp\": \"day\", \"RAINNC\": \"start\"}. A state is then the sum over the step that "
          "ends at its time: the difference from the value a step before, data.time_step, or the usual step "
          "of its times where that is 0. What data.missing says is of the values of the files, what "
          "data.fill, data.transforms and data.clamp say of the differences.");
  keys.add("transforms", &DataOptions::transforms)
      .counts_where(here("task").is_one_of({"forecast", "map"}))
      .doc(
          "What is done to the values of a variable, or of one of its fields or channels, as in t_850, "
          "before they are normalised; statistics, increments and the loss are of the transformed values. "
          "Forecasts, predicted images and scores are in the unit of the files.");
  keys.add("clamp", &DataOptions::clamp)
      .counts_where(here("task").is_one_of({"forecast", "map"}) && here("classes").is(0))
      .doc(
          "Ranges that predictions of a variable, field or channel are kept in, in the unit of the files: "
          "{\"tp\": [0, null]} has no negative rain. A part of the model's output: what lies beyond is "
          "brought to the end of the range and has no gradient.");
}

namespace {

/// @param all  names of all variables and fields
void check_sums(const DataOptions& o, const std::vector<std::string>& all, const Place& at) {
  if (o.deaccumulate.empty()) return;
  if (o.time_step.month) {
    at.error("deaccumulate",
             "is of times that are one step apart, and data.time_step is \"month\"; leave it out, and write "
             "files with the sum of each month");
  }
  const auto among = [](const std::vector<VariableOptions>& variables, const std::string& name) {
    const std::vector<std::string> names = names_of(variables);
    return std::ranges::find(names, name) != names.end();
  };
  for (const auto& [name, since] : o.deaccumulate) {
    check_name("deaccumulate", name, all, "variable or field", at);
    if (among(o.constants, name))
      at.error("deaccumulate", concat("names ", name, ", which is of data.static: constant, and no sum"));
    for (const auto* list : {&o.variables, &o.diagnostic, &o.forcing_variables}) {
      for (const VariableOptions& variable : *list) {
        if (!variable.lead || !among({variable}, name)) continue;
        at.error("deaccumulate",
                 concat("names ", name,
                        ", whose `lead` takes one state of each forecast: sums of one forecast and "
                        "the next have no difference; write files with the sum over the step"));
      }
    }
    for (const VariableOptions& variable : o.forcing_variables) {
      if (!among({variable}, name) || o.between_of({variable.name, {}}) == Between::kNothing) continue;
      at.error(
          "deaccumulate",
          concat("names ", name, ", of data.forcing_variables, which is given between its times; the ",
                 "differences of sums are there at times that the files hold alone (\"times\": \"exact\")"));
    }
    const Time step = o.time_step.every;
    if (since != SummedSince::kDay || step == 0 || kDay % step == 0) continue;
    at.error("deaccumulate", concat("has sums of ", name, " that begin anew every day, and data.time_step, ",
                                    duration_text(step), ", does not divide it"));
  }
}

}  // namespace

void check_values(const DataOptions& o, const Place& at) {
  const std::vector<std::string> targets = o.target_names();
  std::vector<std::string> all;
  for (const std::vector<VariableOptions>* more :
       {&o.variables, &o.diagnostic, &o.constants, &o.forcing_variables}) {
    const std::vector<std::string> names = names_of(*more);
    all.insert(all.end(), names.begin(), names.end());
  }
  std::vector<std::string> variables;
  for (const auto* list : {&o.variables, &o.diagnostic, &o.constants, &o.forcing_variables})
    for (const VariableOptions& variable : *list) variables.push_back(variable.name);
  for (const auto& [name, method] : o.regrid.variables)
    check_name("regrid.variables", name, variables, "variable", at);
  for (const auto& [name, range] : o.clamp) check_name("clamp", name, targets, "target", at);
  for (const auto& [name, number] : o.fill) check_name("fill", name, all, "variable or field", at);
  for (const auto& [name, number] : o.missing) check_name("missing", name, all, "variable or field", at);
  check_sums(o, all, at);
  for (const auto& [name, transform] : o.transforms) {
    check_name("transforms", name, all, "variable or field", at);
    const std::string variable = name.substr(0, name.rfind('_'));
    if (!transform.linear() && (is_component(o, name) || is_component(o, variable))) {
      at.error("transforms", concat("gives ", name,
                                    " a transform of values that are not below 0, and it is a component of a "
                                    "vector; see data.vector_components"));
    }
  }
}

}  // namespace jigsaw::inline fields
