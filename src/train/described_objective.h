#pragma once
#include <filesystem>
#include <memory>

#include "task/objective.h"

namespace jigsaw::inline train {

/// What a model needs to know of data: from the configuration alone, or from the headers of its files.
struct DataDescription {
  Shape space;        ///< of a sample
  Channels channels;  ///< of forecasts and of images
};

/// By `data.shape` where it is given (for images by `data.crop`), and then no file is opened, unless they
/// alone say how many channels a variable has; else by the headers of the files.
///
/// @param folder  that of the configuration, from which relative names start.
/// @throws ConfigError naming data.shape when neither is there; DataError when files are there and cannot be
/// used.
DataDescription describe_data(const DataOptions& options, const std::filesystem::path& folder);

/// The objective of a configuration without data: its channels, its loss, one sample, with fields of mean 0
/// and deviation 1. Nothing can be read, and there are no scores: for models that are only planned.
std::unique_ptr<Objective> described_objective(const Configuration& configuration,
                                               const DataDescription& description);

}  // namespace jigsaw::inline train
