#include "fields/data_options.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/text.h"
#include "config/config.h"
#include "fields/data_forms.h"

namespace jigsaw::inline fields {

const char* name(ImageDim dim) {
  switch (dim) {
    case ImageDim::kSample:
      return "sample";
    case ImageDim::kTime:
      return "time";
    case ImageDim::kDepth:
      return "depth";
    case ImageDim::kHeight:
      return "height";
    case ImageDim::kWidth:
      return "width";
    case ImageDim::kChannel:
      return "channel";
  }
  fail("unknown dimension");
}

std::vector<ImageDim> DataOptions::space() const {
  std::vector<ImageDim> result;
  std::copy_if(dims.begin(), dims.end(), std::back_inserter(result), is_spatial);
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<Period> periods_of(const std::vector<DataPart>& parts, Calendar calendar,
                               const std::string& key) {
  std::vector<Period> periods;
  for (const DataPart& part : parts) periods.push_back(std::get<DatePeriod>(part).in(calendar, key));
  return periods;
}

namespace {

/// Whether every name is that of a variable of forecasts.
void check_vector_components(const DataOptions& o, const Place& at) {
  if (!o.vector_components) return;
  for (const std::string& component : *o.vector_components) {
    std::string known;
    bool found = false;
    for (const std::vector<VariableOptions>* variables : {&o.variables, &o.constants, &o.forcing_variables}) {
      for (const VariableOptions& variable : *variables) {
        found = found || variable.name == component;
        known += (known.empty() ? "" : ", ") + variable.name;
      }
    }
    if (!found)
      at.error("vector_components", concat("names ", component, ", which is no input; inputs are ", known));
  }
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
        "Sine and cosine of the part of the year passed: 2 channels."},
       {"sin_cos_latitude", ForcingKind::kSinCosLatitude, "Sine and cosine of the latitude: 2 channels."},
       {"sin_cos_longitude", ForcingKind::kSinCosLongitude,
        "Sine and cosine of the longitude, on any grid: 2 channels."},
       {"cos_zenith_angle", ForcingKind::kCosZenithAngle,
        "Cosine of the sun's zenith angle, below 0 at night, at time 0 and at the first target: 2 channels."},
       {"insolation", ForcingKind::kInsolation,
        "What the sun sends to the top of the atmosphere over the solar constant, at time 0 and at the first "
        "target: 2 channels."},
       {"local_solar_time", ForcingKind::kLocalSolarTime,
        "Sine and cosine of the local mean solar time, at time 0 and at the first target: 4 channels."}}));
}

constexpr std::int64_t kMostSteps = 1'000'000;

/// With dates and degrees.
Condition of_forecasts() {
  return here("task").is("forecast") && here("dims").is(Json::array());
}
Condition of_sequences() {
  return here("task").is("forecast") && here("dims").is_given();
}
void declare_inputs(Keys<DataOptions>& keys) {
  keys.add("files", &DataOptions::files)
      .changeable()
      .doc(
          "NetCDF and GRIB files and Zarr stores, of images also HDF5 and NIfTI files, as names or patterns "
          "(*, ?), relative to the configuration's folder, else to the working folder. Times and variables "
          "of forecasts may be spread over the files, each of which must have the points of the first one's "
          "grid, unless data.regrid brings fields to it; of images each file holds every variable. See "
          "docs/data.md.")
      .required()
      .not_empty();
  keys.add("allow_external", &DataOptions::allow_external)
      .changeable()
      .doc(
          "Whether HDF5 files may have values in other files, by external links, external storage or virtual "
          "data sets, and Zarr stores chunks where links lead that leave the store. Whoever made the files "
          "then chooses what is read.");
  keys.add("workers", &DataOptions::workers)
      .changeable()
      .at_least(0)
      .at_most(256)
      .doc(
          "Threads of each rank that read the batches of the steps to come, and augment them. Samples are "
          "the same with any number. Each holds a batch, as far as 1 GiB has room for them. 0: two, or one "
          "on a machine of one core.");
  keys.add("shape", &DataOptions::shape)
      .doc(
          "Rows and columns of the grid, or the extents of each image or state, or [] to take them from the "
          "files. "
          "With it a model can be planned without files; they are checked against it.")
      .range(1, kLongestAxis)
      .must("be [] or one number per spatial axis, such as [721, 1440]",
            [](const auto& shape) { return shape.size() <= 3; });
  keys.add("variables", &DataOptions::variables, variables_form())
      .doc(
          "The prognostic variables, both inputs and targets (of data.lead_hours 0 inputs only), with levels "
          "of pressure in hPa. Of images the inputs: names of data sets, with their groups, and channels as "
          "levels.")
      .required()
      .not_empty();
  keys.add("diagnostic", &DataOptions::diagnostic, variables_form())
      .counts_where(of_forecasts())
      .doc("Variables that are targets only; of data.lead_hours 0 the only ones.");
  keys.add("static", &DataOptions::constants, variables_form())
      .counts_where(here("task").is("forecast"))
      .doc(
          "Variables that are inputs and constant in time. Of sequences data sets with the dimensions of "
          "data.dims but \"time\", or without \"sample\", too, where all sequences share it, or without "
          "those of space, as a number of each sequence is.");
  keys.add("forcings", &DataOptions::forcings, forcings_form())
      .counts_where(of_forecasts())
      .doc("Inputs known for every place and time without files.")
      .must("name nothing twice", distinct<ForcingKind>);
  keys.add("forcing_variables", &DataOptions::forcing_variables, variables_form())
      .counts_where(of_forecasts())
      .doc(
          "Variables of the files that are inputs, are given at all times and are not predicted, such as sea "
          "surface temperature, sea ice or greenhouse gases: each at time 0 and at the first target, in "
          "rollouts at those of their lead. `predict` needs them at all its times.");
  keys.add("vector_components", &DataOptions::vector_components, auto_or<std::vector<std::string>>())
      .counts_where(of_forecasts())
      .doc(
          "The variables that are eastward or northward components of vectors, as winds are: beyond a pole, "
          "where a layer's padding_mode crosses it, their sign is the other one. \"auto\" for those of the "
          "usual names: u and v, u10, 10u, ua, uas, eastward_wind, u_component_of_wind, "
          "10m_u_component_of_wind and the like.");
}

bool has_ends(const std::vector<double>& ends) {
  return ends.empty() || ends.size() == 2;
}

/// Which of the files' points and times are taken.
void declare_selection(Keys<DataOptions>& keys) {
  keys.add("region", &DataOptions::region)
      .counts_where(of_forecasts())
      .doc("The part of the grid that is used.");
  keys.add("every", &DataOptions::every, one_or_list<std::int64_t>())
      .counts_where(of_forecasts())
      .at_least(1)
      .doc("Every how many rows and columns are used, of the region from its first row and column on.")
      .must("be one number, or two, of rows and columns",
            [](const auto& every) { return every.size() == 1 || every.size() == 2; });
  keys.add("regrid", &DataOptions::regrid)
      .counts_where(of_forecasts())
      .doc(
          "How fields on other grids of latitudes and longitudes are brought to one grid: that of the first "
          "target in the files (of data.lead_hours 0, where they hold none, of the first of data.static), or "
          "one that is named here. data.region and data.every choose among its points.");
  keys.add("cell_area", &DataOptions::cell_area)
      .counts_where(of_forecasts())
      .doc(
          "The areas of cells by which points count, in scores, and in the loss where loss.area_weighted is "
          "true: the name of a variable of the files on rows and columns, constant in time and in any unit, "
          "such as areacello or TAREA; missing ones are 0. \"auto\": those between the two-dimensional "
          "latitudes and longitudes of the points. \"\": rows count by their area on grids of latitudes and "
          "longitudes, on others all points alike.");
  keys.add("time_step", &DataOptions::time_step)
      .counts_where(of_forecasts())
      .doc(
          "Hours between the times that are used, or \"15 min\": those at multiples of it since 1970-01-01 "
          "00:00 of the "
          "files' calendar; 0: all that the files hold. Fields that data.forcing_times gives between "
          "their times keep all of them. \"month\": the files hold one state a month, whose time stands for "
          "that month; a month is 720 hours in data.lead_hours and data.input_hours then, whatever its "
          "days.");
  keys.add("time_tolerance", &DataOptions::time_tolerance, duration_form(0, kMostDuration))
      .counts_where(of_forecasts())
      .doc(
          "How far times of the files may be from a multiple of data.time_step, before or behind it, and "
          "still be taken for "
          "it: \"30 s\", or hours. Scans of satellites and radars are seldom on time. Of several near one "
          "multiple the "
          "nearest is taken. Forecasts have the multiples for times. At most half of the step.");
  keys.choice(
          "overlap", &DataOptions::overlap,
          {{"equal", Overlap::kEqual, "All have to hold the same values; where they do not, the run ends."},
           {"first", Overlap::kFirst, "The first of them in the order of their names wins."},
           {"last", Overlap::kLast, "The last wins."}})
      .counts_where(of_forecasts())
      .doc("What holds where several files have a field at the same time, or one file twice.");
  keys.add("masks", &DataOptions::masks)
      .counts_where(of_forecasts())
      .doc(
          "Variables, inputs of their own, that also have an input channel that is 1 where they are there at "
          "time 0 and 0 where they are missing.")
      .must("name nothing twice", distinct<std::string>);
}

void check_selection(const DataOptions& o, const Place& at) {
  for (const std::string& mask : o.masks) {
    const auto is_input = [&](const std::vector<VariableOptions>& variables) {
      return std::any_of(variables.begin(), variables.end(),
                         [&](const VariableOptions& variable) { return variable.name == mask; });
    };
    if (!is_input(o.variables) && !is_input(o.constants) && !is_input(o.forcing_variables)) {
      at.error("masks",
               concat("names ", mask,
                      ", which is not among data.variables, data.static and data.forcing_variables"));
    }
  }
  if (2 * o.time_tolerance > o.time_step.every) {
    at.error("time_tolerance",
             o.time_step.month ? "has no effect on months, of which each time is taken; leave it out"
             : o.time_step.every == 0
                 ? "counts from multiples of data.time_step; give that one, too, as \"10 min\""
                 : concat("must be at most half of data.time_step, ", duration_text(o.time_step.every)));
  }
  const Time step = o.time_step.month ? kMonth : o.time_step.every;
  if (step == 0) return;
  const std::string of =
      o.time_step.month ? concat(kMonth / kHour, ", the hours of a month where data.time_step is \"month\"")
                        : concat("data.time_step, ", duration_text(step));
  if (o.lead_time % step != 0) at.error("lead_hours", "must be a multiple of " + of);
  for (const Time offset : o.input_times)
    if (offset % step != 0) at.error("input_hours", "must be multiples of " + of);
}

void declare_windows(Keys<DataOptions>& keys) {
  keys.add("input_hours", &DataOptions::input_times,
           std::make_unique<ListForm<Time>>(duration_form(-kMostDuration, 0)))
      .counts_where(of_forecasts())
      .doc("The times of the prognostic inputs in hours relative to time 0, or as \"-5 min\".")
      .must("hold 0, the time that the forecast starts from",
            [](const auto& times) { return std::find(times.begin(), times.end(), 0) != times.end(); })
      .must("name no hour twice", distinct<Time>);
  keys.add("lead_hours", &DataOptions::lead_time, duration_form(0, kMostDuration))
      .counts_where(of_forecasts())
      .doc(
          "Hours from time 0 to the target, and from each target of a rollout to the next; or \"5 min\". 0: "
          "the "
          "targets, data.diagnostic, are of the same time, and data.variables are inputs only, as for "
          "downscaling.");
  keys.add("input_steps", &DataOptions::input_steps)
      .counts_where(of_sequences())
      .range(-kMostSteps, 0)
      .doc("The states of a sequence that are inputs, in steps from time 0, such as [-1, 0].")
      .must("hold 0, the state that the forecast starts from",
            [](const auto& steps) { return std::find(steps.begin(), steps.end(), 0) != steps.end(); })
      .must("name no step twice", distinct<std::int64_t>);
  keys.add("lead_steps", &DataOptions::lead_steps)
      .counts_where(of_sequences())
      .range(1, kMostSteps)
      .doc("Steps of a sequence from time 0 to the target, and from each target of a rollout to the next.");
  keys.choice("predict", &DataOptions::predict,
              {{"increment", Predict::kIncrement,
                "The change from time 0 to the target, scaled by its own standard deviation; of denoise what "
                "takes the noise away, scaled by noise_sigma."},
               {"state", Predict::kState,
                "The state at the target time, normalised; of denoise the image without noise."}})
      .counts_where(here("task").is_one_of({"forecast", "denoise"}))
      .doc("What the model predicts of prognostic variables; map always predicts the targets themselves.");
  keys.add("train", &DataOptions::train, one_or_list(part_form()))
      .doc(
          "The training period, or a list of periods. A window belongs to a period when its time 0 and all "
          "its targets lie in it; earlier inputs may precede. Both end dates count whole days. Of images: "
          "indices along dimensions, both ends included, or a list of such; and which images by \"sample\", "
          "their numbers, or by their files: {\"case\": [\"case_000\", \"case_01*\"]}, names or patterns, "
          "or {\"file\": \"splits_final.json\", \"fold\": 0}, a list of {\"train\": […], \"val\": […]} "
          "as nnU-Net has it, relative to the configuration's folder. See docs/images.md. Of sequences the "
          "same by \"sample\", numbers of sequences, \"case\" or \"file\", and by \"time\", numbers of "
          "states: "
          "{\"sample\": [0, 7]}, {\"time\": [0, 79]}; windows as those of periods.")
      .required()
      .not_empty();
  keys.add("valid", &DataOptions::valid, one_or_list(part_form()))
      .changeable()
      .doc(
          "The validation period, or a list of periods, or slices of images, as train has; none by default. "
          "Without validations (validation.every 0) it is what predict and evaluate take, and checked all "
          "the same.");
}

void check_forecast(const DataOptions& o, const Place& at) {
  for (const ForcingKind kind : {ForcingKind::kTimeOfDay, ForcingKind::kCosZenithAngle,
                                 ForcingKind::kInsolation, ForcingKind::kLocalSolarTime}) {
    if (o.time_step.month && std::ranges::find(o.forcings, kind) != o.forcings.end())
      at.error(
          "forcings",
          "holds what differs within a day, and data.time_step is \"month\"; day_of_year is of months, too");
  }
  if (o.shape.size() == 1) at.error("shape", "must be [rows, columns] for fields with dates");
  if (o.of_same_time() && o.diagnostic.empty())
    at.error("diagnostic", "must name the targets where data.lead_hours is 0");
  if (o.of_same_time() && o.boundary_width > 0)
    at.error("boundary_width", "must be 0 where data.lead_hours is 0, for nothing is predicted again");
  check_vector_components(o, at);
  check_selection(o, at);
  check_values(o, at);
}

void check_times(const DataOptions& o, const Place& at) {
  for (const auto& [key, variables] :
       {std::pair{"variables", &o.variables}, std::pair{"diagnostic", &o.diagnostic},
        std::pair{"static", &o.constants}, std::pair{"targets", &o.targets}}) {
    for (std::size_t i = 0; i < variables->size(); ++i) {
      if (!(*variables)[i].times) continue;
      at.key(key).item(i).error("times", "is for data.forcing_variables alone; leave it out here");
    }
  }
}

void check_leads(const DataOptions& o, const Place& at) {
  const bool in_time = !o.of_images() && !o.of_sequences();
  for (const auto& [key, variables] :
       {std::pair{"variables", &o.variables}, std::pair{"diagnostic", &o.diagnostic},
        std::pair{"static", &o.constants}, std::pair{"targets", &o.targets},
        std::pair{"forcing_variables", &o.forcing_variables}}) {
    for (std::size_t i = 0; i < variables->size(); ++i) {
      if (!(*variables)[i].lead) continue;
      if (!in_time || variables == &o.constants)
        at.key(key).item(i).error("lead", "is for fields with dates that change in time; leave it out here");
      if (o.time_step.month)
        at.key(key).item(i).error("lead",
                                  "is for states and not for months; make of the forecasts of one lead "
                                  "files of months, and leave it out here");
    }
  }
}

void check_task(const DataOptions& o, const Place& at) {
  check_times(o, at);
  check_leads(o, at);
  if (o.of_sequences() && std::ranges::find(o.dims, ImageDim::kTime) == o.dims.end())
    at.error("dims", "must name \"time\" where data.task is \"forecast\"");
  for (const auto& [key, parts] : {std::pair{"train", &o.train}, std::pair{"valid", &o.valid}}) {
    for (const DataPart& part : *parts) {
      if (std::holds_alternative<DatePeriod>(part) == !(o.of_images() || o.of_sequences())) continue;
      at.error(key,
               o.of_images() ? "must hold slices of images, such as {\"depth\": [0, 74]}, for this data.task"
               : o.of_sequences()
                   ? "must hold parts of sequences, such as {\"sample\": [0, 7]} or {\"time\": [0, 79]}, "
                     "where data.dims is given"
                   : "must hold pairs of dates, such as [\"2019-03-01\", \"2019-03-24\"], for forecasts");
    }
  }
  if (o.of_sequences()) return check_sequences(o, at);
  if (!o.of_images()) return check_forecast(o, at);
  check_images(o, at);
}

/// An empty one would name the folder of the configuration.
void check_names(const std::vector<std::string>& files, const Place& at) {
  if (std::ranges::find(files, "") != files.end())
    at.error("files", "must hold names or patterns of files, and one of them is \"\"");
}

}  // namespace

void declare(Keys<VariableOptions>& keys) {
  keys.add("name", &VariableOptions::name)
      .doc(
          "The variable's name in the files, its standard_name, or another usual name of it: t2m, 2t, "
          "2m_temperature and tas are one.")
      .required()
      .not_empty();
  keys.add("levels", &VariableOptions::levels, std::make_unique<ListForm<double>>(level_form()))
      .doc(
          "Its levels by their values: numbers, in hPa of pressures, in m of heights and depths, else in the "
          "unit of the files; or pressures with their unit, such as \"500 hPa\" or \"50000 Pa\"; [] for a "
          "variable without levels.");
  keys.add("data_set", &VariableOptions::data_set)
      .doc(
          "Its name in the files, where the variable is to have another, as of two data sets of one name; "
          "\"\": name. Of images the name of the data set.");
  keys.add("files", &VariableOptions::files)
      .changeable()
      .doc(
          "The files that hold this variable, as data.files names them; [] for those of data.files. Those of "
          "images hold the same images: files of one name (what * stands for) are of one case, and where no "
          "name is alike the order of their names counts.");
  keys.add("times", &VariableOptions::times)
      .doc(
          "Of data.forcing_variables: what holds between the times of this one; null: as data.forcing_times "
          "says.");
  keys.add("lead", &VariableOptions::lead,
           std::make_unique<OptionalForm<Time>>(duration_form(0, kMostDuration), nullptr))
      .doc(
          "Of files that hold forecasts by start and lead (time and step, forecast_reference_time and "
          "lead_time), which lead is taken: the state at a time is that of the forecast which began "
          "this much earlier, in hours or as \"30 min\". null: the files hold states.");
  keys.check([](const VariableOptions& variable, const Place& at) { check_names(variable.files, at); });
}

void check_ends(const RegionOptions& region, const Place& at) {
  const std::vector<double>&latitude = region.latitude, &longitude = region.longitude;
  if (!latitude.empty() && latitude[0] > latitude[1]) {
    at.error("latitude", concat("must be [] or [south, north], and ", latitude[0], " is north of ",
                                latitude[1], "; write [", latitude[1], ", ", latitude[0], "]"));
  }
  for (const auto& [key, ends] : {std::pair{"latitude", &latitude}, std::pair{"longitude", &longitude}}) {
    if (ends->empty() || (*ends)[0] != (*ends)[1]) continue;
    at.error(key, concat("must be [] or two ends that differ, and both are ", (*ends)[0]));
  }
}

void declare(Keys<RegionOptions>& keys) {
  keys.add("latitude", &RegionOptions::latitude)
      .range(-90, 90)
      .doc("Southern and northern end in degrees, both included; [] for all.")
      .must("be [] or [south, north]", has_ends);
  keys.add("longitude", &RegionOptions::longitude)
      .range(-360, 360)
      .doc(
          "Western and eastern end in degrees east, both included and in any convention, from the first "
          "eastward to the second: [-10, 20], [350, 20] and [170, -170] are possible; [] for all.")
      .must("be [] or [west, east]", has_ends);
  keys.check(check_ends);
}

void declare(Keys<DataOptions>& keys) {
  declare_inputs(keys);
  declare_windows(keys);
  declare_selection(keys);
  declare_values(keys);
  keys.add("normalization", &DataOptions::normalization)
      .changeable()
      .idle_unless(here("intensity").is("data_set") || here("classes").is(0))
      .doc(
          "Where mean and standard deviation of each variable come from. \"auto\": they are computed over "
          "the training period. null: the same, but a run that begins with --init-from takes those of that "
          "checkpoint. Else the name of a file with them (docs/statistics.md), or of a checkpoint, relative "
          "to the configuration's folder, else to the working folder.");
  keys.choice("task", &DataOptions::task,
              {{"forecast", Task::kForecast, "From states up to time 0 to states after it."},
               {"denoise", Task::kDenoise, "From images with normal noise to the images without."},
               {"map", Task::kMap,
                "From the images of some variables to those of others (data.targets), numbers or labels."}})
      .doc("What is learnt from the files.");
  declare_images(keys);
  keys.check([](const DataOptions& o, const Place& at) {
    check_names(o.files, at);
    if (o.normalization == "")
      at.error("normalization", "must be null, \"auto\" or the name of a file or a checkpoint, not \"\"");
  });
  keys.check(check_task);
}

}  // namespace jigsaw::inline fields
