#pragma once
#include <optional>
#include <string>
#include <vector>

#include "config/json.h"

namespace jigsaw::inline evaluate {

/// One number of each image, NaN where there is none.
struct ImageMeasure {
  std::string target;                 ///< the channel that it is of
  std::string name;                   ///< "psnr", "dice"
  std::optional<std::int64_t> label;  ///< the class that it is of
  std::string units;
  std::vector<double> values;  ///< per image

  /// How many images have one, over which the mean is.
  std::int64_t count() const;
  /// NaN where none has one.
  double mean() const;
};

/// Scores of images with what they are of, for people and programs.
struct ImageReport {
  std::string title, source;
  std::vector<std::string> images;  ///< their names
  std::vector<std::pair<std::string, double>>
      ranges;  ///< of the data, by target: what PSNR and SSIM refer to
  std::vector<ImageMeasure> measures;
};

/// A line for each measure: of how many images it is, its mean, its deviation and extremes over them; of few
/// images all, by numbers that the last lines name. Where some have none, a line says what became of them.
std::vector<std::string> table_of(const ImageReport& report);
/// {"images": […], "data_range": {…}, "scores": {"density": {"psnr": {"mean": 31.2, "count": 1, "images":
/// [31.2]}}, …}}, of classes {"labels": {"dice": {"1": {"mean": …, "count": …, "images": […]}}}}; null where
/// there is no number, and "count" says how many images have one.
Json json_of(const ImageReport& report);
/// "density_psnr" [image], "labels_dice_1" [image]; NaN where there is no number; the attribute
/// "count" says how many there are. @throws DataError
void write_netcdf(const ImageReport& report, const std::string& path);

}  // namespace jigsaw::inline evaluate
