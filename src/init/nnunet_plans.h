#pragma once
#include <map>
#include <string>
#include <vector>

#include "init/first_sections.h"

namespace jigsaw::inline init {

/// What nnU-Net planned for a data set, in the words of a configuration; lists are along the dims of the
/// images.
struct NnunetPlan {
  std::string name;                 ///< of nnU-Net's configuration: "3d_fullres"
  std::vector<std::int64_t> patch;  ///< points of a training sample
  std::vector<double> spacing;      ///< mm
  std::string intensity;            ///< of data.intensity
  /// By channel, for data.intensities, those that are normalised otherwise.
  std::map<std::size_t, std::string> intensities;
  std::string augment;               ///< of data.augment, what nnU-Net's trainer does of it
  TrainingText training;             ///< with what nnU-Net's trainer does, for the same steps
  std::vector<std::string> notices;  ///< what is otherwise here
};

/// The images that a plan is for.
struct PlannedImages {
  std::size_t dims = 3;      ///< spatial ones
  std::size_t channels = 1;  ///< of the inputs
  /// Which of the file's axes depth, height and width are, of which nnU-Net reads the last one first; 0 is
  /// the one along which points are adjacent.
  std::vector<std::size_t> file_axes = {2, 1, 0};
};

/// Reads nnUNetPlans.json (nnU-Net from 2.3 on, whose plans have `architecture`).
/// @param name  of nnU-Net's configuration.
/// @throws ConfigError  for a file that cannot be read or is none, a configuration that is not in it or of
///                      other images, or a network that cannot be made here.
NnunetPlan read_nnunet_plan(const std::string& path, const std::string& name, const PlannedImages& images);

}  // namespace jigsaw::inline init
