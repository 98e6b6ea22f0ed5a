#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "base/log.h"
#include "checkpoint/manifest.h"
#include "comm/communicator.h"
#include "config/json.h"
#include "grids/axis_map.h"
#include "samples/statistics.h"
#include "task/configuration.h"

namespace jigsaw::inline task {

/// What a run takes over from a checkpoint, so that its parameters remain the function of the data that they
/// were.
struct GivenStatistics {
  Statistics statistics;
  std::string from;                ///< the checkpoint
  std::optional<GridOrder> order;  ///< of its data, if they have places on the earth and it says so
};

/// The order of rows and columns as a checkpoint keeps it among what it says of its data, and back: `rows`
/// and `columns`, on a projection `corners`. Of a grid without latitudes and longitudes nothing.
Json order_json(const Grid& grid);
std::optional<GridOrder> order_of(const Json& data);

/// Those that a checkpoint's manifest holds, if any. @throws CheckpointError
std::optional<GivenStatistics> statistics_of(const StoredManifest& stored, const std::string& checkpoint);

/// Those of the checkpoint that data.normalization names; nothing when it names none. Collective.
/// @throws DataError  when the checkpoint has none; CheckpointError
std::optional<GivenStatistics> named_statistics(const DataOptions& options,
                                                const std::filesystem::path& folder, Communicator& world);

/// Where data.normalization names no statistics: those of the checkpoint that the run goes on from, if it has
/// taken them over before or its data may be others now (`allow_change`); else, where the key is left open,
/// those of the checkpoint of `init_from`. Nothing where data.normalization has become "auto", or values are
/// made otherwise (data.transforms, data.fill, …). Collective. @throws CheckpointError
///
/// @param resume     "auto", "never", or a checkpoint's folder.
/// @param init_from  a checkpoint's folder, or "".
std::optional<GivenStatistics> inherited_statistics(const Configuration& configuration,
                                                    const std::string& resume, bool allow_change,
                                                    const std::string& init_from, Communicator& world);

/// The order of rows and columns that the model of a run saw before, whatever data.normalization says: in the
/// checkpoint that the run goes on from, or else in that of `init_from`. Nothing where there is none, or it
/// does not say. Collective.
std::optional<GridOrder> inherited_order(const Configuration& configuration, const std::string& resume,
                                         const std::string& init_from, Communicator& world);

/// Says whose statistics the data have, where a run begins with the parameters of a checkpoint.
/// @param named  whether data.normalization says so.
void tell_statistics(const std::optional<GivenStatistics>& given, bool named, const Statistics& used,
                     const std::string& init_from, Log& log);

}  // namespace jigsaw::inline task
