#include "evaluate/evaluation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/progress_bar.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "evaluate/climate_report.h"
#include "evaluate/error_maps.h"
#include "evaluate/score_files.h"
#include "evaluate/score_report.h"
#include "evaluate/scored_forecasts.h"
#include "evaluate/start_score_file.h"
#include "evaluate/station_report.h"
#include "fields/shared_files.h"
#include "fields/units.h"
#include "predict/place_table.h"
#include "samples/prescribed_remarks.h"
#include "samples/state_limits.h"
#include "task/grid_warnings.h"
#include "train/data_report.h"
#include "train/validation.h"

namespace jigsaw::inline evaluate {

namespace {

/// Where the climatology is asked for.
std::vector<DayAndHour> verification_times(const ScoredForecasts& of) {
  std::set<DayAndHour> times;
  for (const Time start : of.starts) {
    for (int lead = 1; lead <= of.leads(); ++lead)
      times.insert(day_and_hour(start + lead * of.data.options().lead_time, of.data.files().calendar()));
  }
  return {times.begin(), times.end()};
}

std::vector<Region> regions_of(const Grid& grid, const EvaluationOptions& options) {
  std::vector<Region> regions = usual_regions(grid);
  for (const std::string& text : options.regions) {
    const Region region = parse_region(text);
    if (std::ranges::any_of(regions, [&](const Region& known) { return known.name == region.name; }))
      throw ConfigError(concat("command line: --region ", text, " has the name of another region"));
    regions.push_back(region);
  }
  return regions;
}

/// How much each point of a rank's piece counts in each region.
std::vector<std::vector<double>> weights_of(const std::vector<Region>& regions, Dataset& data,
                                            const Box& piece) {
  const Box plane{{piece.begin[1], piece.begin[2]}, {piece.extent[1], piece.extent[2]}};
  std::optional<PointPlaces> places;
  if (!data.grid().geographic) places = data.files().read_degrees(plane);
  std::vector<std::vector<double>> weights;
  for (const Region& region : regions)
    weights.push_back(
        region.point_weights(data.grid(), plane, places ? &*places : nullptr, data.cell_weights()));
  return weights;
}

/// @throws ConfigError  on all ranks, when no point of the grid lies in a region. Collective.
void require_points(const std::vector<Region>& regions, const std::vector<std::vector<double>>& weights,
                    Communicator& world) {
  std::vector<double> sums;
  for (const std::vector<double>& of_region : weights)
    sums.push_back(std::accumulate(of_region.begin(), of_region.end(), 0.0));
  sums = world.all_reduce(sums, ReduceOp::kSum);
  for (std::size_t r = 0; r < regions.size(); ++r) {
    if (sums[r] > 0) continue;
    throw ConfigError(concat("command line: the region ", regions[r].name, " holds no point of the grid"));
  }
}

/// The climatology of a rank's piece, from files of its own or from the training period.
/// @param paths, open_file  of those files. @param remarks  is given what is to be said of them.
std::unique_ptr<Climatology> climatology_of(const ScoredForecasts& of, const std::vector<std::string>& paths,
                                            const FileOpener& open_file, std::vector<std::string>& remarks) {
  Dataset& data = of.data;
  const std::vector<Channel>& targets = data.channels().targets;
  const std::vector<DayAndHour> wanted = verification_times(of);
  if (paths.empty()) {
    remarks = {climatology_remark(data, of.starts, of.leads())};
    return std::make_unique<Climatology>(data.files(), targets, of.piece,
                                         data.files().periods(data.options().train, "data.train"), wanted);
  }
  FileSet files(paths, Climatology::file_selection(data.options()), open_file);
  files.take_grid(data.files());
  for (const Channel& target : targets) {
    files.select(target.field, false);
    remarks.push_back(require_same_unit(concat("the climatology of ", target.name, " in ", paths.front()),
                                        files.units(target.field), data.files().units(target.field)));
  }
  return std::make_unique<Climatology>(files, targets, of.piece, wanted);
}

/// Observations at stations, and the scores against them; null where none are wanted. Collective.
/// @param paths  files
std::unique_ptr<StationScores> stations_of(const ScoredForecasts& of, const std::vector<std::string>& paths,
                                           const EvaluationOptions& options) {
  if (paths.empty()) return nullptr;
  Dataset& data = of.data;
  std::vector<std::string> of_variables;  // of tables there is nothing to share
  together(of.world, [&] {
    for (const std::string& path : paths)
      if (is_variable_file(path)) of_variables.push_back(path);
  });
  const FileOpener open_file =
      share_files(of_variables, Dimensions::kByName, data.options().external(), cache_folder(), of.world);
  std::optional<StationObservations> observations;
  together(of.world, [&] {
    if (data.files().of_months())
      throw ConfigError("command line: --stations are by dates, and data.time_step is \"month\"");
    if (of.world.rank() != 0) return;
    observations.emplace(paths, open_file, data, times_of_forecasts(data, of.starts, of.leads(), 1),
                         options.station_tolerance);
  });
  return std::make_unique<StationScores>(data, std::move(observations), options.at_stations, of.leads(),
                                         of.members, of.world);
}

/// Variables without scores at points that persistence has some at; they would be shown as missing alone.
void warn_of_not_finite(const ScoreReport& report, Log& log) {
  std::vector<std::string> names;
  for (std::size_t variable = 0; variable < report.variables.size(); ++variable) {
    for (int lead = 0; lead < report.scores->leads(); ++lead) {
      const ForecastScore score = report.scores->score(lead, variable, 0);
      if (std::isfinite(score.rmse) || !std::isfinite(score.persistence_rmse)) continue;
      names.push_back(report.variables[variable]);
      break;
    }
  }
  if (names.empty()) return;
  const std::size_t shown = std::min<std::size_t>(names.size(), 3);
  const std::string more = names.size() > shown ? concat(" and ", names.size() - shown, " more") : "";
  names.resize(shown);
  log.warn(concat("forecasts of ", join(names, ", "), more, " are not finite, and have no scores"));
}

/// What makes no sense of this model and data.
void require_options(const EvaluationOptions& options, const Dataset& data, int leads) {
  require(options.maps.climate.empty() || options.climate.groups != ClimateGroups::kNone,
          "maps are those of a climate");
  for (const int lead : options.map_leads) {
    if (lead > leads)
      throw ConfigError(concat("command line: --map-leads ", lead, " is beyond the last of ",
                               counted(leads, "lead"), " that are scored; name more --leads"));
  }
  if (data.files().of_months() && !options.climatology.empty())
    throw ConfigError(
        "command line: --climatology is by day of the year, and data.time_step is \"month\"; without it "
        "that of "
        "the training period is taken");
  if (!options.maps.starts.empty() && data.options().member.all) {
    throw ConfigError(
        "command line: --by-start is of one forecast from each start, and data.member \"all\" gives several");
  }
  if (data.valid_windows().empty())
    throw ConfigError("command line: --period is needed, for the configuration has no data.valid");
  if (!options.climatology.empty()) data.files().require_dates("--climatology");
  if (options.climate.groups == ClimateGroups::kSeason || options.climate.groups == ClimateGroups::kMonth)
    data.files().require_dates("--climate by parts of the year");
  if (options.climate.spin_up >= leads) {
    throw ConfigError(concat("command line: --spin-up ", options.climate.spin_up, " leaves none of the ",
                             counted(leads, "lead"), " for --climate; name a smaller one, or more --leads"));
  }
}

/// Of which there are maps of errors; none where none are wanted.
std::vector<int> map_leads_of(const EvaluationOptions& options, int leads) {
  if (options.maps.errors.empty()) return {};
  std::vector<int> all = options.map_leads;
  if (all.empty()) {
    all.resize(static_cast<std::size_t>(leads));
    std::iota(all.begin(), all.end(), 1);
  }
  return all;
}

/// Of the target channels.
void add_variables(const Dataset& data, std::vector<std::string>& names, std::vector<std::string>& units) {
  for (const Channel& target : data.channels().targets) {
    names.push_back(target.name);
    units.push_back(data.files().units(target.field));
  }
}

ScoreReport report_of(const ScoredForecasts& of, const EvaluationOptions& options,
                      const ForecastScores& scores) {
  const Dataset& data = of.data;
  const FileSet& files = data.files();
  ScoreReport report;
  report.title = options.title;
  report.source = concat("jigsaw-train, ", of.source);
  report.lead_time = data.options().lead_time;
  report.of_months = data.options().time_step.month;
  const Calendar calendar = files.calendar();
  report.decade = (days_from_date({1980, 1, 1}, calendar) - days_from_date({1970, 1, 1}, calendar)) * kDay;
  report.forecasts = std::ssize(of.starts);
  report.scores = &scores;
  report.coverage = window_coverage(data, scores.leads());
  report.coverage.take(of.starts, files);
  for (const Period& period : files.periods(data.options().valid, "data.valid"))
    report.periods.push_back(files.text_of(period));
  add_variables(data, report.variables, report.units);
  return report;
}

/// What the files lack of the period, and behind it how many windows are left out for that.
std::vector<std::string> coverage_of(const Dataset& data, int leads, const std::string& period) {
  std::vector<std::string> warnings = coverage_warnings(data, data.options().valid, period);
  const std::string left_out = window_coverage(data, leads).sentence(period);
  if (left_out.empty()) return warnings;
  if (warnings.empty()) return {left_out};
  warnings.back() += "; " + left_out;
  return warnings;
}

StartScoreContents contents_by_start(const ScoredForecasts& of, const EvaluationOptions& options,
                                     const std::vector<Region>& regions) {
  const DataOptions& data = of.data.options();
  StartScoreContents contents;
  contents.title = options.title;
  contents.source = concat("jigsaw-train, ", of.source);
  contents.leads = {data.lead_time, data.time_step.month, of.leads()};
  contents.calendar = of.data.files().file_calendar();
  contents.starts = std::ssize(of.starts);
  contents.members = of.members;
  contents.regions = regions;
  add_variables(of.data, contents.variables, contents.units);
  return contents;
}

/// "12 of the 45 forecasts are of times that the model was trained on (2019-12-20 to 2020-02-10): …"; "" for
/// none.
std::string trained_on_remark(const TrainedModel& model, const Dataset& data, int leads) {
  std::vector<Period> periods;
  try {
    periods = data.files().periods(model.trained_on(), "data.train");
  } catch (const ConfigError&) {
    return "";  // of another calendar
  }
  const auto is_known = [&](Time start) {
    return std::ranges::any_of(periods, [&](const Period& period) {
      for (int lead = 1; lead <= leads; ++lead)
        if (period.contains(start + lead * data.options().lead_time)) return true;
      return false;
    });
  };
  const auto known = std::ranges::count_if(data.valid_windows(), is_known);
  if (known == 0) return "";
  std::vector<std::string> texts;
  for (const Period& period : periods) texts.push_back(data.files().text_of(period));
  return concat(known, " of the ", counted(std::ssize(data.valid_windows()), "forecast"),
                known == 1 ? " is" : " are", " of times that the model was trained on (", join(texts, ", "),
                "): their scores say little of new ones");
}

}  // namespace

void score(const ScoredForecasts& of, const EvaluationOptions& options, Log& log) {
  Dataset& data = of.data;
  Communicator& world = of.world;
  const Rank& rank = of.rank;
  const Box& piece = of.piece;
  const std::int64_t members = of.members;
  const int leads = of.leads();
  for (const std::string& warning : area_warnings(of.configuration, data)) log.warn(warning);
  for (const std::string& warning : target_warnings(data)) log.warn(warning);
  std::vector<Region> regions;
  std::vector<std::vector<double>> weights;
  std::optional<ScoreFiles> files;
  std::unique_ptr<MapFile> climate_file, error_file;
  std::unique_ptr<StartScoreFile> start_file;
  const std::vector<int> map_leads = map_leads_of(options, leads);
  const std::vector<std::string> station_paths = expand_together(options.stations, "", world);
  std::unique_ptr<Climatology> climatology;
  together(world, [&] {
    require_options(options, data, leads);
    regions = regions_of(data.grid(), options);
    weights = weights_of(regions, data, piece);
    if (world.rank() != 0) return;
    std::vector<std::string> inputs = data.paths();
    inputs.insert(inputs.end(), of.paths.begin(), of.paths.end());
    inputs.insert(inputs.end(), station_paths.begin(), station_paths.end());
    files.emplace(options.json, options.netcdf, options.overwrite, inputs, options.maps);
    const std::map<std::string, std::string> attributes = {{"title", options.title},
                                                           {"source", concat("jigsaw-train, ", of.source)}};
    const auto file_of = [&](const std::string& path, const MapContents& contents) {
      return std::make_unique<MapFile>(data.files(), data.channels().targets, contents, path);
    };
    if (!options.maps.climate.empty())
      climate_file = file_of(files->climate_maps(), climate_maps(options.climate, attributes));
    if (!map_leads.empty())
      error_file = file_of(files->error_maps(), error_maps(map_leads, members, data.options().lead_time,
                                                           data.options().time_step.month, attributes));
    if (!options.maps.starts.empty())
      start_file = std::make_unique<StartScoreFile>(contents_by_start(of, options, regions), files->starts());
  });
  together(world, [&] { require_points(regions, weights, world); });
  const std::vector<std::string> paths = expand_together(options.climatology, "", world);
  const FileOpener open_file =
      share_files(paths, Dimensions::kByName, data.options().external(), cache_folder(), world);
  std::vector<std::string> remarks;
  together(world, [&] { climatology = climatology_of(of, paths, open_file, remarks); });
  for (const std::string& remark : remarks)
    if (!remark.empty()) log.warn(remark);
  const std::unique_ptr<StationScores> stations = stations_of(of, station_paths, options);
  if (stations)
    for (const std::string& remark : stations->remarks()) log.warn(remark);
  for (const std::string& warning : coverage_of(data, leads, options.period)) log.warn(warning);
  for (const std::string& warning :
       unit_warnings(data, data.files().periods(data.options().valid, "data.valid"), world))
    log.warn(warning);
  for (const std::string& remark :
       gap_remarks(data, data.files().periods(data.options().valid, "data.valid")))
    log.warn(remark);
  for (const std::string& remark : later_start_remarks(data, leads)) log.warn(remark);
  data.files().watch(fields_of(data.channels().inputs, Role::kPrescribed));
  const auto before = std::chrono::steady_clock::now();
  std::optional<ForecastScores> all;
  together(world, [&] {
    all.emplace(rank.context, data, std::move(regions), piece, weights, leads, members, climatology.get(),
                thresholds_of(data, of.configuration.validation), options.climate, map_leads);
  });
  ForecastScores& scores = *all;
  if (stations) scores.take_stations(*stations);
  if (!options.maps.starts.empty()) {
    scores.tell_starts([&](const StartScores& some) {
      together(world, [&] {
        if (start_file) start_file->write(some);
      });
    });
  }
  {
    ProgressBar bar(log, "evaluate");
    of.run(scores, [&](double part) { bar.update(part); });
  }
  scores.finish(rank);
  if (of.of_model)
    for (const std::string& remark : scores.outside().remarks(data, world)) log.warn(remark);
  for (const std::string& remark : blank_remarks(data, times_of_forecasts(data, of.starts, leads), world))
    log.warn(remark);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - before;
  const std::size_t channels = data.channels().targets.size();
  if (!options.maps.climate.empty())
    write_maps(rank, world, scores.climate()->moments(), kClimateMaps, ClimateScores::maps, channels,
               climate_file.get());
  if (const ErrorMaps* errors = scores.error_maps()) {
    const auto maps_of = [errors](const TimeMoments& moments, const Box& box, std::int64_t channel) {
      return errors->maps_of(moments, box, channel);
    };
    write_maps(rank, world, errors->moments(), errors->maps(), maps_of, channels, error_file.get());
  }
  together(world, [&] {
    if (world.rank() != 0) return;
    ScoreReport report = report_of(of, options, scores);
    report.stations = stations.get();
    if (start_file) start_file->close();
    if (const std::string path = files->stations(); !path.empty())
      write_station_scores(report, path, is_table_name(options.maps.stations));
    // First the files, which whoever stops reading the table does not keep from being written.
    files->write([&] { return json_of(report); },
                 [&](const std::string& path) { write_netcdf(report, path); });
    for (const std::string& line : table_of(report)) log.info(line);
    warn_of_not_finite(report, log);
  });
  if (stations)
    for (const std::string& remark : stations->gaps()) log.warn(remark);
  log.info(concat("scored ", counted(std::ssize(of.starts), "forecast"), " of ", counted(leads, "step"),
                  members > 1 ? concat(" and ", members, " members") : "", " in ",
                  human_seconds(seconds.count())));
}

void evaluate_forecasts(TrainedModel& model, const EvaluationOptions& options, Log& log) {
  OpenedRun& run = model.run();
  auto& data = dynamic_cast<Dataset&>(run.data());
  if (options.period != "--period train") {
    const std::string remark = trained_on_remark(model, data, run.configuration().validation_rollout());
    if (!remark.empty()) log.warn(remark);
  }
  PlacedModel& placed = run.placed();
  const Rank& rank = placed.rank();
  ScoredForecasts of{run.world(),
                     run.configuration(),
                     data,
                     rank,
                     rank.box(placed.sample_layout(placed.samples())),
                     data.valid_windows(),
                     placed.members(),
                     model.description()};
  of.run = [&](ForecastScores& scores, const std::function<void(double)>& done) {
    Validation(run, true).run([&](int lead, const ShardedTensor& prediction,
                                  const Batch& batch) { scores.add(rank, lead, prediction, batch); },
                              done);
  };
  score(of, options, log);
}

}  // namespace jigsaw::inline evaluate
