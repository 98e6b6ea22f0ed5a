#pragma once
#include <optional>
#include <string>
#include <vector>

#include "images/image_files.h"

namespace jigsaw::inline images {

/// Where files of several variables had to be paired by the order of their names, a sentence that says so.
std::optional<std::string> order_warning(const ImageFiles& files, const std::vector<std::string>& variables);
/// A sentence that counts the NIfTI files whose sform and qform contradict each other: by them an axis runs
/// another way, or point (0, 0, 0) lies further apart than `alignment` edges of a voxel.
/// @param alignment  ImagePairing::alignment; without it directions alone are compared.
std::optional<std::string> forms_warning(const ImageFiles& files, const std::vector<std::string>& variables,
                                         std::optional<double> alignment);
/// That of order_warning(), and where points of images, which belong together by their places in the files,
/// say otherwise: where coordinates of NetCDF files or Zarr stores do, a sentence for each variable after the
/// first: that its dims stand in another order, its latitudes, longitudes or other coordinates are others
/// (beyond a hundredth of their step), or its time is (beyond half a step of the samples). Looks at the first
/// and the last image. What files do not say is no contradiction.
/// @param variables  that were selected.
std::vector<std::string> pairing_warnings(const ImageFiles& files, const std::vector<std::string>& variables);

}  // namespace jigsaw::inline images
