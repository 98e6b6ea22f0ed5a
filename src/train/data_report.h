#pragma once
#include <string>
#include <vector>

#include "array/grid.h"
#include "config/json.h"
#include "samples/dataset.h"
#include "samples/sample_source.h"
#include "task/configuration.h"

namespace jigsaw::inline train {

/// What people should know of data before they train on it.
struct DataReport {
  std::vector<std::string> lines;     ///< samples and periods of both parts, channels, statistics
  std::vector<std::string> warnings;  ///< what is hardly meant
};

/// Of periods that stand at a key: which of them the files, or fields that are prescribed, do not cover or
/// cover with gaps, and files in them that lack a variable. Local.
std::vector<std::string> coverage_warnings(const Dataset& data, const std::vector<DataPart>& parts,
                                           const std::string& key);

/// Of the data of a configuration: parts that overlap, that files, or fields that are prescribed, do not
/// cover or cover with gaps, or are interpolated across gaps, a batch larger than an epoch, validations
/// without data and data without validations, constant fields that change (of which a few rows are read),
/// edge_warnings() and area_warnings(). Local.
DataReport report_data(const Configuration& configuration, SampleSource& data);

/// Of the states of the training period, as far as they were read for statistics: their ranges, what is
/// missing, and files in which values begin where those of the file before them do not end. Local.
DataReport report_states(const Dataset& data);

/// Of the times that are there in a period whose two ends are asked for: what is wrong with them, "" when
/// nothing is. Times that follow each other by more than the usual step (the most frequent one) leave a gap.
///
/// @param times  of the files, ascending.
/// @param key    the period's place in the configuration.
std::vector<std::string> period_warnings(const std::vector<Time>& times, const Period& period,
                                         const std::string& key, Calendar calendar = Calendar::kStandard);

/// Of fields that are prescribed, and lack at some times in a period: that it is not covered, and its gaps.
///
/// @param times  at which they are needed, where all else is there; ascending.
/// @param there  those of them at which they are.
/// @param names  of the fields: "sst and 2 more fields".
std::vector<std::string> prescribed_warnings(const std::vector<Time>& times, const std::vector<Time>& there,
                                             const std::string& names, const Period& period,
                                             const std::string& key, Calendar calendar = Calendar::kStandard);

}  // namespace jigsaw::inline train
