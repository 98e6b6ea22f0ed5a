#include "fields/data_options.h"

#include <algorithm>
#include <iterator>
#include <set>

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

/// Points along an axis; the coordinates of as many fit into memory anywhere.
constexpr std::int64_t kLongestAxis = 10'000'000;

template <typename T>
bool distinct(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return std::adjacent_find(values.begin(), values.end()) == values.end();
}

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
Condition of_images() {
  return here("task").is_one_of({"denoise", "map"});
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
          "Rows and columns of the grid, or the extents of each image, or [] to take them from the files. "
          "With it a model can be planned without files; they are checked against it.")
      .range(1, kLongestAxis)
      .must("be [] or one number per spatial axis, such as [721, 1440]",
            [](const auto& shape) { return shape.empty() || shape.size() == 2 || shape.size() == 3; });
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
      .counts_where(of_forecasts())
      .doc("Variables that are inputs and constant in time.");
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

void declare_images(Keys<DataOptions>& keys) {
  const std::string sample = "Images, volumes or sequences of their own; without it each file holds one.";
  keys.add("dims", &DataOptions::dims, std::make_unique<ListForm<ImageDim>>(dim_form(sample)))
      .doc(
          "What the dimensions of the data sets of images are, in their order in the files. A data set may "
          "lack \"channel\". Required by the tasks denoise and map. With the task forecast: those of "
          "sequences "
          "of states, with \"time\", as [\"sample\", \"time\", \"depth\", \"height\", \"width\"], which have "
          "neither dates nor latitudes and longitudes (docs/data.md); [] for fields that do.")
      .must("name nothing twice", distinct<ImageDim>)
      .must("hold \"height\" and \"width\", as [\"depth\", \"height\", \"width\"] does",
            [](const auto& dims) {
              const auto has = [&](ImageDim dim) {
                return std::find(dims.begin(), dims.end(), dim) != dims.end();
              };
              return dims.empty() || (has(ImageDim::kHeight) && has(ImageDim::kWidth));
            });
  keys.add("targets", &DataOptions::targets, variables_form())
      .counts_where(here("task").is("map"))
      .doc("The targets of the task map.");
  keys.add("crop", &DataOptions::crop)
      .counts_where(of_images())
      .range(1, kLongestAxis)
      .doc(
          "Extents of the crops that images are trained on, [depth, height, width] or [height, width], each "
          "from a random place of a training part; [] to train on whole parts. Validation covers its parts "
          "with tiles of this size.");
  keys.add("pad", &DataOptions::pad)
      .counts_where(of_images() && here("crop").is_given())
      .doc(
          "Whether images and parts may be smaller than data.crop: they lie in its middle, beyond them "
          "inputs "
          "are 0, the mean, and targets do not count, as where `predict` meets a small image. Else they are "
          "refused.");
  keys.add("alignment", &DataOptions::alignment)
      .counts_where(of_images())
      .changeable()
      .at_least(0)
      .doc(
          "So far apart the corners of an image may lie in the world from those of the first variable's "
          "image of the same case, of the shortest edge of a voxel, where both files say where they lie "
          "(NIfTI's sform or qform, an attribute affine). null: they are not compared.");
  keys.add("spacing", &DataOptions::spacing)
      .counts_where(of_images())
      .above(0)
      .doc(
          "Distance of points in mm, [depth, height, width] or [height, width], to which all images are "
          "brought from that of their files, linearly, labels by the nearest point; crops and slices count "
          "the new points, and predict brings its results back to those of the files. []: they stay as they "
          "are.");
  keys.add("flips", &DataOptions::flips, std::make_unique<ListForm<ImageDim>>(dim_form(sample)))
      .counts_where(of_images())
      .doc("Spatial dimensions along which every second training sample, at random, is mirrored.")
      .must("name spatial dimensions, each once", [](const auto& flips) {
        return distinct(flips) && std::all_of(flips.begin(), flips.end(), is_spatial);
      });
  keys.add("noise_sigma", &DataOptions::noise_sigma)
      .counts_where(here("task").is("denoise"))
      .above(0)
      .doc("Standard deviation of the normal noise of the task denoise, in the unit of the variables.");
  keys.add("classes", &DataOptions::classes)
      .counts_where(here("task").is("map"))
      .at_least(0)
      .doc(
          "How many classes the labels name, 0 to classes − 1, where the target of map is labels; 0: it is "
          "numbers.");
  keys.add("labels", &DataOptions::labels,
           std::make_unique<ListForm<std::vector<std::int64_t>>>(one_or_list<std::int64_t>()))
      .counts_where(here("classes").above(0))
      .range(0, 32767)
      .doc(
          "Of each class in turn the number, or numbers, that label files have for it, where they are not 0 "
          "to "
          "classes − 1, or are to be one: [0, [1, 2], 4]. predict writes the first number of a class.");
  keys.add("regions", &DataOptions::regions,
           std::make_unique<ListForm<std::vector<std::int64_t>>>(one_or_list<std::int64_t>()))
      .counts_where(here("classes").above(0))
      .at_least(1)
      .doc(
          "Regions that the model predicts in place of the classes, each of one or several of them, which "
          "may "
          "overlap: [[1, 2, 3], [2, 3], 3]. Each is a channel of its own behind a sigmoid. predict writes "
          "the "
          "first class of the last region that a point is in, and class 0 where it is in none.");
  keys.add("ignore_index", &DataOptions::ignore_index)
      .counts_where(here("classes").above(0))
      .doc("The label of points that do not count; null: none.");
  keys.choice(
          "intensity", &DataOptions::intensity,
          {{"data_set", ImageIntensity::kDataSet,
            "Mean and standard deviation over the training parts (data.normalization)."},
           {"zscore", ImageIntensity::kZScore, "Mean and standard deviation of each image of its own."},
           {"percentiles", ImageIntensity::kPercentiles,
            "Two percentiles of each image, between which values become −1 to 1; those beyond are cut off."}})
      .counts_where(here("task").is("map"))
      .doc("What the inputs of images are normalised by.");
  keys.add("percentiles", &DataOptions::percentiles)
      .counts_where(here("intensity").is("percentiles"))
      .range(0, 100)
      .doc("The lower and the upper percentile of data.intensity.")
      .must("be two numbers, the lower one first",
            [](const auto& ends) { return ends.size() == 2 && ends[0] < ends[1]; });
  keys.add("augment", &DataOptions::augment)
      .counts_where(of_images())
      .doc("How training samples are changed at random: the same on every mesh, by step and sample.");
}

void check_forecast(const DataOptions& o, const Place& at) {
  for (const ForcingKind kind : {ForcingKind::kTimeOfDay, ForcingKind::kCosZenithAngle,
                                 ForcingKind::kInsolation, ForcingKind::kLocalSolarTime}) {
    if (o.time_step.month && std::ranges::find(o.forcings, kind) != o.forcings.end())
      at.error(
          "forcings",
          "holds what differs within a day, and data.time_step is \"month\"; day_of_year is of months, too");
  }
  if (o.of_same_time() && o.diagnostic.empty())
    at.error("diagnostic", "must name the targets where data.lead_hours is 0");
  if (o.of_same_time() && o.boundary_width > 0)
    at.error("boundary_width", "must be 0 where data.lead_hours is 0, for nothing is predicted again");
  check_vector_components(o, at);
  check_selection(o, at);
  check_values(o, at);
}

void check_augment(const DataOptions& o, const Place& at) {
  const AugmentOptions& augment = o.augment;
  const std::size_t axes = o.space().size();
  if (augment.rotation.size() > 1 && augment.rotation.size() != (axes == 3 ? 3U : 1U))
    at.error("augment.rotation", "must be one number for images in the plane");
  if (augment.foreground > 0 && o.classes == 0)
    at.error("augment.foreground", "needs labels, with data.classes");
  if (augment.foreground > 0 && o.crop.empty()) at.error("augment.foreground", "needs data.crop");
  const bool changes_inputs = !augment.gamma.empty() || augment.noise > 0 || augment.blur > 0;
  if (changes_inputs && o.task != Task::kMap)
    at.error("augment", "has gamma, noise or blur, which are for the task map");
}

void require_one_per_axis(const DataOptions& o, std::size_t size, const char* key, const Place& at) {
  const std::size_t axes = o.space().size();
  if (size == 0 || size == axes) return;
  at.error(key, concat("must have one number per spatial dimension of data.dims, ", axes, ", not ", size));
}

void check_sequences(const DataOptions& o, const Place& at) {
  require_one_per_axis(o, o.shape.size(), "shape", at);
  for (const auto& [key, parts] : {std::pair{"train", &o.train}, std::pair{"valid", &o.valid}}) {
    for (const DataPart& part : *parts) {
      for (const auto& [dim, range] : std::get<SliceRanges>(part).of) {
        if (is_spatial(dim))
          at.error(key, concat("takes slices of ", name(dim),
                               ", and forecasts are of whole fields; name \"sample\", \"time\" or \"case\""));
      }
    }
  }
}

void check_images(const DataOptions& o, const Place& at) {
  check_augment(o, at);
  if (o.dims.empty())
    at.error("dims", "must say what the dimensions are, as [\"depth\", \"height\", \"width\"]");
  if (std::ranges::find(o.dims, ImageDim::kTime) != o.dims.end())
    at.error("dims",
             "must not name \"time\" but where data.task is \"forecast\"; here each state of a "
             "sequence is an image of its own, a \"sample\"");
  const std::vector<ImageDim> space = o.space();
  require_one_per_axis(o, o.crop.size(), "crop", at);
  require_one_per_axis(o, o.spacing.size(), "spacing", at);
  require_one_per_axis(o, o.shape.size(), "shape", at);
  for (const ImageDim dim : o.flips) {
    if (std::find(space.begin(), space.end(), dim) == space.end()) {
      at.error("flips", concat("names ", name(dim), ", which data.dims lacks"));
    }
  }
  for (const auto& [key, parts] : {std::pair{"train", &o.train}, std::pair{"valid", &o.valid}}) {
    for (const DataPart& part : *parts) {
      for (const auto& [dim, range] : std::get<SliceRanges>(part).of) {
        if (dim == ImageDim::kTime) at.error(key, "takes slices of time, which images have not");
        if (is_spatial(dim) && std::find(space.begin(), space.end(), dim) == space.end()) {
          at.error(key, concat("takes slices of ", name(dim), ", which data.dims lacks"));
        }
      }
    }
  }
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

void check_labels(const DataOptions& o, const Place& at) {
  if (o.labels.empty() || o.classes == 0) return;
  if (std::ssize(o.labels) != o.classes) {
    at.error("labels", concat("must have an entry for each class, ", o.classes, " by data.classes, and has ",
                              o.labels.size()));
  }
  std::set<std::int64_t> seen;
  for (const std::vector<std::int64_t>& numbers : o.labels) {
    if (numbers.empty()) at.error("labels", "must name a number for each class, and an entry is []");
    for (const std::int64_t number : numbers) {
      if (!seen.insert(number).second) at.error("labels", concat("names the number ", number, " twice"));
      if (number == o.ignore_index)
        at.error("labels", concat("names the number ", number, ", which is data.ignore_index"));
    }
  }
}

void check_regions(const DataOptions& o, const Place& at) {
  for (std::size_t r = 0; r < o.regions.size() && o.classes > 0; ++r) {
    const std::vector<std::int64_t>& region = o.regions[r];
    if (region.empty()) at.error("regions", "must name a class for each region, and an entry is []");
    if (!distinct(region)) at.error("regions", concat("names a class twice in region ", r));
    for (const std::int64_t k : region) {
      if (k < o.classes) continue;
      at.error("regions", concat("names the class ", k, ", and those of classes ", o.classes, " are 0 to ",
                                 o.classes - 1));
    }
  }
  // A point is written as the first class of the last region that it is in.
  for (std::size_t r = 0; r < o.regions.size(); ++r) {
    for (std::size_t later = r + 1; later < o.regions.size() && !o.regions[r].empty(); ++later) {
      if (std::ranges::find(o.regions[later], o.regions[r].front()) == o.regions[later].end()) continue;
      at.error("regions",
               concat("must begin each region with a class that no later one has, for as that its "
                      "points are written: region ",
                      r, " begins with ", o.regions[r].front(), ", which region ", later, " has, too"));
    }
  }
}

void check_task(const DataOptions& o, const Place& at) {
  check_times(o, at);
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
  if (o.task == Task::kDenoise) {
    if (!o.noise_sigma) at.error("noise_sigma", "must be given for the task denoise, such as 200.0");
  } else if (o.targets.empty()) {
    at.error("targets", "must name the targets of the task map");
  }
  check_labels(o, at);
  check_regions(o, at);
  if (o.classes == 1) at.error("classes", "must be at least 2, or 0 for targets that are numbers");
  if (o.classes > 0 && o.targets.size() != 1)
    at.error("targets", "must be one variable of labels with data.classes");
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
          "Its levels by their values: numbers in hPa where they are levels of pressure, else in the unit of "
          "the files, or pressures with their unit, such as \"500 hPa\" or \"50000 Pa\"; [] for a variable "
          "without levels.");
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
