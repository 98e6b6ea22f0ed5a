#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/log.h"
#include "evaluate/climate_scores.h"
#include "evaluate/score_files.h"
#include "predict/grid_places.h"
#include "predict/trained_model.h"

namespace jigsaw::inline evaluate {

/// What is scored, and where scores go.
struct EvaluationOptions {
  std::string json, netcdf;  ///< files; "": none
  bool overwrite = false;
  std::vector<std::string> regions;  ///< beside the usual ones; as parse_region() reads them
  std::string title;
  std::vector<std::string> climatology = {};  ///< files or patterns; none: that of data.train
  ClimateOptions climate = {};
  MapPaths maps = {};                      ///< of a climate only with one
  std::vector<int> map_leads = {};         ///< of maps of errors, ascending; none: all
  std::string period = "data.valid";       ///< what names the windows that are scored
  std::vector<std::string> stations = {};  ///< files or patterns of observations; none: none
  PlaceValue at_stations = PlaceValue::kLinear;
  Time station_tolerance = 0;  ///< from times of observations to those that they count at
};

/// The validation of a trained model without training: over all windows of data.valid, scored as
/// ForecastScores does. Tables go to the log. The climatology is that of data.train, as far as the files hold
/// it, or that of files in WeatherBench 2's layout. Collective: what throws on one rank throws on all.
///
/// @throws ConfigError  for regions that are none, leads that are not scored, and files that exist;
/// DataError
void evaluate_forecasts(TrainedModel& model, const EvaluationOptions& options, Log& log);

/// The same of forecasts in files (WrittenForecasts), without a model: of those windows of data.valid from
/// which they hold all leads; what is left out is warned of. Rows are cut over all ranks. Collective.
/// @param use  how the data are opened. @throws DataError  when there is none
void evaluate_written_forecasts(const Configuration& configuration, const std::filesystem::path& folder,
                                const std::vector<std::string>& predictions, DataUse use,
                                const EvaluationOptions& options, Communicator& world, Log& log);

}  // namespace jigsaw::inline evaluate
