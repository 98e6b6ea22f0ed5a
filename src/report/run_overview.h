#pragma once
#include <string>
#include <vector>

#include "report/run_record.h"

namespace jigsaw::inline report {

/// Runs beside each other as an HTML table: state, model, losses, times. Of several runs also the keys of the
/// configuration in which they differ (but those of names and places of output), and which run has the lowest
/// loss of any validation, where all have one loss, data and validation.
std::string run_overview(const std::vector<RunRecord>& runs);

/// The text or number behind keys of objects in each other; "-" for none.
std::string text_at(const Json& json, const std::vector<std::string>& path);

}  // namespace jigsaw::inline report
