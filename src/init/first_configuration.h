#pragma once
#include <optional>
#include <string>
#include <vector>

#include "fields/data_options.h"

namespace jigsaw::inline init {

/// What a first configuration is asked to be.
struct FirstOptions {
  std::vector<std::string> files;    ///< patterns; relative ones start from the working folder
  std::vector<std::string> targets;  ///< patterns; empty: the files hold the targets of kMap, too
  std::optional<Task> task;          ///< nothing: forecasts where variables have times, else denoising
  bool segment = false;              ///< of kMap: targets must be labels
  MemberChoice member;               ///< of an ensemble of forecasts
  std::string model = "unet";        ///< "unet", "vit", "swin", "weathermixer" or "sfno"
  std::string plans;                 ///< of `segment`: nnUNetPlans.json, which says model and training
  std::string plans_configuration = "3d_fullres";  ///< that of nnU-Net's which is taken
  std::string name = "first";                      ///< of the run
  std::string folder = ".";  ///< of the configuration, from which the files in it are named
};

struct FirstConfiguration {
  std::string text;
  std::vector<std::string> notices;  ///< what was chosen among several, left out or assumed, to be said
};

/// Looks at data files and writes a commented configuration (JSON with comments) that trains on them:
/// variables with their meaning, grid and time step, periods or images of training and validation that do not
/// touch, and a model whose patches and levels fit the grid. Comments say what was assumed.
///
/// @throws DataError    for files that hold no field or image, or fields that cannot be trained on; with the
///                      reason.
/// @throws ConfigError  for a member where there are none, or plans that cannot be followed.
FirstConfiguration first_configuration(const FirstOptions& options);

}  // namespace jigsaw::inline init
