#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "predict/image_run.h"

namespace jigsaw::inline evaluate {

struct ImageEvaluationOptions {
  std::string json, netcdf;  ///< files; "": none
  bool overwrite = false;
  WindowOptions windows;
  std::optional<double> data_range;  ///< of the targets
  std::string title;
};

/// Scores trained models over the parts of data.valid, averaged by ImageRun, with the noise of
/// validation where the task is denoise.
///
/// Of numbers, per target and part: RMSE, MAE, bias, PSNR = 20·log10(range/RMSE), SSIM as
/// structural_similarity() has it; of denoise PSNR and SSIM of the noisy image, too. The range is that of the
/// options, else validation.peak, else the largest less the smallest value of the target over all parts.
/// Of classes: accuracy; Dice of each class, none where it is neither labelled nor chosen; their mean, and
/// that of classes 1 and up; HD95 of classes 1 and up, in mm where the file says the spacing, else in points.
/// Points whose target is missing or does not count belong to no class. Means are over the parts that have a
/// number.
///
/// Each rank holds its columns of a part at a time, and surfaces of a class. Collective: what throws on one
/// rank throws on all.
/// @throws ConfigError  for files that exist; DataError
void evaluate_images(TrainedModels& models, const ImageEvaluationOptions& options, Log& log);

/// The same scores of predictions that stand in files, as WrittenPredictions finds them, at the points of the
/// files, whatever data.spacing; of denoise without those of the noisy image. Needs no model. Collective.
///
/// @param folder  of the configuration. @param predictions  files, patterns or a folder.
/// @param parts   what errors call data.valid. @throws ConfigError, DataError
void evaluate_predictions(const Configuration& configuration, const std::filesystem::path& folder,
                          const std::vector<std::string>& predictions, const std::string& parts,
                          const ImageEvaluationOptions& options, Communicator& world, Log& log);

}  // namespace jigsaw::inline evaluate
