#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "config/keys.h"
#include "fields/augment_options.h"
#include "fields/channel_layout.h"
#include "fields/field.h"
#include "fields/intensity_options.h"
#include "fields/members.h"
#include "fields/transform.h"
#include "files/variable_file.h"
#include "grids/regrid_options.h"
#include "times/time_axis.h"

namespace jigsaw::inline fields {

/// What holds between the times of a field that is prescribed, and beyond them.
enum class Between {
  kNothing,
  kLatest,  ///< the state before, up to the last time
  kLinear,
  kHold,  ///< the state before, also behind the last time
  kCycle  ///< the times are of one year, which stands for every year; linear between them
};

/// A variable of the files, on some of its levels.
struct VariableOptions {
  std::string name;
  std::vector<double> levels;
  std::string data_set;               ///< its name in the files; "": `name`
  std::vector<std::string> files;     ///< those that hold it; empty: data.files
  std::optional<Between> times = {};  ///< of one that is prescribed, in place of data.forcing_times
  std::optional<Time> lead = {};      ///< of forecasts in its files; nothing where these hold states

  bool operator==(const VariableOptions&) const = default;
};

/// What is known of any place and time without files.
enum class ForcingKind {
  kLatitude,
  kLongitude,
  kTimeOfDay,
  kDayOfYear,
  kSinCosLatitude,
  kSinCosLongitude,
  kCosZenithAngle,
  kInsolation,
  kLocalSolarTime
};
/// What the model's output means: the state at the target time, or its difference from time 0.
enum class Predict { kState, kIncrement };
enum class Task { kForecast, kDenoise, kMap };

/// What the inputs of images are normalised by.
enum class ImageIntensity { kDataSet, kZScore, kZScoreNonzero, kPercentiles };

/// What a dimension of a data set of images, or of states in time, is. Spatial ones stand in this order in
/// fields.
enum class ImageDim { kSample, kTime, kDepth, kHeight, kWidth, kChannel };
const char* name(ImageDim dim);
/// Depth, height or width.
constexpr bool is_spatial(ImageDim dim) {
  return dim == ImageDim::kDepth || dim == ImageDim::kHeight || dim == ImageDim::kWidth;
}

/// Indices of an image's dimensions, first to last, both included; dimensions not named are whole. And of
/// which images, in place of a range of samples.
struct SliceRanges {
  std::map<ImageDim, std::pair<std::int64_t, std::int64_t>> of;
  std::vector<std::string> cases = {};  ///< their names, or patterns with *; empty: all
  /// A JSON file that says the cases, a list of folds as nnU-Net's splits_final.json; "": none.
  std::string folds = "";
  std::int64_t fold = 0;  ///< number of it
  /// Which list of the fold; "": "train" in data.train, "val" in data.valid. Not of the configuration.
  std::string list = "";

  bool operator==(const SliceRanges&) const = default;
};
/// {"depth": [0, 74]}, {"case": ["a", "b"]}.
std::string to_text(const SliceRanges& ranges);

/// Since when running sums are summed up.
enum class SummedSince {
  kDay,   ///< 00:00 of the day; at 00:00 the sum is that of the day before
  kStart  ///< the start of the simulation
};

/// Which file a field is taken from at a time that several have.
enum class Overlap { kEqual, kFirst, kLast };

/// Which times of the files are used.
struct TimeStep {
  Time every = 0;      ///< those at multiples of it; 0: all
  bool month = false;  ///< each stands for its month, as of month_of()

  bool operator==(const TimeStep&) const = default;
};

/// A part of the globe; [] for all latitudes or longitudes.
struct RegionOptions {
  std::vector<double> latitude, longitude;  ///< [south, north] and [west, east] in degrees

  bool operator==(const RegionOptions&) const = default;
};

/// A part of the data: a period of forecasts, or slices of images.
using DataPart = std::variant<DatePeriod, SliceRanges>;

/// The configuration's section `data`.
struct DataOptions {
  std::vector<std::string> files;
  bool allow_external = false;
  std::int64_t workers = 0;         ///< threads that read ahead; 0: as many as suit
  std::vector<std::int64_t> shape;  ///< extents of space; empty when the files say
  std::vector<VariableOptions> variables, diagnostic, constants, forcing_variables;
  std::vector<ForcingKind> forcings;
  std::optional<std::vector<std::string>> vector_components;  ///< variables; nothing for "auto"
  std::vector<Time> input_times = {0};                        ///< from time 0
  Time lead_time = 6 * kHour;
  std::vector<std::int64_t> input_steps = {0};  ///< of sequences, in place of input_times
  std::int64_t lead_steps = 1;                  ///< of sequences, in place of lead_time
  Predict predict = Predict::kIncrement;
  std::vector<DataPart> train, valid;
  RegionOptions region;
  std::vector<std::int64_t> every = {1};  ///< of rows and columns; one number for both
  RegridOptions regrid;
  std::string cell_area;  ///< "": by rows; "auto", or a variable with the areas of cells
  TimeStep time_step;
  Time time_tolerance = 0;  ///< from times of the files to the multiples of time_step that they are taken for
  Overlap overlap = Overlap::kEqual;
  MemberChoice member;   ///< of an ensemble
  MakaniOptions makani;  ///< of files that do not say what they hold
  Between forcing_times = Between::kNothing;
  std::vector<std::string> masks;         ///< variables with a channel that says where they are missing
  std::int64_t boundary_width = 0;        ///< points of the rim that rollouts take from the files
  std::map<std::string, double> fill;     ///< what missing values become, by name of a variable or field
  std::map<std::string, double> missing;  ///< what stands for missing values though files do not say so
  std::map<std::string, SummedSince> deaccumulate;  ///< running sums, by name of a variable or field
  std::map<std::string, Transform> transforms;      ///< by name of a variable or field
  std::map<std::string, ValueRange> clamp;          ///< the same
  /// "auto", or the name of a file or of a checkpoint with statistics; nothing where the run may take those
  /// of the checkpoint that it begins with.
  std::optional<std::string> normalization;
  Task task = Task::kForecast;

  std::vector<ImageDim> dims;  ///< of images, and of sequences; empty: fields with dates
  // Of images, the tasks denoise and map.
  std::vector<VariableOptions> targets;
  std::vector<ImageDim> flips;
  std::vector<std::int64_t> crop;
  bool pad = false;                       ///< whether parts may be smaller than the crop
  std::optional<double> alignment = 0.1;  ///< ImagePairing::alignment
  std::vector<double> spacing;            ///< in mm, to which all images are brought; empty: their own
  std::optional<double> noise_sigma;
  std::int64_t classes = 0;
  std::vector<std::vector<std::int64_t>> labels;   ///< of each class its numbers in the files; empty: itself
  std::vector<std::vector<std::int64_t>> regions;  ///< each of some classes, and may overlap; empty: none
  std::optional<std::int64_t> ignore_index;
  AugmentOptions augment;
  ImageIntensity intensity = ImageIntensity::kDataSet;
  std::vector<double> percentiles = {0.5, 99.5};
  std::map<std::string, IntensityOptions> intensities;  ///< by name of an input's variable or channel

  External external() const { return allow_external ? External::kFollowed : External::kRefused; }
  /// The file that holds the statistics, unless they are computed or given.
  const std::string* statistics_file() const {
    return normalization && *normalization != "auto" ? &*normalization : nullptr;
  }
  /// What holds between the times of a field of data.forcing_variables.
  Between between_of(const Field& field) const;
  /// As `fill`, `missing`, `deaccumulate`, `transforms`, `clamp` and `intensities` say for the field, else
  /// for its variable.
  std::optional<double> fill_of(const Field& field) const;
  std::optional<double> missing_of(const Field& field) const;
  std::optional<SummedSince> summed_since(const Field& field) const;
  Transform transform_of(const Field& field) const;
  ValueRange range_of(const Field& field) const;
  IntensityOptions intensity_of(const Field& input) const;
  /// Names of the variables that are predicted, and of their fields.
  std::vector<std::string> target_names() const;
  bool of_images() const { return task != Task::kForecast; }
  /// Forecasts of states that follow one another by number, without dates and degrees.
  bool of_sequences() const { return task == Task::kForecast && !dims.empty(); }
  /// From time 0 to the target; of sequences in steps, as their times are numbers of states.
  Time lead() const { return of_sequences() ? lead_steps : lead_time; }
  /// Of labels: the channels that a model predicts, and those of the targets.
  std::int64_t label_outputs() const { return regions.empty() ? classes : std::ssize(regions); }
  std::int64_t label_targets() const { return regions.empty() ? 1 : std::ssize(regions); }
  /// How much earlier than its targets what the model is given began: the one lead of its variables where it
  /// corrects forecasts of one; else 0.
  Time lead_of_inputs() const;
  /// Whether targets are of the time of the inputs, and hence no forecasts.
  bool of_same_time() const { return !of_images() && lead() == 0; }
  /// The spatial dims in the order of fields.
  std::vector<ImageDim> space() const;
};

/// The periods of forecasts among the parts, in the calendar of the files.
/// @param key  the place of the parts in the configuration. @throws ConfigError  for days that are none.
std::vector<Period> periods_of(const std::vector<DataPart>& parts, Calendar calendar = Calendar::kStandard,
                               const std::string& key = "");

FormPtr<TimeStep> form_for(TypeTag<TimeStep>);
FormPtr<Between> form_for(TypeTag<Between>);
FormPtr<SummedSince> form_for(TypeTag<SummedSince>);
void declare(Keys<VariableOptions>& keys);
void declare(Keys<RegionOptions>& keys);
void declare(Keys<DataOptions>& keys);

/// The keys of images and sequences, and what they have to fulfil together with others.
void declare_images(Keys<DataOptions>& keys);
void check_images(const DataOptions& options, const Place& at);
void check_sequences(const DataOptions& options, const Place& at);
/// The keys of what is done to values, and what they have to fulfil together with others.
void declare_values(Keys<DataOptions>& keys);
void check_values(const DataOptions& options, const Place& at);

}  // namespace jigsaw::inline fields
