#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "images/image_files.h"

namespace jigsaw::inline images {

/// A part with the cases that its file of folds names, if it has one: a JSON list of
/// {"train": […], "val": […]}, as nnU-Net's splits_final.json.
/// @param list    that is taken where the part does not say it. @param key  of the part, for errors.
/// @param folder  from which the file's name starts. @throws DataError  for a file that is none.
/// @throws ConfigError  for a fold that it lacks.
SliceRanges with_cases_of_fold(SliceRanges part, const std::string& list, const std::string& key,
                               const std::filesystem::path& folder);
/// The same of several, by rank 0 for all. Collective.
std::vector<DataPart> with_cases_of_folds(std::vector<DataPart> parts, const std::string& list,
                                          const std::string& key, const std::filesystem::path& folder,
                                          Communicator& communicator);

/// Numbers of the images of which a part is, rising. @throws ConfigError  for samples that are not there,
/// and for cases that no file is of.
std::vector<std::int64_t> images_of(const SliceRanges& part, const ImageFiles& files, const std::string& key);

/// Whether the files are of every case that a part names.
bool has_cases_of(const SliceRanges& part, const ImageFiles& files);

}  // namespace jigsaw::inline images
