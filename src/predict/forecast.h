#pragma once
#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "base/log.h"
#include "predict/calendar_means.h"
#include "predict/grid_places.h"
#include "predict/trained_model.h"

namespace jigsaw::inline predict {

class RestartFile;

/// Whether the state that forecasts end in is kept, beside their file.
enum class KeepState : std::uint8_t {
  kAuto,  ///< of forecasts of several steps from starts that are named, or that go on
  kAlways,
  kNever
};
/// "auto", "always" or "never". @throws ConfigError
KeepState parse_keep_state(const std::string& text);

/// @throws ConfigError  for starts that are no dates of any calendar.
void require_start_dates(const std::vector<std::string>& starts);

/// @throws ConfigError  for a name whose ending promises a format that forecasts are not written in, or that
/// is one of restart_path().
/// @param of_places  whether forecasts are those at places, which may be a table (is_table_name())
void require_netcdf_name(const std::string& output, bool of_places);

/// Which forecasts are written, and where.
struct ForecastOptions {
  std::string output;
  bool overwrite = false;
  bool skip_existing = false;  ///< an output that is there stays, but for forecasts that a signal ended
  int steps = 1;               ///< that are made
  /// Dates, those without time of day the first time of that day; empty: all of the period
  std::vector<std::string> starts;
  std::string period;                             ///< "train", or else valid
  std::vector<std::string> variables;             ///< empty: all that the model predicts
  std::vector<double> levels;                     ///< of those that have levels; empty: all
  bool split_levels = false;                      ///< as ForecastContents has it
  std::map<std::string, std::string> attributes;  ///< of the file
  int every = 1;                                  ///< WrittenLeads::every
  bool means = false;                             ///< WrittenLeads::means
  std::optional<CalendarUnit> mean_unit = {};     ///< of means over periods of the calendar
  bool time_series = false;                       ///< as ForecastContents has it
  /// Deviations: forecasts end where a state lies further beyond what the model was trained on.
  std::optional<double> stop_outside = {};
  KeepState keep_state = KeepState::kAuto;
  std::string points;  ///< a list of places (read_places) that the file holds in place of fields; "": none
  PlaceValue place_value = PlaceValue::kLinear;
  const RestartFile* restart_from = nullptr;  ///< forecasts to go on from, all or those of `starts`; or null
  const std::atomic<int>* stop = nullptr;     ///< not 0, on any rank, to end behind the step in work; or null
};

/// Rollouts of the model, whose forecaster was planned for as many leads as the forecasts have with those
/// that were made before (of states that are always kept for two at least), written as ForecastFile does.
///
/// One rank writes, on a thread of its own, while the next step runs; the others' pieces come to it one at a
/// time, so that no rank holds a whole field. Collective: what throws on one rank throws on all.
///
/// @return  whether it was asked to stop early: the file then holds the leads that were made of the first
/// batch of starts, or whole forecasts of the batches before the one in work, and what was made of that one.
/// So it does where forecasts ended by ForecastOptions::stop_outside.
/// @throws ConfigError  for dates, variables and levels that are none, an output that exists, steps of
/// which none would be written, starts whose periods are of other steps, and a time series of several;
/// CheckpointError  for forecasts of another model, or of other data, to go on
/// from; DataError  also where KeepState::kAlways could not be done, when the forecasts are written
bool write_forecasts(TrainedModel& model, const ForecastOptions& options, Log& log);

}  // namespace jigsaw::inline predict
