#pragma once
#include <vector>

#include "predict/forecast.h"
#include "predict/written_leads.h"
#include "samples/dataset.h"

namespace jigsaw::inline predict {

/// When the forecasts start, ascending; of those that others began all the same, or those that are named.
/// @param first  steps that were made of these.
/// @throws ConfigError  for dates that are none, and starts that the file to go on from does not have;
/// DataError  where the files lack what a forecast is given.
std::vector<Time> starts_of(const Dataset& data, const ForecastOptions& options, int& first);

/// Why "latest" is not the newest time that the files hold of any input, where it is not; else "".
/// @param starts  as starts_of() gave them
std::string latest_remark(const Dataset& data, const ForecastOptions& options,
                          const std::vector<Time>& starts);

/// A name in which "{start}" stands for when the one forecast starts: "2019-03-01T0600", of months "2019-03".
/// @throws ConfigError  of several.
std::string named_by_start(const std::string& output, const std::vector<Time>& starts, const FileSet& files);

/// Which leads of these starts are written, behind so many steps that were made before; behind the last one
/// no step is made of means.
/// @param fields  that are written. @throws ConfigError  where there is none, and for means over periods of
/// the calendar that are of other steps from one start than from another.
WrittenLeads leads_of(Dataset& data, const ForecastOptions& options, const std::vector<Time>& starts,
                      const std::vector<Field>& fields, int first);
/// @throws ConfigError  where no lead would be written.
void require_leads(const WrittenLeads& leads);
/// Which steps are in no mean, of so many that were asked for.
std::vector<std::string> left_out_remarks(const WrittenLeads& leads, int steps);

/// Numbers of the target channels that are asked for, ascending. @throws ConfigError
/// @param variables, levels  empty: all.
std::vector<int> channels_of(const std::vector<Channel>& targets, const std::vector<std::string>& variables,
                             const std::vector<double>& levels);

}  // namespace jigsaw::inline predict
