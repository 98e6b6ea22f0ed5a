// How files that belong together run through the world, where not all of them say it.
#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "files/nifti_file.h"
#include "images/dim_positions.h"
#include "images/image_files.h"

namespace jigsaw::inline images {

ImagePairing pairing_of(const DataOptions& options) {
  ImagePairing pairing{options.files, options.alignment};
  for (const VariableOptions& target : options.targets) pairing.targets.push_back(target.name);
  return pairing;
}

/// Null for another format.
NiftiFile* ImageFiles::nifti(int file) const {
  return dynamic_cast<NiftiFile*>(files_[static_cast<std::size_t>(file)].get());
}

ImageOrientation ImageFiles::orientation(const Variable& variable, const Image& image) const {
  ImageOrientation result;
  if (const NiftiFile* const file = nifti(image.file)) {
    const NiftiHeader& header = file->header();
    result.axes = header.world;
    result.extents.assign(header.extents.begin(), header.extents.begin() + 3);
    result.in_world = header.place_code > 0;
    return result;
  }
  const auto& numbers = find(image.file, variable.data_set, image.group).numbers;
  const auto affine = numbers.find("affine");
  result.in_world = affine != numbers.end() && affine->second.size() == 12;
  return result;
}

ImageOrientation ImageFiles::orientation_of_case(std::int64_t image) const {
  const Image& at = images_[static_cast<std::size_t>(image)];
  ImageOrientation result = orientation(known(first_variable_), at);
  result.in_world = in_world_.contains(at.file);
  return result;
}

std::vector<std::int64_t> ImageFiles::turned_files() const {
  std::vector<std::int64_t> result;
  for (int file = 0; file < static_cast<int>(files_.size()); ++file) {
    const NiftiFile* const image = nifti(file);
    if (image == nullptr || !image->is_turned()) continue;
    result.push_back(file);
    for (const NiftiAxis& axis : image->header().world)
      result.push_back(2 * axis.axis + (axis.reversed ? 1 : 0));
  }
  return result;
}

/// Whether points of a file belong to those of its case that have the same indices in their file: where not
/// both say a place, and as many lie along depth, height and width of the case.
bool ImageFiles::are_paired_by_index(const ImageOrientation& of_case, const ImageOrientation& its) const {
  if (!pairing_.alignment) return true;
  if (of_case.in_world && its.in_world) return false;
  if (!spacing_.empty() || of_case.extents.empty() || its.extents.empty()) return true;
  static constexpr std::array kAlong = {ImageDim::kWidth, ImageDim::kHeight, ImageDim::kDepth};
  for (std::size_t w = 0; w < 3; ++w) {
    const auto axis = static_cast<std::size_t>(of_case.axes[w].axis);
    if (dim_position(dims_, kAlong[w]) >= 0 && of_case.extents[axis] != its.extents[axis]) return false;
  }
  return true;
}

/// Those of the constructor, as what they belong to in other ImageFiles.
void ImageFiles::turn_as_their_cases() {
  for (std::size_t i = 0; i < pairing_.beside.size(); ++i) {
    NiftiFile* const file = nifti(static_cast<int>(i));
    if (file == nullptr) continue;
    const ImageOrientation its = orientation({}, {static_cast<int>(i), "", 0, 0, {}, {}});
    if (are_paired_by_index(pairing_.beside[i], its)) file->turn(pairing_.beside[i].axes);
  }
}

/// By the order of files where there are as many, else by the numbers of images.
std::vector<ImageFiles::FilePair> ImageFiles::pairs_of_files(const Variable& place) const {
  const auto one_of_each_file = [](std::vector<Image> images) {
    const auto same_file = [](const Image& a, const Image& b) { return a.file == b.file; };
    images.erase(std::unique(images.begin(), images.end(), same_file), images.end());
    return images;
  };
  const bool as_many = known(first_variable_).files() == place.files();
  const std::vector<Image> first = as_many ? one_of_each_file(images_) : images_,
                           other = as_many ? one_of_each_file(place.images) : place.images;
  std::vector<FilePair> pairs;
  for (std::size_t i = 0; i < std::min(first.size(), other.size()); ++i) {
    const bool is_known = !pairs.empty() && pairs.back().first.file == first[i].file &&
                          pairs.back().other.file == other[i].file;
    if (!is_known) pairs.push_back({first[i], other[i]});
  }
  return pairs;
}

/// @param beside  an image that it belongs to. @param turned  files, and those of what they were turned as.
void ImageFiles::turn(int file, const ImageOrientation& wanted, const Image& beside,
                      std::map<int, int>& turned) {
  NiftiFile* const image = nifti(file);
  if (image == nullptr) return;
  const auto [before, is_new] = turned.emplace(file, beside.file);
  if (!is_new && image->header().world != wanted.axes) {
    const auto path = [&](int of) { return files_[static_cast<std::size_t>(of)]->path(); };
    throw DataError(concat(path(file), " holds images of ", path(before->second), " and of ",
                           path(beside.file),
                           ", whose axes run otherwise through the world; give it a place of its own, or "
                           "each of these a file"));
  }
  image->turn(wanted.axes);
}

/// What was selected so far of some cases. @param leading  by files of the first variable: those that say how
/// the axes of their cases run.
void ImageFiles::turn_cases(const std::map<int, FilePair>& leading, const Variable& place,
                            std::map<int, int>& turned) {
  for (const auto& [name, variable] : variables_) {
    if (variable.constant) continue;
    for (const FilePair& pair : pairs_of_files(variable)) {
      const auto leads = leading.find(pair.first.file);
      if (leads == leading.end()) continue;
      const ImageOrientation wanted = orientation(place, leads->second.other);
      if (are_paired_by_index(wanted, orientation(variable, pair.other)))
        turn(pair.other.file, wanted, leads->second.other, turned);
    }
  }
}

/// Turns the files of a variable as those of its cases, or those as its own.
void ImageFiles::orient(const std::string& name, Variable& place) {
  const bool is_target = std::ranges::find(pairing_.targets, name) != pairing_.targets.end();
  const std::vector<FilePair> pairs = pairs_of_files(place);
  std::map<int, FilePair> leading;
  std::map<int, int> turned;
  for (const FilePair& pair : pairs) {
    if (!pairing_.alignment || is_target || in_world_.contains(pair.first.file)) continue;
    if (orientation(place, pair.other).in_world) leading.emplace(pair.first.file, pair);
  }
  for (const auto& [file, pair] : leading) in_world_.insert(file);
  turn_cases(leading, place, turned);
  for (const FilePair& pair : pairs) {
    ImageOrientation of_case = orientation(known(first_variable_), pair.first);
    of_case.in_world = in_world_.contains(pair.first.file);
    if (are_paired_by_index(of_case, orientation(place, pair.other)))
      turn(pair.other.file, of_case, pair.first, turned);
  }
  if (turned.empty()) return;
  find_images_again(place);
  for (auto& [selected, variable] : variables_)
    if (!variable.constant) find_images_again(variable);
  begin_images(first_variable_, known(first_variable_));
  for (auto& [selected, variable] : variables_) {
    if (variable.constant || selected == first_variable_) continue;
    take_grids_of_cases(variable);
    check_images(selected, variable);
  }
}

/// After files were turned: in the order of files that they had.
void ImageFiles::find_images_again(Variable& variable) const {
  std::map<int, std::vector<Image>> of_file;
  for (const Image& image : images_of(variable)) of_file[image.file].push_back(image);
  std::vector<Image> images;
  for (std::size_t i = 0; i < variable.images.size(); ++i) {
    const int file = variable.images[i].file;
    if (i == 0 || variable.images[i - 1].file != file)
      images.insert(images.end(), of_file[file].begin(), of_file[file].end());
  }
  variable.images = std::move(images);
}

}  // namespace jigsaw::inline images
