#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "commands.h"
#include "evaluate/evaluation.h"
#include "evaluate/image_evaluation.h"
#include "evaluate/sequence_evaluation.h"
#include "fields/data_forms.h"

namespace jigsaw {

namespace {

/// The parts of the data that are scored.
std::vector<DataPart> parts_of(const DataOptions& data, const std::vector<std::string>& period) {
  if (period.size() == 1 && period[0] == "train") {
    std::vector<DataPart> parts = data.train;
    for (DataPart& part : parts)
      if (auto* slices = std::get_if<SliceRanges>(&part)) slices->list = "train";
    return parts;
  }
  if (period.size() == 1 && period[0] == "valid") return data.valid;
  const std::optional<DatePeriod> dates =
      period.size() == 2 ? parse_dates(period[0], period[1]) : std::nullopt;
  if (!data.dims.empty())
    throw ConfigError(concat("command line: --period ", join(period, " "), " must be train or valid for ",
                             data.of_images() ? "images" : "sequences"));
  if (dates && dates->last < dates->first) {
    throw ConfigError(concat("command line: --period ", join(period, " "),
                             " ends before it begins; name the earlier date first"));
  }
  if (!dates) {
    throw ConfigError(concat("command line: --period ", join(period, " "),
                             " must be train, valid, or two dates such as 2019-03-25 2019-03-31"));
  }
  return {*dates};
}

struct EvaluateArguments {
  ModelArguments model;
  int members = 0;                              ///< 0: as ensemble.members
  std::vector<std::string> period = {"valid"};  ///< or train, or two dates
  int leads = 0;                                ///< 0: as the configuration's validation
  int forecasts = 0;                            ///< 0: from every time of the period
  std::vector<std::string> regions;
  std::vector<std::string> thresholds;   ///< NAME=VALUE,… each, in place of validation.thresholds
  std::vector<int> fss_scales;           ///< in place of validation.fss_scales
  std::vector<std::string> climatology;  ///< files; none: that of the training period
  WindowArguments windows;               ///< over images
  std::optional<double> data_range;      ///< of images
  std::vector<std::string> predictions;  ///< files to score in place of a model
  std::string climate;                   ///< as parse_climate_groups() takes it
  std::optional<std::int64_t> spin_up;
  std::string json, netcdf;
  MapPaths maps;
  std::vector<int> map_leads;
  std::vector<std::string> stations;  ///< files of observations
  std::string interpolation;          ///< as parse_place_value() takes it; "": linear
  std::string time_tolerance;         ///< of observations, as duration_of() takes it; "": 0
  bool overwrite = false;
};

/// Options of one task that mean nothing for the other.
void refuse_options(const EvaluateArguments& options, bool images) {
  const std::vector<std::pair<const char*, bool>>
      of_forecasts = {{"--members", options.members > 0},
                      {"--leads", options.leads > 0},
                      {"--forecasts", options.forecasts > 0},
                      {"--region", !options.regions.empty()},
                      {"--threshold", !options.thresholds.empty()},
                      {"--fss-scales", !options.fss_scales.empty()},
                      {"--climatology", !options.climatology.empty()},
                      {"--climate", !options.climate.empty()},
                      {"--error-maps", !options.maps.errors.empty()},
                      {"--stations", !options.stations.empty()},
                      {"--by-start", !options.maps.starts.empty()}},
      of_images = {{"--overlap", options.windows.overlap.has_value()},
                   {"--mirror", !options.windows.mirror.empty()},
                   {"--data-range", options.data_range.has_value()}};
  for (const auto& [option, given] : images ? of_forecasts : of_images) {
    if (given)
      throw ConfigError(concat("command line: ", option, " is for ", images ? "forecasts" : "images",
                               ", and data.task is that of ", images ? "images" : "forecasts"));
  }
}

/// Options that need dates or latitudes.
void refuse_for_sequences(const EvaluateArguments& options) {
  for (const auto& [option, given] : {std::pair{"--members", options.members > 0},
                                      {"--region", !options.regions.empty()},
                                      {"--threshold", !options.thresholds.empty()},
                                      {"--fss-scales", !options.fss_scales.empty()},
                                      {"--climatology", !options.climatology.empty()},
                                      {"--climate", !options.climate.empty()},
                                      {"--error-maps", !options.maps.errors.empty()},
                                      {"--by-start", !options.maps.starts.empty()},
                                      {"--stations", !options.stations.empty()},
                                      {"--predictions", !options.predictions.empty()}}) {
    if (given)
      throw ConfigError(
          concat("command line: ", option,
                 " is for forecasts with dates, and data.dims makes these forecasts of sequences"));
  }
}

/// What is scored is either there or a model's.
void refuse_model(const EvaluateArguments& options) {
  if (options.predictions.empty()) {
    if (options.model.checkpoints.empty())
      throw ConfigError("command line: --checkpoint is required, or --predictions");
    return;
  }
  for (const auto& [option, given] : {std::pair{"--checkpoint", !options.model.checkpoints.empty()},
                                      {"--average", options.model.average != "auto"},
                                      {"--members", options.members > 0},
                                      {"--overlap", options.windows.overlap.has_value()},
                                      {"--mirror", !options.windows.mirror.empty()}}) {
    if (given)
      throw ConfigError(concat("command line: ", option,
                               " is of a model, and --predictions are scored without one; name one of them"));
  }
}

/// Options that are of what another one asks for.
void refuse_void(const EvaluateArguments& options) {
  const auto refuse = [](const char* option, bool given, const char* other) {
    if (given) throw ConfigError(concat("command line: ", option, " has no effect without ", other));
  };
  if (options.climate.empty()) {
    const char* const climate = "--climate all, season or month";
    refuse("--spin-up", options.spin_up.has_value(), climate);
    refuse("--maps", !options.maps.climate.empty(), climate);
  }
  if (options.stations.empty()) {
    refuse("--station-scores", !options.maps.stations.empty(), "--stations FILES");
    refuse("--interpolation", !options.interpolation.empty(), "--stations FILES");
    refuse("--time-tolerance", !options.time_tolerance.empty(), "--stations FILES");
  }
  if (options.maps.errors.empty()) refuse("--map-leads", !options.map_leads.empty(), "--error-maps FILE");
}

/// Of --time-tolerance.
Time tolerance_of(const std::string& text) {
  if (text.empty()) return 0;
  const std::optional<Time> time = duration_of(Json(text));
  if (!time || *time < 0 || *time > kDay) {
    throw ConfigError(
        concat("command line: --time-tolerance must be a time of up to a day such as \"10 min\" ",
               "(s, min, h or d), not \"", text, "\""));
  }
  return *time;
}

/// The least first, each once.
std::vector<int> in_order(std::vector<int> numbers) {
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

/// Name and values of "pr=0.1,1,5"; nothing where the text is none such.
std::optional<std::pair<std::string, std::vector<double>>> parse_threshold(const std::string& text) {
  const std::size_t sign = text.rfind('=');
  if (sign == std::string::npos || sign == 0) return std::nullopt;
  std::vector<double> values;
  for (const std::string& part : split(text.substr(sign + 1), ',')) {
    double value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || end != part.data() + part.size() || !std::isfinite(value))
      return std::nullopt;
    values.push_back(value);
  }
  return std::pair{text.substr(0, sign), values};
}

/// The configuration with thresholds of the command line, which are checked as those of its keys are.
ConfigArguments with_thresholds(const EvaluateArguments& options) {
  ConfigArguments configuration = options.model.configuration;
  Json thresholds = Json::object();
  for (const std::string& text : options.thresholds) {
    const auto [name, values] = parse_threshold(text).value();
    for (const double value : values) thresholds[name].push_back(value);
  }
  if (!thresholds.empty()) configuration.overrides.push_back("validation.thresholds=" + thresholds.dump());
  if (!options.fss_scales.empty())
    configuration.overrides.push_back("validation.fss_scales=" + Json(options.fss_scales).dump());
  return configuration;
}

/// Scores a model over a period. Errors end as those of training do.
ExitCode run_evaluate(const EvaluateArguments& options) {
  return run_job(with_thresholds(options), [&](Job& job) {
    Configuration configuration = job.configuration;
    if (options.leads > 0) configuration.validation.rollout = options.leads;
    const bool images = configuration.data.of_images();
    Weights weights = Weights::kAuto;
    ImageEvaluationOptions scores{options.json, options.netcdf,     options.overwrite,
                                  {},           options.data_range, "Scores of " + configuration.name};
    together(job.world, [&] {
      refuse_options(options, images);
      if (configuration.data.of_sequences()) refuse_for_sequences(options);
      refuse_model(options);
      refuse_void(options);
      keep_configuration(options.model.configuration, {{"--json", options.json},
                                                       {"--netcdf", options.netcdf},
                                                       {"--maps", options.maps.climate},
                                                       {"--error-maps", options.maps.errors},
                                                       {"--by-start", options.maps.starts},
                                                       {"--station-scores", options.maps.stations}});
      if (images) {
        scores.windows = windows_of(options.windows, configuration.data);
      } else {
        require_one_checkpoint(options.model);
        set_members(options.members, configuration);
      }
      if (options.data_range && configuration.data.classes > 0)
        throw ConfigError("command line: --data-range is for targets that are numbers, and these are labels");
      configuration.data.valid = parts_of(configuration.data, options.period);
      weights = parse_weights(options.model.average);
    });
    DataUse validation_only;
    validation_only.train = false;
    if (options.forecasts > 0) validation_only.most_valid = options.forecasts;
    const bool by_default = options.period == EvaluateArguments().period;
    if (!by_default) validation_only.valid_name = "command line: --period";
    if (!options.predictions.empty() && images) {
      evaluate_predictions(configuration, job.folder, options.predictions,
                           by_default ? "data.valid" : concat("--period ", options.period[0]), scores,
                           job.world, job.log);
      return ExitCode::kDone;
    }
    const EvaluationOptions of_forecasts{
        options.json,
        options.netcdf,
        options.overwrite,
        options.regions,
        "Scores of " + configuration.name,
        options.climatology,
        ClimateOptions{parse_climate_groups(options.climate), static_cast<int>(options.spin_up.value_or(0))},
        options.maps,
        in_order(options.map_leads),
        by_default                   ? "data.valid"
        : options.period.size() == 1 ? "--period train"
                                     : "--period",
        options.stations,
        parse_place_value(options.interpolation.empty() ? "linear" : options.interpolation),
        tolerance_of(options.time_tolerance)};
    if (!options.predictions.empty()) {
      evaluate_written_forecasts(configuration, job.folder, options.predictions, validation_only,
                                 of_forecasts, job.world, job.log);
      return ExitCode::kDone;
    }
    TrainedModels models = open_models(configuration, job.folder, options.model.checkpoints, weights,
                                       validation_only, job.world, job.log);
    if (images) {
      evaluate_images(models, scores, job.log);
      return ExitCode::kDone;
    }
    if (configuration.data.of_sequences()) {
      evaluate_sequences(models.front(),
                         {options.json, options.netcdf, options.overwrite, "Scores of " + configuration.name},
                         job.log);
      return ExitCode::kDone;
    }
    evaluate_forecasts(models.front(), of_forecasts, job.log);
    return ExitCode::kDone;
  });
}

}  // namespace

std::function<ExitCode()> declare_evaluate(const CommandOptions& command, const Invocation& /*invocation*/) {
  auto options = std::make_shared<EvaluateArguments>();
  add_model(command, options->model);
  command
      .add_option("--period", options->period,
                  "The configuration's data.train or data.valid (the default), or two dates")
      .expected(1, 2);
  command.add_option("--leads", options->leads, "Steps of each forecast; default: validation.rollout")
      .within(1, 100'000);
  command
      .add_option("--forecasts", options->forecasts,
                  "Score that many forecasts only, evenly spread over the period; default: all")
      .within(1, 1'000'000'000);
  add_members(command, options->members);
  command.add_option("--region", options->regions,
                     "NAME=SOUTH,NORTH,WEST,EAST in degrees: a region to score; may be repeated");
  command
      .add_option("--threshold", options->thresholds,
                  "NAME=VALUE,VALUE,… in the unit of the files, such as tp=0.1,1,5: score how forecasts of a "
                  "variable or field tell where it reaches these; may be repeated; default: "
                  "validation.thresholds")
      .checked([](const std::string& text) {
        return parse_threshold(text) ? std::string()
                                     : concat("must be NAME=VALUE,VALUE,… such as tp=0.1,1,5, not ", text);
      });
  command.add_option("--fss-scales", options->fss_scales,
                     "Points along an edge of the squares of the fractions skill score, such as 1 5 21; "
                     "default: validation.fss_scales");
  command.add_option("--climatology", options->climatology,
                     "Files with means by hour and dayofyear, as WeatherBench 2 has them; default: "
                     "those of data.train, formed in the same way");
  command
      .add_option("--climate", options->climate,
                  "Score means and variability in time over all forecasts and leads, too: of all times, and "
                  "by season or month")
      .one_of({"all", "season", "month"});
  command
      .add_option("--spin-up", options->spin_up,
                  "Leads from the first one on that do not count for --climate; default: 0")
      .within(0, 100'000);
  add_windows(command, options->windows);
  command
      .add_option(
          "--predictions", options->predictions,
          "Score these files (or patterns; of images those in a folder, too), which predict or another "
          "program wrote, in place of a checkpoint's model; several that hold the same forecast are its "
          "members")
      .not_empty();
  command
      .add_option("--data-range", options->data_range,
                  "Of images: the data range that PSNR and SSIM refer to; default: validation.peak, or the "
                  "largest less the smallest value of the targets")
      .positive();
  command.add_option("--json", options->json, "A JSON file to write all scores and spectra to");
  command.add_option("--netcdf", options->netcdf, "The same as NetCDF");
  command
      .add_option("--maps", options->maps.climate,
                  "A NetCDF file to write the maps of --climate to: means, their difference, deviations")
      .not_empty();
  command
      .add_option("--error-maps", options->maps.errors,
                  "A NetCDF file to write maps of bias and RMSE to, and of members their spread, by lead")
      .not_empty();
  command
      .add_option("--by-start", options->maps.starts,
                  "A NetCDF file to write the scores of each forecast to, which compare reads")
      .not_empty();
  command
      .add_option("--stations", options->stations,
                  "Files (or patterns) of what stations observed, [time, station] with their latitudes and "
                  "longitudes, or tables (.csv): score the forecasts against them, too")
      .not_empty();
  command
      .add_option("--interpolation", options->interpolation,
                  "How values at --stations are made of the grid's points: linear between the four around "
                  "each (the default), or nearest")
      .one_of({"linear", "nearest"});
  command
      .add_option(
          "--time-tolerance", options->time_tolerance,
          "How much earlier or later than a forecast's time observations of --stations may be, such as "
          "\"10 min\"; of each station the nearest counts (default: not at all)")
      .not_empty();
  command
      .add_option("--station-scores", options->maps.stations,
                  "A NetCDF file, or a table (.csv), to write the scores at each of --stations to")
      .not_empty();
  command
      .add_option("--map-leads", options->map_leads,
                  "Leads that --error-maps has, such as 1 4 12; default: all")
      .within(1, 100'000);
  command.add_flag("--overwrite", options->overwrite, "Replace these files if they are there");
  return [options] { return run_evaluate(*options); };
}

}  // namespace jigsaw
