#pragma once
#include <optional>
#include <string>

#include "base/log.h"
#include "predict/trained_model.h"

namespace jigsaw::inline evaluate {

struct ImageEvaluationOptions {
  std::string json, netcdf;  ///< files; "": none
  bool overwrite = false;
  double overlap = 0.25;             ///< of neighbouring windows, as a part of their extent
  std::optional<double> data_range;  ///< of the targets
  std::string title;
};

/// Scores a trained model over the parts of data.valid, each blended by WindowBlend, with the noise of
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
void evaluate_images(TrainedModel& model, const ImageEvaluationOptions& options, Log& log);

}  // namespace jigsaw::inline evaluate
