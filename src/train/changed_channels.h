#pragma once
#include <string>

#include "config/json.h"
#include "fields/data_options.h"
#include "samples/channels.h"
#include "task/configuration.h"

namespace jigsaw::inline train {

/// How the channels that a checkpoint's parameters were trained on differ from those that they are given
/// now, though shapes are the same: in names, order or hours. In one line that names the first of them, or ""
/// where they do not, or the checkpoint does not say. Channels of an ensemble's noise stand behind the
/// inputs: that they alone were added nobody needs to be told here. Where there were more or fewer, shapes
/// tell.
///
/// @param extra    of the checkpoint's manifest.
/// @param options  which gave the channels.
std::string changed_channels(const Json& extra, const Channels& now, const DataOptions& options,
                             const EnsembleOptions& ensemble);

}  // namespace jigsaw::inline train
